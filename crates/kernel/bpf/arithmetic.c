// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The arithmetic of the programs for user space, where tests set it against the simulator's. */
#include "chirp.h"
#include "dctcp.h"

__u32 fs_user_dctcp_alpha(__u32 alpha, __u32 delivered, __u32 marked, __u32 gain_shift);
__u32 fs_user_dctcp_ssthresh(__u32 cwnd, __u32 alpha);

struct fs_user_point {
	__u64 gaps;
	__u32 packets;
	__u64 delay;
};

void fs_user_geometry(struct fs_geometry *chirp, __u32 packets, __u64 average, __u64 geometry);
__u64 fs_user_gap(__u64 first_gap, __u64 step, __u32 k);
void fs_user_read(struct fs_reading *reading, const struct fs_user_point *points, __u32 count, const struct fs_reading_rule *rule,
		  __u64 noise_before);

__u32 fs_user_dctcp_alpha(__u32 alpha, __u32 delivered, __u32 marked, __u32 gain_shift)
{
	return fs_dctcp_alpha(alpha, delivered, marked, gain_shift);
}

__u32 fs_user_dctcp_ssthresh(__u32 cwnd, __u32 alpha)
{
	return fs_dctcp_ssthresh(cwnd, alpha);
}

void fs_user_geometry(struct fs_geometry *chirp, __u32 packets, __u64 average, __u64 geometry)
{
	fs_geometry_of(chirp, packets, average, geometry);
}

__u64 fs_user_gap(__u64 first_gap, __u64 step, __u32 k)
{
	return fs_gap(first_gap, step, k);
}

void fs_user_read(struct fs_reading *reading, const struct fs_user_point *points, __u32 count, const struct fs_reading_rule *rule,
		  __u64 noise_before)
{
	struct fs_points sums;
	__u32 i;

	fs_points_init(&sums, 0);
	for (i = 0; i < count; i++)
		fs_points_add(&sums, points[i].gaps, points[i].packets, points[i].delay);
	fs_read(reading, &sums, rule, noise_before);
}
