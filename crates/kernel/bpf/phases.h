/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The phases of a connection: chirping, and what comes after it.
 */
#ifndef FS_PHASES_H
#define FS_PHASES_H

#include "quiet.h"
#include "schedule.h"

static __always_inline bool has_cubic(void)
{
	return fs_parameters.avoidance == FS_CUBIC && bpf_ksym_exists(cubictcp_cong_avoid);
}

/* Congestion avoidance is CUBIC's, which keeps its state in the socket. */
static __always_inline bool is_cubic(const struct fs_private *ca)
{
	return ca->cubic_is_ours && !ca->dctcp;
}

static __always_inline struct fs_flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&fs_flows, sk, 0, 0);
}

/* A chirp of this start has left, or is leaving. */
static __always_inline bool has_chirped(const struct fs_flow *flow)
{
	return flow->chirps != flow->first_chirp || flow->is_leaving;
}

/* A new start, or a new search for more than `window` packets. */
static __noinline int begin_chirping(struct sock *sk, struct fs_flow *flow, __u32 window)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_event said = { .kind = FS_EVENT_BEGIN };
	struct fs_trains *trains = bpf_sk_storage_get(&fs_trains, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!flow || !trains) {
		ca->phase = FS_AVOIDANCE;
		return 0;
	}
	flow->began = tp->tcp_clock_cache;
	flow->gaps[0] = flow->gaps[1] = 0;
	flow->agreed = flow->unclear = flow->losses = 0;
	flow->recent = flow->round = 0;
	flow->read_at = 0;
	flow->is_vain = false;
	flow->delivered_before = tp->delivered;
	flow->pipe = flow->ungrown = 0;
	flow->first_chirp = flow->chirps;
	flow->tail = flow->head = 0;
	flow->read_packets = 0;
	flow->is_leaving = flow->is_void = flow->is_stalled = flow->newest_is_knee = false;
	flow->window = window;
	flow->una = tp->snd_una;
	fs_points_init(&trains->points, fs_parameters.jitter);
	fs_begin_round(flow, ca, tp);
	ca->phase = FS_CHIRPING;
	fs_tell(sk, flow, &said);
	return 0;
}

/* The bottleneck marks: the connection is DCTCP's from then on. Before, nobody knows whether any
 * mark will ever come, and it is CUBIC's. */
static __always_inline bool is_marked(const struct tcp_sock *tp)
{
	return fs_ecn_is_negotiated(tp) && tp->delivered_ce;
}

/* Begins again at the rate that was good, with the window `cwnd` that the stack has by then; not
 * where slow start from there is as fast, or chirps could not be read the last time. */
static __noinline int resume(struct sock *sk, __u32 cwnd)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_flow *flow = flow_of(sk);
	__u64 srtt = (__u64)(tp->srtt_us >> 3) * 1000, min_rtt = (__u64)ca->min_rtt * 1000;

	if (!flow || !fs_parameters.again || tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH || !ca->min_rtt || !flow->was_read ||
	    !fs_is_worth_chirping(cwnd, tp->snd_ssthresh, fs_parameters.again_growth)) {
		ca->phase = FS_AVOIDANCE;
		return 0;
	}
	flow->probe = fs_max(min_rtt / (tp->snd_ssthresh ? tp->snd_ssthresh : 1) * fs_parameters.restart_gap / FS_RATIO_ONE, 1);
	flow->load = fs_max(fs_max(srtt, min_rtt) / (cwnd ? cwnd : 1), flow->probe);
	flow->is_known = true;
	return begin_chirping(sk, flow, 0);
}

/* The start is over. */
static __always_inline void leave(struct sock *sk, struct fs_flow *flow, __u32 cwnd, __u32 reason, __u64 gap)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_event said = { .kind = FS_EVENT_EXIT, .what = reason, .gap = gap };

	ca->phase = FS_AVOIDANCE;
	ca->round_end = tp->snd_nxt;
	ca->dctcp = is_marked(tp);
	flow->was_read = reason == FS_PIPE_FULL || reason == FS_RATE_LIMIT || reason == FS_MARKS;
	if (flow->window)
		fs_quiet_answered(&flow->quiet, tp, cwnd, flow->window);
	else
		flow->quiet.delivered_ce = tp->delivered_ce;
	/* The stack sets snd_cwnd itself after losses. */
	if (reason != FS_LOSS && reason != FS_TIMEOUT)
		tp->snd_cwnd = cwnd;
	/* Slow start goes on, with HyStart if it is CUBIC's, up to a threshold from before. */
	if (reason != FS_LOSS && reason != FS_TIMEOUT && reason != FS_UNREADABLE)
		tp->snd_ssthresh = cwnd;
	if (reason == FS_UNREADABLE) {
		flow->pipe = flow->newest_is_knee ? fs_packets_in((__u64)ca->min_rtt * 1000, fs_shown_gap(flow)) : 0;
		fs_begin_round(flow, ca, tp);
	}
	ca->cubic_is_ours = has_cubic();
	if (ca->cubic_is_ours)
		cubictcp_init(sk);
	bpf_sk_storage_delete(&fs_trains, sk);
	fs_tell(sk, flow, &said);
}

/* Packets by which slow start, where it goes on instead of chirps, may grow for `acked`. */
static __noinline __u32 grown(struct sock *sk, __u32 acked)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_flow *flow;

	if (tp->snd_cwnd >= tp->snd_ssthresh)
		return acked;
	flow = flow_of(sk);
	if (!flow || !flow->pipe)
		return acked;
	if (!before(tp->snd_una, ca->round_end)) {
		/* Chirps were wrong. */
		if (fs_is_refuted(fs_shown_gap(flow), tp->delivered - flow->round_delivered, tp->tcp_clock_cache - flow->round_at,
				  fs_parameters.refuted, fs_parameters.packets))
			flow->pipe = 0;
		fs_begin_round(flow, ca, tp);
	}
	return fs_grown(acked, tp->snd_cwnd, flow->pipe, fs_parameters.late_divisor, &flow->ungrown);
}

/* A running flow goes on with the window it had if chirps did not find more. Where the rate that
 * the application allows was the limit, the window must not be: it becomes what slow start would
 * have made of it, twice what is used (Linux tcp_is_cwnd_limited). */
static __always_inline __u32 window_found(const struct fs_flow *flow, const struct fs_private *ca, const struct tcp_sock *tp,
					   const struct fs_verdict *verdict)
{
	__u32 packets = fs_packets_in((__u64)ca->min_rtt * 1000, verdict->gap);

	if (verdict->reason == FS_UNREADABLE) {
		packets = fs_slow_start_window(flow->first_packets, tp->delivered - flow->delivered_before, packets_in_flight(tp));
		return fs_max(fs_min(packets, tp->snd_ssthresh), FS_MIN_CWND);
	}
	if (verdict->reason == FS_RATE_LIMIT)
		packets = fs_min((__u64)packets * 2, 0x7fffffff);
	return fs_max(fs_max(packets, flow->window), FS_MIN_CWND);
}

#endif
