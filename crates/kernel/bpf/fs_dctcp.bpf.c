// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* DCTCP (RFC 8257) with slow start, for kernels that were built without it. */
#include "ecn.h"

char _license[] SEC("license") = "Dual MIT/GPL";

const volatile struct {
	/* The weight of a window in alpha is 1/2^n (RFC 8257 section 4.2: 1/16). */
	__u32 gain_shift;
	/* Alpha at the beginning in units of 1/1024. */
	__u32 initial_alpha;
} fs_parameters SEC(".rodata.parameters") = { 4, FS_ALPHA_ONE };

struct state {
	struct fs_ecn ecn;
	/* Window when the last reduction began. */
	__u32 prior_cwnd;
};

SEC("struct_ops/init")
void BPF_PROG(fs_dctcp_init, struct sock *sk)
{
	struct state *state = inet_csk_ca(sk);

	fs_ecn_init(&state->ecn, tcp_sk(sk), fs_parameters.initial_alpha);
	state->prior_cwnd = 0;
}

SEC("struct_ops/in_ack_event")
void BPF_PROG(fs_dctcp_in_ack_event, struct sock *sk, __u32 flags)
{
	struct state *state = inet_csk_ca(sk);

	fs_ecn_on_ack(&state->ecn, tcp_sk(sk), fs_parameters.gain_shift & 15);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(fs_dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct state *state = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		fs_ecn_on_packet(&state->ecn, sk, event == CA_EVENT_ECN_IS_CE);
	else if (event == CA_EVENT_LOSS)
		tp->snd_ssthresh = fs_half(state->prior_cwnd);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(fs_dctcp_ssthresh_op, struct sock *sk)
{
	struct state *state = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	state->prior_cwnd = tp->snd_cwnd;
	if (!fs_ecn_is_negotiated(tp))
		return fs_half(tp->snd_cwnd);
	return fs_dctcp_ssthresh(tp->snd_cwnd, state->ecn.alpha);
}

/* A loss halves the window whatever alpha says (RFC 8257 section 3.5). */
SEC("struct_ops/set_state")
void BPF_PROG(fs_dctcp_set_state, struct sock *sk, __u8 new_state)
{
	struct state *state = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (new_state != TCP_CA_Recovery || BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state) == TCP_CA_Recovery)
		return;
	state->prior_cwnd = tp->snd_cwnd;
	tp->snd_ssthresh = fs_half(tp->snd_cwnd);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(fs_dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(fs_dctcp_undo_cwnd, struct sock *sk)
{
	const struct state *state = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->snd_cwnd > state->prior_cwnd ? tp->snd_cwnd : state->prior_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops fs_dctcp = {
	.init = (void *)fs_dctcp_init,
	.in_ack_event = (void *)fs_dctcp_in_ack_event,
	.cwnd_event = (void *)fs_dctcp_cwnd_event,
	.ssthresh = (void *)fs_dctcp_ssthresh_op,
	.set_state = (void *)fs_dctcp_set_state,
	.cong_avoid = (void *)fs_dctcp_cong_avoid,
	.undo_cwnd = (void *)fs_dctcp_undo_cwnd,
	.flags = TCP_CONG_NEEDS_ECN,
	.name = "fs_dctcp",
};
