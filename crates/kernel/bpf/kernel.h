/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What the programs use of the kernel's types. preserve_access_index makes the loader look up where
 * each member is in the running kernel, so that only names and types matter here, neither order nor
 * what is left out.
 */
#ifndef FS_KERNEL_H
#define FS_KERNEL_H

#include "types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

struct in6_addr {
	__u8 bytes[16];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct netns_ipv4 {
	__u8 sysctl_tcp_tso_win_divisor;
};

struct net {
	struct netns_ipv4 ipv4;
	/* Its number, which no other network namespace has or will have. */
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	possible_net_t nd_net;
};

struct sk_buff {
	struct net_device *dev;
};

struct sock_common {
	possible_net_t skc_net;
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	/* Of a connection that is being opened: who listens. */
	struct sock *skc_listener;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

/* The kernel's own, to be read; what a program declares is further below. */
struct tcp_congestion_ops___known {
	char name[16];
};

struct request_sock {
	struct sock_common __req_common;
};

struct inet_request_sock {
	struct request_sock req;
};

struct tcp_request_sock {
	struct inet_request_sock req;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops___known *icsk_ca_ops;
	__u8 icsk_ca_state : 5;
	/* In jiffies. */
	__u32 icsk_rto;
	struct {
		__u8 pending;
	} icsk_ack;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u16 tcp_header_len;
	__u32 mss_cache;
	__u32 snd_cwnd_clamp;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 packets_out;
	__u32 data_segs_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 max_packets_out;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 write_seq;
	__u32 rcv_nxt;
	/* When data left last, in jiffies; 0 before the handshake is over. */
	__u32 lsndtime;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 srtt_us;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u64 tcp_mstamp;
	__u64 tcp_clock_cache;
	__u64 tcp_wstamp_ns;
	__u8 ecn_flags;
	__u8 is_cwnd_limited : 1;
	__u8 rate_app_limited : 1;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

#pragma clang attribute pop

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

enum tcp_ca_state {
	TCP_CA_Open,
	TCP_CA_Disorder,
	TCP_CA_CWR,
	TCP_CA_Recovery,
	TCP_CA_Loss,
};

/* Members that the programs set. libbpf puts each where the running kernel has it. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

/* tcp_congestion_ops.flags: the connection asks for ECN, and its packets say that they can be
 * marked. */
#define TCP_CONG_NEEDS_ECN 0x2
/* tcp_sock.ecn_flags */
#define TCP_ECN_OK 1
#define TCP_ECN_DEMAND_CWR 4
/* inet_connection_sock.icsk_ack.pending */
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
/* sock_common.skc_state */
#define TCP_ESTABLISHED 1
#define TCP_CLOSE_WAIT 8
/* sock.sk_pacing_status: the stack paces by itself */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
/* tcp_sock.snd_ssthresh of a connection that has seen no congestion */
#define TCP_INFINITE_SSTHRESH 0x7fffffff

/* CUBIC, if the kernel has it: its state are the first 60 bytes of what a congestion control has
 * in a socket. */
extern void cubictcp_init(struct sock *sk) __ksym __weak;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym __weak;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym __weak;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym __weak;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym __weak;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* The packet behind a program's context (Linux 6.2). */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym;

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

/* The 104 bytes that a congestion control has in every socket. */
static __always_inline void *inet_csk_ca(struct sock *sk)
{
	return (void *)inet_csk(sk)->icsk_ca_priv;
}

/* Packets that are sent and neither delivered nor deemed lost (RFC 6675 pipe). */
static __always_inline __u32 packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* True if sequence number a is before b, also across the wrap. */
static __always_inline bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

/* True if the window, and not the application, held the connection back (RFC 9293 leaves it
 * open, RFC 7661 says why it matters). */
static __always_inline bool is_cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

#endif
