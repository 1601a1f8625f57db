/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What ACKs say of the chirps in flight. The RTT of an ACK is that of the newest packet it
 * acknowledges, so that packet left at "now less RTT". Times of departure and delays both come from
 * there, and delayed ACKs make a chirp coarser, not wrong.
 */
#ifndef FS_ACKS_H
#define FS_ACKS_H

#include "phases.h"

/* Chirps that one ACK can complete; the rest waits for the next. */
#define FS_TRAINS_PER_ACK 4
/* The stack sends at once what the pacing rate gives in 2^-10 s (sk_pacing_shift), if the device
 * takes it. */
#define FS_AUTOSIZE_NS 976562ull

/* The chirp at the tail is acknowledged as a whole. */
static __noinline int complete(struct sock *sk, struct fs_flow *flow, struct fs_trains *trains)
{
	struct fs_reading reading = {};
	struct fs_reading_rule rule = {
		.min_points = fs_parameters.min_points,
		.contrast = fs_parameters.contrast,
		.crowded = fs_parameters.crowded,
	};
	struct fs_evidence_rule evidence = {
		.drowned = fs_parameters.drowned,
		.clear = fs_parameters.clear,
		.standing_out = fs_parameters.standing_out,
	};
	struct fs_private *ca = inet_csk_ca(sk);
	struct fs_event said = { .kind = FS_EVENT_CHIRP };
	__u64 min_rtt = (__u64)ca->min_rtt * 1000, now = tcp_sk(sk)->tcp_clock_cache;
	const struct fs_train *train;
	bool is_read = false, usual;

	if (!flow || !trains)
		return 0;
	train = &trains->of[flow->tail % FS_TRAINS];
	usual = fs_may_hand_over(flow, ca, tcp_sk(sk));
	/* A burst has no gaps to be regressed on. */
	if (!train->first_gap)
		rule.crowded = FS_NEVER_CROWDED;
	said.number = flow->chirps_read++;
	said.packets = train->packets;
	said.begin = train->begin;
	said.first_gap = train->first_gap;
	said.step = train->step;
	said.points = trains->points.points;
	if (!flow->is_void && flow->is_stalled) {
		/* The stack holds segments back where it hopes to send more at once (see can_chirp_precisely):
		 * the load must grow all the same. */
		fs_take_unclear(flow, train->load, min_rtt, usual);
	} else if (!flow->is_void) {
		fs_read(&reading, &trains->points, &rule, flow->has_noise ? flow->noise : 0);
		if (reading.has_noise) {
			flow->noise = flow->has_noise ? (flow->noise + reading.noise) / 2 : reading.noise;
			flow->has_noise = true;
		}
		is_read = fs_is_readable(&reading, &trains->points, &evidence, min_rtt);
		if (is_read)
			fs_take(flow, &reading, fs_is_evidence(&reading, &evidence), train->load, usual);
		else
			fs_take_unclear(flow, train->load, min_rtt, usual);
	} else {
		/* What is lost, or comes out of order, cannot be read. */
		flow->unclear++;
	}
	if (is_read)
		flow->is_vain = false;
	else if (train->packets >= 2 * fs_parameters.min_points)
		flow->is_vain = true;
	/* Noise may be the host's: the next chirp may be read. */
	if (is_read || (!flow->read_at && reading.has_noise && !fs_is_bunched(&trains->points)))
		flow->read_at = now;
	said.what = flow->is_void ? FS_EVENT_VOID : reading.says;
	said.gap = reading.gap;
	said.noise = reading.noise;
	fs_tell(sk, flow, &said);
	flow->read_packets = 0;
	flow->is_void = flow->is_stalled = false;
	fs_points_init(&trains->points, fs_parameters.jitter);
	flow->tail++;
	return 0;
}

/* The newest packet of an ACK, number `packets` of the chirp at the tail counted from 1, has
 * this RTT in µs. */
static __noinline int add_point(struct fs_flow *flow, struct fs_trains *trains, __u32 packets, __u64 now, __u32 rtt)
{
	__u64 left = now - rtt, gap = 0, planned;
	const struct fs_train *train;
	__u32 news;

	if (!flow || !trains)
		return 0;
	train = &trains->of[flow->tail % FS_TRAINS];
	news = packets - flow->read_packets;
	if (!news || packets > FS_MAX_CHIRP)
		return 0;
	if (trains->points.points) {
		gap = fs_min(fs_minus(left, flow->last_sent) * 1000, FS_LONGEST);
		/* Two packets left further apart than planned by this factor: the chirp is not what it should
		 * be. */
		planned = news * (fs_train_gap(train, flow->read_packets) + fs_train_gap(train, packets - 1)) / 2;
		if (train->first_gap && gap * FS_RATIO_ONE > planned * fs_parameters.stall)
			flow->is_stalled = true;
	}
	fs_points_add(&trains->points, gap, news, (__u64)rtt * 1000);
	flow->last_sent = left;
	flow->read_packets = packets;
	return 0;
}

/* Of a link that was silent while the flow began the smoothed RTT tells for long: the load is the
 * initial window in the RTT of this ACK, in µs, at least, if that is so much shorter. */
static __always_inline void follow_rtt(struct fs_flow *flow, const struct tcp_sock *tp, __s32 rtt)
{
	__u64 smoothed = tp->srtt_us >> 3, now = rtt > 0 ? rtt : 0;

	if (!now || flow->window || !flow->first_packets)
		return;
	if (smoothed * FS_RATIO_ONE > now * fs_parameters.stale_rtt)
		flow->load = fs_min(flow->load, fs_max(now * 1000 / flow->first_packets, 1));
}

/* What this ACK says of the chirps in flight. Returns true if it completed one. */
static __always_inline bool read_chirps(struct sock *sk, struct fs_flow *flow, struct fs_trains *trains, __s32 rtt)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	__u32 una = tp->snd_una, mss, end;
	bool completed = false;
	struct fs_train *train;
	int i;

	if (rtt <= 0 || tp->sacked_out || tp->retrans_out)
		flow->is_void = true;
	for (i = 0; i < FS_TRAINS_PER_ACK; i++) {
		if (flow->tail == flow->head && !(flow->is_leaving && flow->is_recorded))
			break;
		train = &trains->of[flow->tail % FS_TRAINS];
		if (!before(train->begin, una))
			break;
		mss = train->mss ? train->mss : 1;
		end = train->begin + train->packets * mss;
		/* The packet with the RTT is the newest: it may belong to a later chirp. */
		if (!before(end, una) && rtt > 0)
			add_point(flow, trains, (una - train->begin + mss - 1) / mss, tp->tcp_mstamp, rtt);
		if (before(una, end))
			break;
		if (flow->tail == flow->head) {
			/* All of it is acknowledged before the stack asked for the next. */
			flow->is_leaving = false;
			flow->head++;
			if (!flow->has_begun)
				flow->chirps++;
			flow->has_begun = false;
		}
		fs_find_knee(&trains->points);
		complete(sk, flow, trains);
		completed = true;
	}
	return completed;
}

/* True if single segments with this gap will leave in time although the window is full. If the
 * stack could send several at once by the pacing rate (a millisecond's worth, tcp_tso_autosize)
 * and an ACK is expected soon, it holds a single segment back (tcp_tso_should_defer) until the
 * ACK has come, unless it is a large enough part of the window. */
static __always_inline bool can_chirp_precisely(struct sock *sk, __u32 window, __u64 gap)
{
	return gap * 2 > FS_AUTOSIZE_NS || window <= sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_tso_win_divisor;
}

/* In congestion avoidance with DCTCP: chirps again when marks stay away. */
static __always_inline void watch_marks(struct sock *sk, struct fs_private *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_flow *flow;
	__u64 srtt = (__u64)(tp->srtt_us >> 3) * 1000, gap;

	if (before(tp->snd_una, ca->round_end))
		return;
	ca->round_end = tp->snd_nxt;
	flow = flow_of(sk);
	if (!flow || !srtt || !fs_quiet_round(&flow->quiet, tp, is_cwnd_limited(tp)))
		return;
	gap = fs_max(srtt / (tp->snd_cwnd ? tp->snd_cwnd : 1), 1);
	/* The smallest gap of a chirp with the published geometry is a quarter of the average. */
	if (!can_chirp_precisely(sk, tp->snd_cwnd, gap / 4)) {
		flow->quiet.rounds = 0;
		return;
	}
	flow->probe = flow->load = gap;
	flow->is_known = true;
	begin_chirping(sk, flow, tp->snd_cwnd);
}

#endif
