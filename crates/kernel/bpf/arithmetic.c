// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The arithmetic of the programs for user space, where tests set it against the simulator's. */
#include "dctcp.h"

__u32 fs_user_dctcp_alpha(__u32 alpha, __u32 delivered, __u32 marked, __u32 gain_shift);
__u32 fs_user_dctcp_ssthresh(__u32 cwnd, __u32 alpha);

__u32 fs_user_dctcp_alpha(__u32 alpha, __u32 delivered, __u32 marked, __u32 gain_shift)
{
	return fs_dctcp_alpha(alpha, delivered, marked, gain_shift);
}

__u32 fs_user_dctcp_ssthresh(__u32 cwnd, __u32 alpha)
{
	return fs_dctcp_ssthresh(cwnd, alpha);
}
