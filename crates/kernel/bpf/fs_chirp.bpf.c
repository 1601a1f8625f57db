// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Paced Chirping (Misund and Briscoe 2019) on the stock kernel, with the adaptive schedule of
 * flowstart; then CUBIC or Reno, DCTCP from the first mark on. How chirps leave is in
 * departure.h, how they are read in acks.h, when they come in schedule.h. */
#include "acks.h"
#include "departure.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* Windows that the stack keeps in a socket's send buffer (Linux tcp_sndbuf_expand). */
#define FS_USUAL_SNDBUF_EXPAND 2
/* Packets (RFC 6928; Linux TCP_INIT_CWND). */
#define FS_INITIAL_WINDOW 10

/* A connection that has sent something with another control, and is in that one's start: nothing
 * was lost, marked, or found to be enough. iperf3 -C, for one, sends a cookie before it chooses.
 * Where the other start is over the window that it found is kept, and chirps come after an idle
 * time, as ever. */
static __always_inline bool is_starting(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH &&
	       BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state) < TCP_CA_CWR;
}

/* Chirps from where the other start is: a window beyond the largest chirp is known to be good. */
static __always_inline void take_over(struct sock *sk, struct fs_flow *flow)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	__u64 srtt = (__u64)(tp->srtt_us >> 3) * 1000;

	if (srtt && tp->snd_cwnd > FS_MAX_CHIRP) {
		flow->probe = flow->load = fs_max(srtt / tp->snd_cwnd, 1);
		flow->is_known = true;
	}
	begin_chirping(sk, flow, 0);
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
	ca->dctcp = is_marked(tp);
	ca->cubic_is_ours = has_cubic();
	if (ca->cubic_is_ours)
		cubictcp_init(sk);
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	flow = bpf_sk_storage_get(&fs_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	/* Without memory it is an avoidance only. */
	if (!flow)
		return;
	flow->quiet.delivered_ce = tp->delivered_ce;
	if (!tp->data_segs_out)
		begin_chirping(sk, flow, 0);
	else if (is_starting(sk))
		take_over(sk, flow);
}

SEC("struct_ops/release")
void BPF_PROG(fs_chirp_release, struct sock *sk)
{
	bpf_sk_storage_delete(&fs_trains, sk);
	bpf_sk_storage_delete(&fs_flows, sk);
}

SEC("struct_ops/min_tso_segs")
__u32 BPF_PROG(fs_chirp_min_tso_segs, struct sock *sk)
{
	return depart(sk);
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
	follow_rtt(flow, tp, rtt);
	completed = read_chirps(sk, flow, trains, rtt);
	if (!flow->chirps || BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state) >= TCP_CA_Recovery)
		return;
	if (fs_is_over(&verdict, flow, ca, tp, rtt > 0 ? rtt : 0, completed))
		leave(sk, flow, window_found(flow, ca, tp, &verdict), verdict.reason, verdict.gap);
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
	acked = grown(sk, acked);
	if (!acked)
		return;
	if (is_cubic(ca) && bpf_ksym_exists(cubictcp_cong_avoid))
		cubictcp_cong_avoid(sk, ack, acked);
	else
		tcp_reno_cong_avoid(sk, ack, acked);
}

/* The threshold after marks while chirps look for more: there is no more than what they have
 * shown so far. */
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
			return is_marked(tp) ? fs_dctcp_ssthresh(tp->snd_cwnd, ca->ecn.alpha) : fs_half(tp->snd_cwnd);
		}
		/* At the start nobody knows what marks mean at this bottleneck (Misund and
		 * Briscoe 2019): they reduce nothing. For a loss the threshold is set when the
		 * state changes. */
		return TCP_INFINITE_SSTHRESH;
	}
	ca->prior_cwnd = tp->snd_cwnd;
	ca->dctcp = is_marked(tp);
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

/* What is left of `window` packets after the idle time that is over now. */
static __always_inline __u32 decayed(const struct tcp_sock *tp, __u32 window)
{
	return fs_decayed(window, (__u32)bpf_jiffies64() - tp->lsndtime, tp->inet_conn.icsk_rto, FS_INITIAL_WINDOW);
}

/* An application that sent little and then nothing gave chirps no occasion to find out whether
 * their load was right: it becomes less, as a window would. */
static __always_inline void restart(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct fs_flow *flow = flow_of(sk);
	__u64 srtt = (__u64)(tp->srtt_us >> 3) * 1000;
	__u32 left;

	if (!flow || !flow->load || !srtt)
		return;
	left = decayed(tp, fs_packets_in(srtt, flow->load));
	flow->load = fs_max(flow->load, srtt / (left ? left : 1));
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
		/* What was lost is sent again in slow start; chirps begin again once nothing is
		 * missing. */
		if (fs_parameters.again)
			ca->phase = FS_REPAIR;
	} else if (event == CA_EVENT_CWND_RESTART && ca->phase == FS_AVOIDANCE && fs_parameters.again) {
		/* Idle for longer than a retransmission timeout. */
		resume(sk, decayed(tp, tp->snd_cwnd));
	} else if (event == CA_EVENT_CWND_RESTART && ca->phase == FS_CHIRPING) {
		restart(sk);
	}
}

/* The send buffer is this many windows. While chirps are sent the window is only what is in
 * flight, and a round trip later it may be as much more as the load may grow. */
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
