/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * DCTCP (RFC 8257): the share of marked packets and what it takes from the window, in the integers
 * of Linux tcp_dctcp.c, which the simulator has too. No kernel types: it is compiled for user space
 * as well and set against Rust.
 */
#ifndef FS_DCTCP_H
#define FS_DCTCP_H

#include "types.h"

/* Alpha is counted in units of 1/1024. */
#define FS_ALPHA_BITS 10
#define FS_ALPHA_ONE (1u << FS_ALPHA_BITS)
/* The window never falls below this. */
#define FS_MIN_CWND 2

/* Alpha after a window in which `marked` of `delivered` packets were marked; the window weighs
 * 1/2^gain_shift. */
static inline __u32 fs_dctcp_alpha(__u32 alpha, __u32 delivered, __u32 marked, __u32 gain_shift)
{
	__u32 decay = alpha >> gain_shift;
	__u64 share = ((__u64)marked << (FS_ALPHA_BITS - gain_shift)) / (delivered ? delivered : 1);

	/* A share too small to be counted takes the rest with it, or alpha would never reach zero. */
	alpha -= decay ? decay : alpha;
	share += alpha;
	return share > FS_ALPHA_ONE ? FS_ALPHA_ONE : (__u32)share;
}

/* The threshold after marks (RFC 8257 section 3.3). */
static inline __u32 fs_dctcp_ssthresh(__u32 cwnd, __u32 alpha)
{
	__u32 left = cwnd - (__u32)(((__u64)cwnd * alpha) >> (FS_ALPHA_BITS + 1));

	return left < FS_MIN_CWND ? FS_MIN_CWND : left;
}

/* The threshold after a loss. */
static inline __u32 fs_half(__u32 cwnd)
{
	return cwnd / 2 < FS_MIN_CWND ? FS_MIN_CWND : cwnd / 2;
}

#endif
