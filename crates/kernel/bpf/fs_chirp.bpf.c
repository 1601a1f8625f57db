// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Paced Chirping (Misund and Briscoe 2019) on the stock kernel, with the adaptive schedule of flowstart; then DCTCP if the connection has ECN,
 * else CUBIC or Reno.
 *
 * How a chirp leaves: the stack asks min_tso_segs before it sends. There the pacing rate is set so that the gap after the next segment is
 * the chirp's, and the window so that exactly this segment may leave; the pacing timer releases the next. As the stack asks also when it
 * does not send, the position in a chirp comes from snd_nxt. The stack does not pace the first ten segments of a connection: the first
 * chirp is the initial window as a burst, and the spacing of its ACKs is read like any other chirp's.
 *
 * What an ACK says: its RTT is that of the newest packet it acknowledges, so that packet left at "now less RTT". Times of departure and
 * delays both come from there, and delayed ACKs make a chirp coarser, not wrong.
 */
#include "quiet.h"
#include "schedule.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* What the stack uses unless told otherwise (net.ipv4.tcp_min_tso_segs). */
#define FS_USUAL_TSO_SEGS 2
/* Windows that the stack keeps in a socket's send buffer (Linux tcp_sndbuf_expand). */
#define FS_USUAL_SNDBUF_EXPAND 2
/* Segments of a connection that the stack does not pace (Linux tcp_update_skb_after_send). */
#define FS_UNPACED_SEGMENTS 10
/* The stack sends at once what the pacing rate gives in 2^-10 s (sk_pacing_shift), if the device takes it. */
#define FS_AUTOSIZE_NS 976562ull
/* Chirps that one ACK can complete; the rest waits for the next. */
#define FS_TRAINS_PER_ACK 4

static __always_inline bool has_cubic(void)
{
	return fs_parameters.avoidance == FS_CUBIC && bpf_ksym_exists(cubictcp_cong_avoid);
}

/* Congestion avoidance is CUBIC's, which keeps its state in the socket. */
static __always_inline bool is_cubic(const struct fs_private *ca)
{
	return ca->cubic_is_ours;
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

	if (!flow || !bpf_sk_storage_get(&fs_trains, sk, 0, BPF_SK_STORAGE_GET_F_CREATE)) {
		ca->phase = FS_AVOIDANCE;
		return 0;
	}
	flow->began = tp->tcp_clock_cache;
	flow->gaps[0] = flow->gaps[1] = 0;
	flow->agreed = flow->unclear = flow->losses = 0;
	flow->recent = flow->round = 0;
	flow->first_chirp = flow->chirps;
	flow->tail = flow->head = 0;
	flow->read_packets = 0;
	flow->is_leaving = flow->is_void = flow->is_stalled = flow->newest_is_knee = false;
	flow->window = window;
	flow->una = tp->snd_una;
	fs_points_init(&flow->points, fs_parameters.jitter);
	fs_begin_round(flow, ca, tp);
	ca->phase = FS_CHIRPING;
	fs_tell(sk, flow, &said);
	return 0;
}

/* Begins again at the rate that was good. */
static __noinline int resume(struct sock *sk, __u32 cwnd)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_flow *flow = flow_of(sk);
	__u64 srtt = (__u64)(tp->srtt_us >> 3) * 1000, min_rtt = (__u64)ca->min_rtt * 1000;

	if (!flow || !fs_parameters.again || tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH || !ca->min_rtt) {
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
	ca->dctcp = fs_ecn_is_negotiated(tp);
	if (flow->window)
		fs_quiet_answered(&flow->quiet, tp, cwnd, flow->window);
	else
		flow->quiet.delivered_ce = tp->delivered_ce;
	/* The stack sets snd_cwnd itself after losses. */
	if (reason != FS_LOSS && reason != FS_TIMEOUT) {
		tp->snd_cwnd = cwnd;
		tp->snd_ssthresh = cwnd;
	}
	ca->cubic_is_ours = !ca->dctcp && has_cubic();
	if (ca->cubic_is_ours)
		cubictcp_init(sk);
	bpf_sk_storage_delete(&fs_trains, sk);
	fs_tell(sk, flow, &said);
}

/* A running flow goes on with the window it had if chirps did not find more. */
static __always_inline __u32 window_found(const struct fs_flow *flow, __u32 packets)
{
	return fs_max(fs_max(packets, flow->window), FS_MIN_CWND);
}

SEC("struct_ops/init")
void BPF_PROG(fs_chirp_init, struct sock *sk)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_flow *flow;

	__builtin_memset(ca->cubic, 0, sizeof(ca->cubic));
	fs_ecn_init(&ca->ecn, tp, fs_parameters.initial_alpha);
	ca->prior_cwnd = 0;
	ca->min_rtt = 0;
	ca->round_end = tp->snd_nxt;
	ca->phase = FS_AVOIDANCE;
	ca->dctcp = fs_ecn_is_negotiated(tp);
	ca->cubic_is_ours = !ca->dctcp && has_cubic();
	if (ca->cubic_is_ours)
		cubictcp_init(sk);
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	flow = bpf_sk_storage_get(&fs_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	/* Without memory, and on a connection that is running already, it is an avoidance only. */
	if (!flow || tp->data_segs_out)
		return;
	flow->quiet.delivered_ce = tp->delivered_ce;
	begin_chirping(sk, flow, 0);
}

SEC("struct_ops/release")
void BPF_PROG(fs_chirp_release, struct sock *sk)
{
	bpf_sk_storage_delete(&fs_trains, sk);
	bpf_sk_storage_delete(&fs_flows, sk);
}

enum pull {
	PULL_CHIRP,
	PULL_HOLD,
	PULL_TOO_LITTLE_DATA,
};

/* The next chirp; planned anew with what is known by then until its first packet leaves. */
static __always_inline enum pull pull(struct fs_flow *flow, const struct tcp_sock *tp, __u32 in_flight)
{
	__u32 mss = tp->mss_cache ? tp->mss_cache : 1;
	__u32 queued = (tp->write_seq - tp->snd_nxt + mss - 1) / mss;
	bool is_first = flow->chirps == flow->first_chirp;
	struct fs_geometry shape;
	__u64 average;
	__u32 packets;

	if (is_first && !flow->window) {
		packets = fs_min(fs_max(tp->snd_cwnd, FS_MIN_CWND), FS_MAX_CHIRP);
		/* A transfer that fits into the initial window is over before anything could be learnt from it. */
		if (queued < packets)
			return PULL_TOO_LITTLE_DATA;
		if (!flow->is_known)
			fs_begin(flow, (__u64)(tp->srtt_us >> 3) * 1000, packets);
		flow->first_packets = packets;
		average = flow->probe;
	} else {
		/* Until the first chirp is read nobody knows whether the path holds more than the initial window. */
		if (!flow->gaps[0] && !flow->unclear && !flow->window && in_flight >= flow->first_packets)
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
		return fs_gap(leaving->first_gap, leaving->step, k + 1);
	next = fs_max(flow->first + flow->load * leaving->packets, now + fs_min(flow->probe, flow->load));
	return fs_minus(next, now);
}

SEC("struct_ops/min_tso_segs")
__u32 BPF_PROG(fs_chirp_min_tso_segs, struct sock *sk)
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
		enum pull pulled = pull(flow, tp, in_flight);

		flow->has_begun = false;
		if (pulled != PULL_CHIRP)
			flow->is_leaving = false;
		if (pulled == PULL_HOLD)
			tp->snd_cwnd = fs_max(in_flight, 1);
		if (pulled != PULL_CHIRP)
			return 1;
		if (flow->is_recorded)
			trains->of[flow->head % FS_TRAINS] = flow->leaving;
	}
	if (!flow->leaving.first_gap) {
		tp->snd_cwnd = fs_max(in_flight + flow->leaving.packets - sent, 1);
		return FS_USUAL_TSO_SEGS;
	}
	pause = fs_max(pause_after(flow, tp, sent), 1);
	/* The stack gives a late packet back at most half of its gap (Linux tcp_update_skb_after_send). That is right within a chirp; but when
	 * one begins, or ends, nothing was late. */
	if (!sent || sent + 1 == flow->leaving.packets)
		pause += fs_min(pause, fs_minus(tp->tcp_clock_cache, tp->tcp_wstamp_ns));
	sk->sk_pacing_rate = fs_min(fs_max((__u64)tp->mss_cache * 1000000000ull / pause, 1), sk->sk_max_pacing_rate);
	tp->snd_cwnd = in_flight + 1;
	return 1;
}

/* The chirp at the tail is acknowledged as a whole. */
static __noinline int complete(struct sock *sk, struct fs_flow *flow, struct fs_train *train)
{
	struct fs_reading reading = {};
	struct fs_reading_rule rule = {
		.min_points = fs_parameters.min_points,
		.contrast = fs_parameters.contrast,
		.crowded = fs_parameters.crowded,
	};
	struct fs_private *ca = inet_csk_ca(sk);
	struct fs_event said = { .kind = FS_EVENT_CHIRP };

	if (!flow || !train)
		return 0;
	/* A burst has no gaps to be regressed on. */
	if (!train->first_gap)
		rule.crowded = FS_NEVER_CROWDED;
	said.number = flow->chirps_read++;
	said.packets = train->packets;
	said.begin = train->begin;
	said.first_gap = train->first_gap;
	said.step = train->step;
	said.points = flow->points.points;
	if (!flow->is_void && flow->is_stalled) {
		/* The stack holds segments back where it hopes to send more at once (see can_chirp_precisely): the load must grow all the same. */
		fs_take_unclear(flow, train->load, (__u64)ca->min_rtt * 1000);
	} else if (!flow->is_void) {
		fs_read(&reading, &flow->points, &rule, flow->has_noise ? flow->noise : 0);
		if (reading.has_noise) {
			flow->noise = flow->has_noise ? (flow->noise + reading.noise) / 2 : reading.noise;
			flow->has_noise = true;
		}
		if (reading.says == FS_CLEAR || reading.says == FS_KNEE)
			fs_take(flow, &reading, train->load);
		else
			fs_take_unclear(flow, train->load, (__u64)ca->min_rtt * 1000);
	}
	said.what = flow->is_void ? FS_EVENT_VOID : reading.says;
	said.gap = reading.gap;
	said.noise = reading.noise;
	fs_tell(sk, flow, &said);
	flow->read_packets = 0;
	flow->is_void = flow->is_stalled = false;
	fs_points_init(&flow->points, fs_parameters.jitter);
	flow->tail++;
	return 0;
}

/* The newest packet of an ACK, number `packets` of this chirp counted from 1, has this RTT in µs. */
static __noinline int add_point(struct fs_flow *flow, const struct fs_train *train, __u32 packets, __u64 now, __u32 rtt)
{
	__u64 left = now - rtt, gap = 0, planned;
	__u32 news;

	if (!flow || !train)
		return 0;
	news = packets - flow->read_packets;
	if (!news || packets > FS_MAX_CHIRP)
		return 0;
	if (flow->points.points) {
		gap = fs_min(fs_minus(left, flow->last_sent) * 1000, FS_LONGEST);
		/* Two packets left further apart than planned by this factor: the chirp is not what it should be. */
		planned = news * (fs_gap(train->first_gap, train->step, flow->read_packets) + fs_gap(train->first_gap, train->step, packets - 1)) / 2;
		if (train->first_gap && gap * FS_RATIO_ONE > planned * fs_parameters.stall)
			flow->is_stalled = true;
	}
	fs_points_add(&flow->points, gap, news, (__u64)rtt * 1000);
	flow->last_sent = left;
	flow->read_packets = packets;
	return 0;
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
			add_point(flow, train, (una - train->begin + mss - 1) / mss, tp->tcp_mstamp, rtt);
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
		complete(sk, flow, train);
		completed = true;
	}
	return completed;
}

/* True if single segments with this gap will leave in time although the window is full. If the stack could send several at once by the pacing rate
 * (a millisecond's worth, tcp_tso_autosize) and an ACK is expected soon, it holds a single segment back (tcp_tso_should_defer) until
 * the ACK has come, unless it is a large enough part of the window. */
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

SEC("struct_ops/pkts_acked")
void BPF_PROG(fs_chirp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_verdict verdict = {};
	struct fs_trains *trains;
	struct fs_flow *flow;
	__s32 rtt = sample->rtt_us;
	bool completed;

	if (rtt > 0 && (!ca->min_rtt || (__u32)rtt < ca->min_rtt))
		ca->min_rtt = rtt;
	if (ca->phase != FS_CHIRPING) {
		if (is_cubic(ca) && bpf_ksym_exists(cubictcp_acked))
			cubictcp_acked(sk, sample);
		else if (ca->phase == FS_AVOIDANCE && ca->dctcp && fs_parameters.again &&
			 BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state) < TCP_CA_Recovery)
			watch_marks(sk, ca);
		return;
	}
	flow = flow_of(sk);
	trains = bpf_sk_storage_get(&fs_trains, sk, 0, 0);
	if (!flow || !trains || !ca->min_rtt)
		return;
	completed = read_chirps(sk, flow, trains, rtt);
	if (!flow->chirps || BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state) >= TCP_CA_Recovery)
		return;
	if (fs_is_over(&verdict, flow, ca, tp, rtt > 0 ? rtt : 0, completed))
		leave(sk, flow, window_found(flow, fs_packets_in((__u64)ca->min_rtt * 1000, verdict.gap)), verdict.reason, verdict.gap);
}

SEC("struct_ops/in_ack_event")
void BPF_PROG(fs_chirp_in_ack_event, struct sock *sk, __u32 flags)
{
	struct fs_private *ca = inet_csk_ca(sk);

	/* Marks count for DCTCP's share from the first packet on, also while nothing is reduced. */
	fs_ecn_on_ack(&ca->ecn, tcp_sk(sk), fs_parameters.gain_shift & 15);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(fs_chirp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct fs_flow *flow;

	if (ca->phase == FS_CHIRPING) {
		flow = flow_of(sk);
		/* With too little data for a chirp the window grows as in slow start. */
		if (flow && !has_chirped(flow))
			tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (is_cubic(ca) && bpf_ksym_exists(cubictcp_cong_avoid))
		cubictcp_cong_avoid(sk, ack, acked);
	else
		tcp_reno_cong_avoid(sk, ack, acked);
}

/* The threshold after marks while chirps look for more: there is no more than what they have shown so far. */
static __always_inline __u32 end_search(struct sock *sk, struct fs_flow *flow)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 gap = fs_shown_gap(flow);
	__u32 shown = gap ? fs_packets_in((__u64)ca->min_rtt * 1000, gap) : 0;

	shown = fs_max(fs_min(shown, packets_in_flight(tp)), flow->window);
	leave(sk, flow, shown, FS_MARKS, gap);
	ca->prior_cwnd = shown;
	return fs_dctcp_ssthresh(shown, ca->ecn.alpha);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(fs_chirp_ssthresh, struct sock *sk)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_flow *flow;

	if (ca->phase == FS_CHIRPING) {
		flow = flow_of(sk);
		if (flow && flow->window && !tp->lost_out && !tp->retrans_out)
			return end_search(sk, flow);
		if (flow && !has_chirped(flow) && tp->delivered_ce != flow->quiet.delivered_ce) {
			/* A start without chirps is slow start, which marks end. */
			leave(sk, flow, fs_max(tp->snd_cwnd, FS_MIN_CWND), FS_MARKS, 0);
			ca->prior_cwnd = tp->snd_cwnd;
			return ca->dctcp ? fs_dctcp_ssthresh(tp->snd_cwnd, ca->ecn.alpha) : fs_half(tp->snd_cwnd);
		}
		/* At the start nobody knows what marks mean at this bottleneck (Misund and Briscoe 2019): they reduce nothing. For a loss the
		 * threshold is set when the state changes. */
		return TCP_INFINITE_SSTHRESH;
	}
	ca->prior_cwnd = tp->snd_cwnd;
	if (ca->dctcp)
		return fs_dctcp_ssthresh(tp->snd_cwnd, ca->ecn.alpha);
	if (is_cubic(ca) && bpf_ksym_exists(cubictcp_recalc_ssthresh))
		return cubictcp_recalc_ssthresh(sk);
	return fs_half(tp->snd_cwnd);
}

static __always_inline void on_loss(struct sock *sk, bool timeout)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct fs_flow *flow = flow_of(sk);
	/* The lost packets were in flight. */
	__u32 in_flight = packets_in_flight(tp) + tp->lost_out, window;

	if (!flow) {
		tp->snd_ssthresh = fs_half(in_flight);
		return;
	}
	flow->losses++;
	flow->is_void = true;
	if (!timeout && fs_is_pardoned(flow)) {
		tp->snd_ssthresh = fs_max(in_flight, FS_MIN_CWND);
		ca->prior_cwnd = tp->snd_ssthresh;
		return;
	}
	window = fs_window_at_loss(flow, ca, in_flight);
	ca->prior_cwnd = window;
	tp->snd_ssthresh = fs_max((__u64)window * fs_parameters.loss_factor / FS_RATIO_ONE, FS_MIN_CWND);
	leave(sk, flow, window, timeout ? FS_TIMEOUT : FS_LOSS, fs_shown_gap(flow));
}

SEC("struct_ops/set_state")
void BPF_PROG(fs_chirp_set_state, struct sock *sk, __u8 new_state)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 old = BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state);
	__u8 phase = ca->phase;

	if (new_state == TCP_CA_Recovery && old != TCP_CA_Recovery) {
		if (phase == FS_CHIRPING) {
			on_loss(sk, false);
		} else if (ca->dctcp) {
			/* A loss halves the window whatever alpha says (RFC 8257 section 3.5). */
			ca->prior_cwnd = tp->snd_cwnd;
			tp->snd_ssthresh = fs_half(tp->snd_cwnd);
		}
	}
	/* A timeout during a recovery that was pardoned. */
	if (phase == FS_CHIRPING && new_state == TCP_CA_Loss) {
		on_loss(sk, true);
		ca->phase = fs_parameters.again ? FS_REPAIR : FS_AVOIDANCE;
	}
	if (phase == FS_REPAIR && new_state == TCP_CA_Open)
		resume(sk, tp->snd_cwnd);
	if (phase != FS_CHIRPING && is_cubic(ca) && bpf_ksym_exists(cubictcp_state))
		cubictcp_state(sk, new_state);
}

/* An application that sent little and then nothing gave chirps no occasion to find out whether their load was right: begin with the initial
 * window per round trip again. */
static __always_inline void restart(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct fs_flow *flow = flow_of(sk);

	if (flow)
		flow->load = fs_max(flow->load, (__u64)(tp->srtt_us >> 3) * 1000 / FS_UNPACED_SEGMENTS);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(fs_chirp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct fs_private *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE) {
		fs_ecn_on_packet(&ca->ecn, sk, event == CA_EVENT_ECN_IS_CE);
		return;
	}
	if (is_cubic(ca) && ca->phase != FS_CHIRPING && bpf_ksym_exists(cubictcp_cwnd_event))
		cubictcp_cwnd_event(sk, event);
	if (event == CA_EVENT_LOSS) {
		if (ca->phase == FS_CHIRPING)
			on_loss(sk, true);
		else if (ca->dctcp)
			tp->snd_ssthresh = fs_half(ca->prior_cwnd);
		/* What was lost is sent again in slow start; chirps begin again once nothing is missing. */
		if (fs_parameters.again)
			ca->phase = FS_REPAIR;
	} else if (event == CA_EVENT_CWND_RESTART && ca->phase == FS_AVOIDANCE && fs_parameters.again) {
		/* Idle for longer than a retransmission timeout. */
		resume(sk, FS_UNPACED_SEGMENTS);
	} else if (event == CA_EVENT_CWND_RESTART && ca->phase == FS_CHIRPING) {
		restart(sk);
	}
}

/* The send buffer is this many windows. While chirps are sent the window is only what is in flight, and a round trip later it may be as much
 * more as the load may grow. */
SEC("struct_ops/sndbuf_expand")
__u32 BPF_PROG(fs_chirp_sndbuf_expand, struct sock *sk)
{
	const struct fs_private *ca = inet_csk_ca(sk);

	return ca->phase == FS_CHIRPING ? FS_USUAL_SNDBUF_EXPAND * fs_parameters.growth / FS_RATIO_ONE : FS_USUAL_SNDBUF_EXPAND;
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(fs_chirp_undo_cwnd, struct sock *sk)
{
	const struct fs_private *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (ca->dctcp || ca->phase == FS_CHIRPING)
		return fs_max(tp->snd_cwnd, ca->prior_cwnd);
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops fs_chirp = {
	.init = (void *)fs_chirp_init,
	.release = (void *)fs_chirp_release,
	.min_tso_segs = (void *)fs_chirp_min_tso_segs,
	.pkts_acked = (void *)fs_chirp_pkts_acked,
	.in_ack_event = (void *)fs_chirp_in_ack_event,
	.cong_avoid = (void *)fs_chirp_cong_avoid,
	.ssthresh = (void *)fs_chirp_ssthresh,
	.set_state = (void *)fs_chirp_set_state,
	.cwnd_event = (void *)fs_chirp_cwnd_event,
	.sndbuf_expand = (void *)fs_chirp_sndbuf_expand,
	.undo_cwnd = (void *)fs_chirp_undo_cwnd,
	.flags = TCP_CONG_NEEDS_ECN,
	.name = "fs_chirp",
};
