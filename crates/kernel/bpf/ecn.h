/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Both ends of DCTCP (RFC 8257) on a socket, for the programs that use it.
 */
#ifndef FS_ECN_H
#define FS_ECN_H

#include "dctcp.h"
#include "kernel.h"

struct fs_ecn {
	/* Share of marked packets in units of 1/1024. */
	__u32 alpha;
	/* The observation window ends when this is acknowledged. */
	__u32 window_end;
	__u32 delivered;
	__u32 delivered_ce;
	/* Receiver: what was received in order before the packet that comes now. */
	__u32 prior_rcv_nxt;
	/* Receiver: the last packet was marked. */
	bool ce;
};

static __always_inline bool fs_ecn_is_negotiated(const struct tcp_sock *tp)
{
	return tp->ecn_flags & TCP_ECN_OK;
}

static __always_inline void fs_ecn_begin_window(struct fs_ecn *ecn, const struct tcp_sock *tp)
{
	ecn->window_end = tp->snd_nxt;
	ecn->delivered = tp->delivered;
	ecn->delivered_ce = tp->delivered_ce;
}

static __always_inline void fs_ecn_init(struct fs_ecn *ecn, const struct tcp_sock *tp, __u32 alpha)
{
	ecn->alpha = alpha;
	ecn->prior_rcv_nxt = tp->rcv_nxt;
	ecn->ce = false;
	fs_ecn_begin_window(ecn, tp);
}

/* Once per window of data: alpha (RFC 8257 section 3.3). Returns true if there were marks in the
 * window. */
static __always_inline bool fs_ecn_on_ack(struct fs_ecn *ecn, const struct tcp_sock *tp, __u32 gain_shift)
{
	__u32 marked;

	if (before(tp->snd_una, ecn->window_end))
		return false;
	marked = tp->delivered_ce - ecn->delivered_ce;
	ecn->alpha = fs_dctcp_alpha(ecn->alpha, tp->delivered - ecn->delivered, marked, gain_shift);
	fs_ecn_begin_window(ecn, tp);
	return marked > 0;
}

/* A packet came with or without a mark: the receiver's state machine of RFC 8257 section 3.2.
 * When the marks change, what came before is acknowledged at once with the old state, so that
 * the sender can count. */
static __always_inline void fs_ecn_on_packet(struct fs_ecn *ecn, struct sock *sk, bool ce)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ecn->ce != ce) {
		if (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
			if (ecn->ce)
				tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
			else
				tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
			bpf_tcp_send_ack(tp, ecn->prior_rcv_nxt);
		}
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	ecn->prior_rcv_nxt = tp->rcv_nxt;
	ecn->ce = ce;
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

#endif
