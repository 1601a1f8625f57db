// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Slow start and Reno (RFC 5681) as a program: what every start here is compared with, at the
 * cost that a program has. */
#include "kernel.h"

char _license[] SEC("license") = "Dual MIT/GPL";

SEC("struct_ops/cong_avoid")
void BPF_PROG(fs_reno_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(fs_reno_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(fs_reno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

/* The kernel allows 15 characters. */
SEC(".struct_ops.link")
struct tcp_congestion_ops fs_slow_start_reno = {
	.cong_avoid = (void *)fs_reno_cong_avoid,
	.ssthresh = (void *)fs_reno_ssthresh,
	.undo_cwnd = (void *)fs_reno_undo_cwnd,
	.name = "fs_reno",
};
