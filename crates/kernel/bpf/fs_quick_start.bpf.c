// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Quick-Start (RFC 4782) for hosts on the stock kernel: the congestion control, which judges
 * answers, sends at the granted rate for a round trip and goes on with slow start and CUBIC; and
 * the programs at devices that carry options (carrying.h, hearing.h) and at the root of control
 * groups, which makes room for them (room.h). Without a grant it is CUBIC. */
#include "hearing.h"
#include "room.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* What the stack uses unless told otherwise (net.ipv4.tcp_min_tso_segs). */
#define FS_USUAL_TSO_SEGS 2
#define FS_AF_INET6 10
/* Segments of a connection that the stack does not pace (Linux tcp_update_skb_after_send). */
#define FS_UNPACED_SEGMENTS 10

static __always_inline __u32 fs_min32(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 fs_max32(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

/* Headers of IP and TCP on a packet of this connection, in bytes. */
static __always_inline __u32 headers_of(const struct sock *sk)
{
	return tcp_sk((struct sock *)sk)->tcp_header_len + (sk->__sk_common.skc_family == FS_AF_INET6 ? 40 : 20);
}

/* The request of a connection that came in is kept by its addresses until it has a socket. */
static __always_inline struct fs_ask *adopt(struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;
	struct fs_ask *known, *ask;
	struct fs_pair pair = {};

	pair.network = BPF_CORE_READ(common, skc_net.net, net_cookie);
	pair.local_port = bpf_htons(common->skc_num);
	pair.remote_port = common->skc_dport;
	if (common->skc_family == FS_AF_INET6) {
		bpf_probe_read_kernel(pair.local, 16, (void *)&common->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(pair.remote, 16, (void *)&common->skc_v6_daddr);
		/* A socket of IPv6 may speak IPv4: ::ffff:a.b.c.d. */
		if (common->skc_rcv_saddr && pair.local[10] == 0xff && pair.local[11] == 0xff && !pair.local[0]) {
			__builtin_memset(pair.local, 0, 16);
			__builtin_memset(pair.remote, 0, 16);
			bpf_probe_read_kernel(pair.local, 4, (void *)&common->skc_rcv_saddr);
			bpf_probe_read_kernel(pair.remote, 4, (void *)&common->skc_daddr);
		}
	} else {
		bpf_probe_read_kernel(pair.local, 4, (void *)&common->skc_rcv_saddr);
		bpf_probe_read_kernel(pair.remote, 4, (void *)&common->skc_daddr);
	}
	known = bpf_map_lookup_elem(&fs_opening, &pair);
	if (!known)
		return 0;
	ask = bpf_sk_storage_get(&fs_asks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (ask)
		*ask = *known;
	bpf_map_delete_elem(&fs_opening, &pair);
	return ask;
}

/* The packet with the request was acknowledged: judges the answer, and opens the window if it is a
 * grant. */
static __always_inline void judge(struct sock *sk, struct fs_ask *ask)
{
	struct tcp_sock *tp = tcp_sk(sk);
	enum fs_answer answer = FS_ANSWER_NONE;
	__u32 window, rtt = tp->srtt_us >> 3;

	ask->phase = FS_IDLE;
	/* Whatever routers granted, they forget; no other packet carries an option. */
	if (ask->is_lost) {
		ask->is_off = true;
		return;
	}
	if (ask->is_answered)
		answer = fs_check_answer(ask->rate, ask->difference, ask->nonce, ask->answered_rate,
					 ask->answered_difference, ask->answered_nonce);
	FS_COUNT(answers[answer]);
	ask->reported = answer == FS_ANSWER_GOOD ? ask->answered_rate : 0;
	ask->is_report_due = true;
	ask->reports_alone = ask->in_middle;
	ask->wrong_ttl = answer == FS_ANSWER_TTL ? ask->wrong_ttl + 1 : 0;
	if (answer == FS_ANSWER_NONCE || ask->wrong_ttl >= FS_MOST_WRONG_TTL)
		ask->is_off = true;
	if (answer != FS_ANSWER_GOOD)
		return;
	/* The path is congested without it. */
	if (BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state) >= TCP_CA_CWR) {
		ask->reported = 0;
		FS_COUNT(congested);
		return;
	}
	window = fs_rate_window(ask->answered_rate, rtt, tp->mss_cache + headers_of(sk));
	window = fs_min32(window, tp->snd_cwnd_clamp);
	if ((__u64)window * 100 <= (__u64)tp->snd_cwnd * fs_parameters.least_window_percent) {
		FS_COUNT(too_small);
		return;
	}
	ask->before = tp->snd_cwnd;
	ask->window = window;
	ask->expires = bpf_ktime_get_ns() + fs_min32(fs_min32(rtt, 4000000) * 1000, fs_parameters.lifetime);
	ask->phase = FS_GRANTED;
	tp->snd_cwnd = window;
	/* Nobody else is paced: without a grant it is CUBIC as it is. */
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

SEC("struct_ops/init")
void BPF_PROG(fs_quick_start_init, struct sock *sk)
{
	struct fs_ask *ask;
	bool is_told;

	if (bpf_ksym_exists(cubictcp_init))
		cubictcp_init(sk);
	ask = bpf_sk_storage_get(&fs_asks, sk, 0, 0);
	if (!ask && fs_parameters.on_syn_ack && !tcp_sk(sk)->data_segs_out)
		ask = adopt(sk);
	if (ask && ask->phase == FS_ASKED)
		judge(sk, ask);
	/* Chosen when the handshake was over: the application asks. */
	is_told = is_open(sk) && tcp_sk(sk)->lsndtime;
	if (!is_told && !fs_parameters.after_idle && !fs_parameters.in_middle)
		return;
	ask = bpf_sk_storage_get(&fs_asks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!ask)
		return;
	if (is_told && !ask->is_off && ask->phase == FS_IDLE)
		ask->phase = FS_WANTED;
	want_room(sk);
}

SEC("struct_ops/release")
void BPF_PROG(fs_quick_start_release, struct sock *sk)
{
	struct fs_ask *ask = bpf_sk_storage_get(&fs_asks, sk, 0, 0);

	/* Who may never ask again may not after another congestion control either. */
	if (ask && ask->is_off)
		ask->phase = FS_IDLE;
	else if (ask)
		bpf_sk_storage_delete(&fs_asks, sk);
}

/* Nothing was sent on a grant in time. */
static __always_inline void expire(struct sock *sk, struct fs_ask *ask)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ask->phase = FS_IDLE;
	tp->snd_cwnd = fs_min32(tp->snd_cwnd, fs_max32(ask->before, 1));
	FS_COUNT(expired);
}

/* The stack asks before it sends. In the phase the pacing rate is what was granted, without what
 * headers take of it. The stack leaves the first ten packets of a connection unpaced; the gap after
 * them is as long as all of theirs, so that no more leaves in the round trip than was granted. */
SEC("struct_ops/min_tso_segs")
__u32 BPF_PROG(fs_quick_start_min_tso_segs, struct sock *sk)
{
	struct fs_ask *ask = bpf_sk_storage_get(&fs_asks, sk, 0, 0);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 rate, mss;

	if (!ask)
		return FS_USUAL_TSO_SEGS;
	if (ask->is_expired) {
		ask->is_expired = false;
		tp->snd_cwnd = fs_min32(tp->snd_cwnd, fs_max32(ask->before, 1));
		FS_COUNT(expired);
	}
	if (ask->pacing_rate) {
		sk->sk_pacing_rate = ask->pacing_rate;
		ask->pacing_rate = 0;
	}
	if (ask->phase == FS_WANTED) {
		/* The packet with the request has to leave by itself, so no more than one is due in what the
		 * stack puts into a burst, a millisecond (tcp_tso_autosize). */
		ask->pacing_rate = sk->sk_pacing_rate;
		if ((__u64)tp->mss_cache << 10 < sk->sk_pacing_rate)
			sk->sk_pacing_rate = (__u64)tp->mss_cache << 10;
		return 1;
	}
	/* Of the packets in mid-connection maybe no other has room for it. */
	if (ask->reports_alone && ask->phase != FS_GRANTED) {
		ask->reports_alone = false;
		bpf_tcp_send_ack(tp, tp->rcv_nxt);
	}
	if (ask->phase == FS_GRANTED && tp->snd_nxt != tp->write_seq) {
		if (bpf_ktime_get_ns() >= ask->expires) {
			expire(sk, ask);
			return FS_USUAL_TSO_SEGS;
		}
		ask->phase = FS_PACING;
		ask->first = tp->snd_nxt;
		ask->is_granted = true;
		FS_COUNT(used);
		ask->reports_alone = false;
		/* A server may have sent nothing yet that had room for the report, and no data will. */
		if (ask->is_report_due)
			bpf_tcp_send_ack(tp, tp->rcv_nxt);
	}
	if (ask->phase != FS_PACING)
		return FS_USUAL_TSO_SEGS;
	mss = tp->mss_cache;
	rate = fs_rate_of(ask->answered_rate) / 8 * mss / (mss + headers_of(sk));
	if (tp->data_segs_out < FS_UNPACED_SEGMENTS)
		rate /= FS_UNPACED_SEGMENTS;
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
	return 1;
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(fs_quick_start_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct fs_ask *ask = bpf_sk_storage_get(&fs_asks, sk, 0, 0);
	struct tcp_sock *tp = tcp_sk(sk);
	bool is_beyond;
	__u32 used;

	if (ask)
		ask->largest = fs_max32(ask->largest, tp->snd_cwnd);
	if (ask && ask->phase == FS_ASKED && ask->in_middle && before(ask->first, tp->snd_una))
		judge(sk, ask);
	/* What is missing before the phase began is not of it. */
	is_beyond = ask && tp->sacked_out && !before(tp->snd_una, ask->first);
	if (ask && ask->phase == FS_PACING && (before(ask->first, tp->snd_una) || is_beyond)) {
		/* What has been used of the window stays; the rest was not tested by anything. */
		used = fs_min32(packets_in_flight(tp) + sample->pkts_acked, ask->window);
		tp->snd_cwnd = fs_max32(used, ask->before);
		ask->end = tp->snd_nxt;
		ask->delivered = 0;
		ask->phase = FS_ENDED;
	}
	if (ask && ask->phase == FS_ENDED) {
		ask->delivered += sample->pkts_acked;
		if (!before(tp->snd_una, ask->end))
			ask->phase = FS_IDLE;
	}
	/* HyStart would take the queue of the phase for the end of slow start. */
	if (ask && ask->is_granted && !fs_parameters.hystart && tp->snd_cwnd < tp->snd_ssthresh)
		return;
	if (bpf_ksym_exists(cubictcp_acked))
		cubictcp_acked(sk, sample);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(fs_quick_start_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct fs_ask *ask = bpf_sk_storage_get(&fs_asks, sk, 0, 0);
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 most = fs_parameters.max_ssthresh;

	if (ask && (ask->phase == FS_GRANTED || ask->phase == FS_PACING))
		return;
	if (ask && ask->falls_back) {
		ask->falls_back = false;
		tp->snd_cwnd = fs_min32(tp->snd_cwnd, fs_max32(ask->before, 2));
	}
	if (ask && ask->is_granted && tp->snd_cwnd < tp->snd_ssthresh && most && tp->snd_cwnd > most) {
		/* 1/K of a packet for each that is delivered, K = int(cwnd / (max_ssthresh / 2)). */
		if (is_cwnd_limited(tp))
			tcp_cong_avoid_ai(tp, fs_max32(tp->snd_cwnd * 2 / most, 1), acked);
		return;
	}
	if (bpf_ksym_exists(cubictcp_cong_avoid))
		cubictcp_cong_avoid(sk, ack, acked);
	else
		tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(fs_quick_start_ssthresh, struct sock *sk)
{
	struct fs_ask *ask = bpf_sk_storage_get(&fs_asks, sk, 0, 0);

	if (ask) {
		ask->was_congested = true;
		ask->largest = 0;
	}
	if (ask && (ask->phase == FS_PACING || ask->phase == FS_ENDED)) {
		/* A packet of the phase was lost or marked: back to what there would have been without, and
		 * no more requests (RFC 4782 section 4.6). */
		FS_COUNT(congested);
		ask->phase = FS_IDLE;
		ask->is_granted = false;
		ask->falls_back = true;
		ask->is_off = true;
		if (ask->in_middle)
			return fs_max32(fs_min32(ask->window / 2, ask->before), 2);
		return fs_max32(ask->delivered / 2, 2);
	}
	if (ask && ask->phase == FS_GRANTED)
		expire(sk, ask);
	if (bpf_ksym_exists(cubictcp_recalc_ssthresh))
		return cubictcp_recalc_ssthresh(sk);
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/set_state")
void BPF_PROG(fs_quick_start_set_state, struct sock *sk, __u8 new_state)
{
	if (bpf_ksym_exists(cubictcp_state))
		cubictcp_state(sk, new_state);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(fs_quick_start_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (bpf_ksym_exists(cubictcp_cwnd_event))
		cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(fs_quick_start_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops fs_quick_start = {
	.init = (void *)fs_quick_start_init,
	.release = (void *)fs_quick_start_release,
	.min_tso_segs = (void *)fs_quick_start_min_tso_segs,
	.pkts_acked = (void *)fs_quick_start_pkts_acked,
	.cong_avoid = (void *)fs_quick_start_cong_avoid,
	.ssthresh = (void *)fs_quick_start_ssthresh,
	.set_state = (void *)fs_quick_start_set_state,
	.cwnd_event = (void *)fs_quick_start_cwnd_event,
	.undo_cwnd = (void *)fs_quick_start_undo_cwnd,
	.name = "fs_quick_start",
};

SEC("sockops")
int fs_make_room(struct bpf_sock_ops *ops)
{
	return make_room(ops);
}

SEC("tc")
int fs_out_ethernet(struct __sk_buff *skb)
{
	return carry_out(skb, 14);
}

SEC("tc")
int fs_out_plain(struct __sk_buff *skb)
{
	return carry_out(skb, 0);
}

SEC("tc")
int fs_in_ethernet(struct __sk_buff *skb)
{
	return carry_in(skb, 14);
}

SEC("tc")
int fs_in_plain(struct __sk_buff *skb)
{
	return carry_in(skb, 0);
}
