// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Scalable TCP (Kelly 2003) with slow start, for kernels that were built without it. */
#include "kernel.h"

char _license[] SEC("license") = "Dual MIT/GPL";

const volatile struct {
	/* Packets acknowledged per packet that the window grows by (Linux TCP_SCALABLE_AI_CNT). */
	__u32 packets_per_increase;
	/* A reduction takes away 1/2^n of the window (Linux TCP_SCALABLE_MD_SCALE). */
	__u32 reduction_shift;
} fs_parameters SEC(".rodata.parameters") = { 100, 3 };

SEC("struct_ops/cong_avoid")
void BPF_PROG(fs_scalable_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 most = fs_parameters.packets_per_increase;

	if (!is_cwnd_limited(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd < most ? tp->snd_cwnd : most, acked);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(fs_scalable_ssthresh, struct sock *sk)
{
	__u32 cwnd = tcp_sk(sk)->snd_cwnd;
	__u32 left = cwnd - (cwnd >> (fs_parameters.reduction_shift & 31));

	return left < 2 ? 2 : left;
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(fs_scalable_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops fs_scalable = {
	.cong_avoid = (void *)fs_scalable_cong_avoid,
	.ssthresh = (void *)fs_scalable_ssthresh,
	.undo_cwnd = (void *)fs_scalable_undo_cwnd,
	.name = "fs_scalable",
};
