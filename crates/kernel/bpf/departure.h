/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * How chirps leave. The stack asks min_tso_segs before it sends. There the pacing rate is set so
 * that the gap after the next segment is the chirp's, and the window so that exactly this segment
 * may leave; the pacing timer releases the next. As the stack asks also when it does not send, the
 * position in a chirp comes from snd_nxt. The stack does not pace the first ten segments of a
 * connection: the first chirp is the initial window as a burst, and the spacing of its ACKs is read
 * like any other chirp's.
 */
#ifndef FS_DEPARTURE_H
#define FS_DEPARTURE_H

#include "phases.h"

/* What the stack uses unless told otherwise (net.ipv4.tcp_min_tso_segs). */
#define FS_USUAL_TSO_SEGS 2
/* Segments of a connection that the stack does not pace (Linux tcp_update_skb_after_send). */
#define FS_UNPACED_SEGMENTS 10

enum pull {
	PULL_CHIRP,
	PULL_HOLD,
	PULL_TOO_LITTLE_DATA,
};

/* The next chirp; planned anew with what is known by then until its first packet leaves. */
static __always_inline enum pull pull(struct fs_flow *flow, struct sock *sk, __u32 in_flight)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	__u32 mss = tp->mss_cache ? tp->mss_cache : 1;
	__u32 queued = (tp->write_seq - tp->snd_nxt + mss - 1) / mss;
	bool is_first = flow->chirps == flow->first_chirp;
	struct fs_geometry shape;
	__u64 average;
	__u32 packets;

	if (is_first && !flow->window) {
		packets = fs_min(fs_max(tp->snd_cwnd, FS_MIN_CWND), FS_MAX_CHIRP);
		/* A transfer that fits into the initial window is over before anything could be learnt from
		 * it. */
		if (queued < packets)
			return PULL_TOO_LITTLE_DATA;
		if (!flow->is_known)
			fs_begin(flow, (__u64)(tp->srtt_us >> 3) * 1000, packets);
		flow->first_packets = packets;
		average = flow->probe;
	} else {
		/* Until the first chirp is read nobody knows whether the path holds more than the initial
		 * window: a packet leaves for each that arrived. */
		if (!flow->gaps[0] && !flow->unclear && !flow->window)
			return PULL_HOLD;
		packets = fs_max(fs_min(fs_parameters.packets, queued), 1);
		average = fs_min(flow->probe, flow->load);
	}
	fs_geometry_of(&shape, packets, fs_min(average, FS_LONGEST), fs_parameters.geometry);
	flow->leaving.begin = tp->snd_nxt;
	flow->leaving.packets = packets;
	flow->leaving.mss = mss;
	flow->leaving.first_gap = fs_min(shape.first_gap, 0xffffffff);
	flow->leaving.step = fs_min(shape.step, 0xffffffff);
	flow->leaving.floor = fs_min(mss * 1000000000ull / fs_max(sk->sk_max_pacing_rate, 1), 0xffffffff);
	flow->leaving.load = flow->load;
	/* What the stack does not pace leaves as a burst. */
	if (is_first && tp->data_segs_out < FS_UNPACED_SEGMENTS)
		flow->leaving.first_gap = flow->leaving.step = 0;
	flow->first = tp->tcp_clock_cache;
	flow->is_leaving = true;
	flow->is_recorded = flow->head - flow->tail < FS_TRAINS - 1;
	return PULL_CHIRP;
}

/* The pause after packet `k` of the leaving chirp. */
static __always_inline __u64 pause_after(const struct fs_flow *flow, const struct tcp_sock *tp, __u32 k)
{
	const struct fs_train *leaving = &flow->leaving;
	__u64 now = tp->tcp_clock_cache, next;

	if (k + 1 < leaving->packets)
		return fs_train_gap(leaving, k + 1);
	next = fs_max(flow->first + flow->load * leaving->packets, now + fs_min(flow->probe, flow->load));
	return fs_minus(next, now);
}

/* What may leave now, and when the next may. Returns the fewest segments that the stack shall
 * send at once. */
static __always_inline __u32 depart(struct sock *sk)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_trains *trains;
	struct fs_flow *flow;
	__u32 in_flight, sent = 0, mss;
	__u64 pause;

	if (ca->phase != FS_CHIRPING)
		return FS_USUAL_TSO_SEGS;
	if (BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state) >= TCP_CA_Recovery)
		return 1;
	flow = flow_of(sk);
	trains = bpf_sk_storage_get(&fs_trains, sk, 0, 0);
	if (!flow || !trains) {
		ca->phase = FS_AVOIDANCE;
		return FS_USUAL_TSO_SEGS;
	}
	if (tp->snd_nxt == tp->write_seq)
		return 1;
	in_flight = packets_in_flight(tp);
	if (flow->is_leaving) {
		mss = flow->leaving.mss ? flow->leaving.mss : 1;
		sent = (tp->snd_nxt - flow->leaving.begin + mss - 1) / mss;
		if (sent && !flow->has_begun) {
			flow->has_begun = true;
			flow->chirps++;
		}
		if (sent >= flow->leaving.packets) {
			flow->is_leaving = false;
			flow->head += flow->is_recorded;
			sent = 0;
		}
	}
	if (!flow->is_leaving || !sent) {
		enum pull pulled = pull(flow, sk, in_flight);

		flow->has_begun = false;
		if (pulled != PULL_CHIRP)
			flow->is_leaving = false;
		if (pulled == PULL_HOLD) {
			sk->sk_pacing_rate = sk->sk_max_pacing_rate;
			tp->snd_cwnd = fs_max(flow->first_packets, 1);
		}
		if (pulled != PULL_CHIRP)
			return 1;
		if (flow->is_recorded)
			trains->of[flow->head % FS_TRAINS] = flow->leaving;
	}
	if (!flow->leaving.first_gap) {
		/* The stack would wait for what a burst takes at the rate that it has from the handshake,
		 * which may be that of a link that was silent. */
		sk->sk_pacing_rate = sk->sk_max_pacing_rate;
		tp->snd_cwnd = fs_max(in_flight + flow->leaving.packets - sent, 1);
		return FS_USUAL_TSO_SEGS;
	}
	pause = fs_max(pause_after(flow, tp, sent), 1);
	/* The stack gives a late packet back at most half of its gap (Linux tcp_update_skb_after_send).
	 * That is right within a chirp; but when one begins, or ends, nothing was late. */
	if (!sent || sent + 1 == flow->leaving.packets)
		pause += fs_min(pause, fs_minus(tp->tcp_clock_cache, tp->tcp_wstamp_ns));
	sk->sk_pacing_rate = fs_min(fs_max((__u64)tp->mss_cache * 1000000000ull / pause, 1), sk->sk_max_pacing_rate);
	tp->snd_cwnd = in_flight + 1;
	return 1;
}

#endif
