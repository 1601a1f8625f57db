/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Requests in mid-connection: when they are due, and room for them. A full packet has none, and
 * what programs at a device do to a packet comes too late for it. But the stack asks programs of
 * control groups how many bytes of options they want before it cuts packets
 * (BPF_SOCK_OPS_HDR_OPT_LEN_CB, RFC 4782 section 4.1: the MSS shrinks); what is asked for there
 * and not when the packet is made stays free.
 */
#ifndef FS_ROOM_H
#define FS_ROOM_H

#include "carrying.h"

/* The kernel's interface to programs (linux/bpf.h). */
#define BPF_SOCK_OPS_HDR_OPT_LEN_CB 14
#define BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG (1 << 6)
#define BPF_WRITE_HDR_TCP_CURRENT_MSS 1
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008
#define FS_SOL_TCP 6
#define FS_FAMILY_V6 10

/* The context of a program of a control group, member by member. */
struct bpf_sock_ops {
	__u32 op;
	__u32 args[4];
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 is_fullsock;
	__u32 snd_cwnd;
	__u32 srtt_us;
	__u32 bpf_sock_ops_cb_flags;
	__u32 state;
	__u32 rtt_min;
	__u32 snd_ssthresh;
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 mss_cache;
	__u32 ecn_flags;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 total_retrans;
	__u32 segs_in;
	__u32 data_segs_in;
	__u32 segs_out;
	__u32 data_segs_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 sk_txhash;
	__u64 bytes_received;
	__u64 bytes_acked;
	__u64 sk __attribute__((aligned(8)));
};

/* The connection can send data. */
static __always_inline bool is_open(const struct sock *sk)
{
	return sk->__sk_common.skc_state == TCP_ESTABLISHED || sk->__sk_common.skc_state == TCP_CLOSE_WAIT;
}

/* From now on the program below is asked about this connection (Linux 6.12). Other programs' wishes
 * stay. */
static __always_inline void want_room(struct sock *sk)
{
	int flags = 0;

	if (bpf_getsockopt(sk, FS_SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return;
	flags |= BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	bpf_setsockopt(sk, FS_SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
}

/* Whether the next data is to carry a request (RFC 4782 sections 4.1 and 4.8): the first after an
 * idle time, or, if the host is told so, what the application writes beyond the window after all
 * had been sent. Not within an RTT of the last. */
static __always_inline void consider(struct tcp_sock *tp, struct fs_ask *ask)
{
	__u64 now = bpf_ktime_get_ns(), rtt = (__u64)(tp->srtt_us >> 3) * 1000;
	bool is_expired = ask->phase == FS_GRANTED && now >= ask->expires, is_wanted = false;
	__u32 in_flight, window, backlog = tp->write_seq - tp->snd_nxt;

	if ((ask->phase != FS_IDLE && !is_expired) || ask->is_off || ask->is_report_due || !tp->lsndtime)
		return;
	if (ask->asked_at && now - ask->asked_at < rtt)
		return;
	if (fs_parameters.after_idle && !tp->packets_out)
		is_wanted = (__u32)bpf_jiffies64() - tp->lsndtime > tp->inet_conn.icsk_rto;
	if (fs_parameters.in_middle && !is_wanted) {
		in_flight = packets_in_flight(tp);
		window = tp->snd_cwnd > in_flight ? tp->snd_cwnd - in_flight : 0;
		if (!backlog && tp->data_segs_out)
			ask->ran_dry = true;
		is_wanted = ask->ran_dry && backlog > (__u64)window * tp->mss_cache;
	}
	if (!is_wanted)
		return;
	ask->ran_dry = false;
	/* The window of a grant that nobody used is taken back when something is sent. */
	ask->is_expired = is_expired;
	ask->phase = FS_WANTED;
}

/* The stack asks how large a segment may be. */
static __always_inline int make_room(struct bpf_sock_ops *ops)
{
	struct tcp_sock *tp;
	struct fs_ask *ask;
	void *socket;

	if (ops->op != BPF_SOCK_OPS_HDR_OPT_LEN_CB || ops->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS)
		return 1;
	socket = (void *)(long)ops->sk;
	if (!socket)
		return 1;
	ask = bpf_sk_storage_get(&fs_asks, socket, 0, 0);
	tp = bpf_skc_to_tcp_sock(socket);
	if (!ask || !tp)
		return 1;
	consider(tp, ask);
	if (ask->phase == FS_WANTED)
		bpf_reserve_hdr_opt(ops, ops->family == FS_FAMILY_V6 ? FS_EXTENSION_BYTES : FS_IPV4_OPTION_BYTES, 0);
	return 1;
}

#endif
