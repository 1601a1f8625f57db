/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * When chirps come, what the result of one changes, and when the start is over: the adaptive
 * schedule of flowstart-chirping (crates/chirping/src/adaptive.rs), where the reasons are given.
 * There is no test for a plateau of the delivery rate: rounds here are too uneven for it, since the
 * pause between two chirps is fixed when the first of them ends.
 */
#ifndef FS_SCHEDULE_H
#define FS_SCHEDULE_H

#include "flow.h"

/* Window growth per round trip in slow start. */
#define FS_DOUBLING (2 * FS_RATIO_ONE)

static __always_inline bool fs_agrees(__u64 a, __u64 b)
{
	return (a > b ? a - b : b - a) * FS_RATIO_ONE <= fs_min(a, b) * fs_parameters.tolerance;
}

/* The more cautious of the last two readings; zero if there are none. */
static __always_inline __u64 fs_shown_gap(const struct fs_flow *flow)
{
	return fs_max(flow->gaps[0], flow->gaps[1]);
}

/* The first chirp is centred on a gap that the RTT suggests, and nothing follows before its
 * first ACK is due. */
static __always_inline void fs_begin(struct fs_flow *flow, __u64 srtt, __u32 packets)
{
	__u64 gap = fs_parameters.max_first_gap, spread = fs_parameters.min_first_gap;

	if (srtt) {
		gap = srtt / (fs_parameters.probe_divisor ? fs_parameters.probe_divisor : 1);
		spread = srtt / (packets ? packets : 1);
	}
	gap = fs_max(gap, fs_min(fs_parameters.min_first_gap, spread));
	flow->probe = fs_max(fs_min(gap, fs_parameters.max_first_gap), 1);
	flow->load = fs_max(srtt / (packets ? packets : 1), flow->probe);
}

/* A chirp said something; `knee` if it was a knee that may end the start, `usual` if another start
 * may go on. */
static __always_inline void fs_take(struct fs_flow *flow, const struct fs_reading *reading, bool knee, __u64 load, bool usual)
{
	__u64 gap = fs_max(fs_min(reading->gap, FS_LONGEST), 1);

	flow->unclear = 0;
	if (knee && flow->newest_is_knee && flow->gaps[0] && fs_agrees(gap, flow->gaps[0]))
		flow->agreed++;
	else if (knee && load <= gap && !usual)
		/* Sent with more load than it says there is room for: there is no more to find. Where
		 * nothing is marked a single chirp is not believed. */
		flow->agreed = fs_parameters.agreeing;
	else
		flow->agreed = knee;
	flow->gaps[1] = flow->gaps[0];
	flow->gaps[0] = gap;
	flow->newest_is_knee = knee;
	flow->probe = fs_max(gap * fs_parameters.centre / FS_RATIO_ONE, 1);
	/* A flow that fills its path already does not take more on the word of a single chirp. */
	if (flow->window && !flow->gaps[1])
		return;
	/* As far as two chirps have shown that there is room, and no faster than the growth allows
	 * since this chirp left. */
	flow->load = fs_min(flow->load, fs_max(fs_shown_gap(flow), fs_divided(load, fs_parameters.growth)));
	/* Two chirps that show less room than the load takes cannot both be wrong. */
	if (flow->gaps[1])
		flow->load = fs_max(flow->load, fs_min(flow->gaps[0], flow->gaps[1]));
}

/* The start may be left to the one that everybody uses: nothing was marked, which would tell more
 * than delays (slow start ends at the first mark), and no window is at stake. */
static __always_inline bool fs_may_hand_over(const struct fs_flow *flow, const struct fs_private *ca, const struct tcp_sock *tp)
{
	return !flow->window && !ca->dctcp && tp->delivered_ce == flow->quiet.delivered_ce;
}

/* A chirp could not be read, or the path is crowded: grow as slow start would while the window
 * is small, then more slowly. */
static __always_inline void fs_take_unclear(struct fs_flow *flow, __u64 load, __u64 rtt, bool usual)
{
	__u64 doubled = fs_divided(load, FS_DOUBLING);
	__u64 blind = usual || doubled * fs_parameters.doubling_packets >= rtt ? doubled : fs_divided(load, fs_parameters.blind_growth);

	flow->unclear++;
	/* No faster than the fastest chirp that could be read, if there was one. */
	flow->load = fs_min(flow->load, fs_max(blind, fs_shown_gap(flow)));
}

/* True if the smallest of the last RTTs (µs) has risen. */
static __always_inline bool fs_is_delayed(struct fs_flow *flow, const struct fs_private *ca, __u32 rtt)
{
	__u64 limit = (__u64)ca->min_rtt * 1000 * fs_parameters.delay_share / FS_RATIO_ONE;
	__u32 smallest;

	if (!flow->recent || rtt < flow->recent_rtt)
		flow->recent_rtt = rtt;
	if (++flow->recent < fs_parameters.delay_samples)
		return false;
	flow->recent = 0;
	smallest = flow->recent_rtt;
	limit = fs_min(fs_max(limit, fs_parameters.min_delay), fs_parameters.max_delay);
	return (__u64)(smallest - ca->min_rtt) * 1000 > limit;
}

/* True if the application gave nothing more to send. */
static __always_inline bool fs_is_app_limited(const struct tcp_sock *tp)
{
	return !before(tp->snd_nxt, tp->write_seq);
}

/* The time per packet that the stack's last delivery rate sample says (Linux tcp_rate_gen), in
 * ns; zero if it says nothing. */
static __always_inline __u64 fs_delivered_gap(const struct tcp_sock *tp)
{
	__u32 delivered = tp->rate_delivered;

	if (!delivered || BPF_CORE_READ_BITFIELD(tp, rate_app_limited))
		return 0;
	return fs_min((__u64)tp->rate_interval_us * 1000 / delivered, FS_LONGEST);
}

/* True if packets at this gap are as fast as the application allows, or nearly so. */
static __always_inline bool fs_is_at_floor(const struct fs_flow *flow, __u64 gap)
{
	__u64 floor = flow->leaving.floor;

	return floor && gap && (gap <= floor || fs_agrees(gap, floor));
}

static __always_inline void fs_begin_round(struct fs_flow *flow, struct fs_private *ca, const struct tcp_sock *tp)
{
	flow->round++;
	flow->round_at = tp->tcp_clock_cache;
	ca->round_end = tp->snd_nxt;
	flow->round_delivered = tp->delivered;
	flow->round_ce = tp->delivered_ce;
}

struct fs_verdict {
	__u32 reason;
	/* The gap whose packets fill the path. */
	__u64 gap;
};

/* Chirps cannot be read, or cannot be believed. */
static __always_inline bool fs_is_unreadable(const struct fs_flow *flow, const struct fs_private *ca, const struct tcp_sock *tp,
					     bool completed)
{
	__u64 now = tp->tcp_clock_cache, shown = flow->gaps[1] ? fs_min(flow->gaps[0], flow->gaps[1]) : flow->gaps[0];
	bool vain = completed && flow->is_vain && (flow->unclear >= fs_parameters.unread || !flow->read_at);

	if (vain && fs_is_impatient(now, flow->read_at, (__u64)ca->min_rtt * 1000, fs_parameters.patience))
		return true;
	return flow->newest_is_knee && !before(tp->snd_una, ca->round_end) &&
	       fs_is_refuted(shown, tp->delivered - flow->round_delivered, now - flow->round_at, fs_parameters.refuted,
			     2 * fs_parameters.packets);
}

/* Whether the start is over, after an ACK with this RTT (µs, 0 if it has none). */
static __always_inline bool fs_is_over(struct fs_verdict *verdict, struct fs_flow *flow, struct fs_private *ca, const struct tcp_sock *tp,
				       __u32 rtt, bool completed)
{
	__u64 gap = fs_shown_gap(flow);
	bool over = false, delayed, usual = fs_may_hand_over(flow, ca, tp);

	if (completed && gap && flow->agreed >= fs_parameters.agreeing && (flow->load <= gap || fs_agrees(flow->load, gap))) {
		verdict->reason = FS_PIPE_FULL;
		verdict->gap = gap;
		return true;
	}
	/* Two chirps have shown room for as much as the application allows: whether there is more does
	 * not matter. */
	if (completed && flow->gaps[1] && fs_is_at_floor(flow, gap) && fs_is_at_floor(flow, flow->load)) {
		verdict->reason = FS_RATE_LIMIT;
		verdict->gap = flow->leaving.floor;
		return true;
	}
	verdict->gap = 0;
	if (usual && fs_is_unreadable(flow, ca, tp, completed)) {
		verdict->reason = FS_UNREADABLE;
		return true;
	}
	if (completed)
		flow->is_vain = false;
	delayed = rtt && fs_is_delayed(flow, ca, rtt) && flow->unclear;
	if (!before(tp->snd_una, ca->round_end)) {
		__u64 delivered = tp->delivered - flow->round_delivered;
		__u64 marked = tp->delivered_ce - flow->round_ce;

		over = true;
		if (marked * FS_RATIO_ONE > delivered * fs_parameters.mark_share)
			verdict->reason = FS_MARKS;
		else if (flow->round >= fs_parameters.max_rounds && !fs_is_app_limited(tp))
			verdict->reason = usual ? FS_UNREADABLE : FS_LIMIT;
		else
			over = false;
		fs_begin_round(flow, ca, tp);
	}
	if (delayed) {
		/* A queue, or a few packets of a chirp that waited for each other. */
		verdict->reason = usual ? FS_UNREADABLE : FS_DELAY;
		over = true;
	}
	/* No more than what was sent, and no more than what arrived. */
	verdict->gap = fs_max(fs_max(fs_delivered_gap(tp), flow->load), 1);
	return over;
}

/* The window after a loss, before it is reduced. */
static __always_inline __u32 fs_window_at_loss(const struct fs_flow *flow, const struct fs_private *ca, __u32 in_flight)
{
	__u64 gap = fs_shown_gap(flow);
	__u64 pipe = gap && flow->agreed ? fs_packets_in((__u64)ca->min_rtt * 1000, gap) : 0;
	/* What is measured may be more than is in flight, but not by more than one round's growth. */
	__u64 most = (__u64)in_flight * fs_parameters.growth / FS_RATIO_ONE;

	return fs_max(fs_max(in_flight, fs_min(pipe, most)), FS_MIN_CWND);
}

/* True if a loss is not taken for congestion: the load is below half of what chirps have shown. */
static __always_inline bool fs_is_pardoned(const struct fs_flow *flow)
{
	__u64 gap = fs_shown_gap(flow);

	return flow->losses <= fs_parameters.pardoned_losses && gap && gap * 2 <= flow->load;
}

#endif
