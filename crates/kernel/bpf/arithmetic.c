// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The arithmetic of the programs for user space, where tests set it against the simulator's. */
#include "chirp.h"
#include "dctcp.h"
#include "evidence.h"
#include "quick_start.h"

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
		  __u64 noise_before, __u32 jitter);

/* Bits of what fs_user_judge says. */
#define FS_USER_READABLE 1
#define FS_USER_EVIDENCE 2
#define FS_USER_BUNCHED 4

__u32 fs_user_judge(const struct fs_user_point *points, __u32 count, const struct fs_reading_rule *rule,
		    const struct fs_evidence_rule *evidence, __u64 rtt);
__u32 fs_user_is_impatient(__u64 now, __u64 read_at, __u64 rtt, __u32 patience);
__u32 fs_user_is_refuted(__u64 gap, __u32 delivered, __u64 interval, __u32 refuted, __u32 fewest);
__u32 fs_user_slow_start_window(__u32 first, __u32 delivered, __u32 in_flight);
__u32 fs_user_decayed(__u32 window, __u64 idle, __u64 rto, __u32 first);
__u32 fs_user_is_worth_chirping(__u32 window, __u32 known, __u32 growth);
__u32 fs_user_grown(__u32 acked, __u32 cwnd, __u32 pipe, __u32 divisor, __u32 *ungrown);

__u32 fs_user_floor_code(__u64 bps);
__u32 fs_user_lowered_nonce(__u32 nonce, __u32 from, __u32 to, __u32 random);
__u32 fs_user_check_answer(__u32 asked, __u32 difference, __u32 nonce, __u32 code, __u32 answered_difference, __u32 answered_nonce);
__u32 fs_user_rate_window(__u32 code, __u64 rtt_us, __u32 packet);
__u64 fs_user_load_of(__u64 bytes, __u64 interval);

__u32 fs_user_floor_code(__u64 bps)
{
	return fs_floor_code(bps);
}

__u32 fs_user_lowered_nonce(__u32 nonce, __u32 from, __u32 to, __u32 random)
{
	return fs_lowered_nonce(nonce, from, to, random);
}

__u32 fs_user_check_answer(__u32 asked, __u32 difference, __u32 nonce, __u32 code, __u32 answered_difference, __u32 answered_nonce)
{
	return fs_check_answer(asked, difference, nonce, code, answered_difference, answered_nonce);
}

__u32 fs_user_rate_window(__u32 code, __u64 rtt_us, __u32 packet)
{
	return fs_rate_window(code, rtt_us, packet);
}

__u64 fs_user_load_of(__u64 bytes, __u64 interval)
{
	return fs_load_of(bytes, interval);
}

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

static void add_all(struct fs_points *all, const struct fs_user_point *points, __u32 count, __u32 jitter)
{
	__u32 i;

	fs_points_init(all, jitter);
	for (i = 0; i < count; i++)
		fs_points_add(all, points[i].gaps, points[i].packets, points[i].delay);
	fs_find_knee(all);
}

void fs_user_read(struct fs_reading *reading, const struct fs_user_point *points, __u32 count, const struct fs_reading_rule *rule,
		  __u64 noise_before, __u32 jitter)
{
	struct fs_points all;

	add_all(&all, points, count, jitter);
	fs_read(reading, &all, rule, noise_before);
}

__u32 fs_user_judge(const struct fs_user_point *points, __u32 count, const struct fs_reading_rule *rule,
		    const struct fs_evidence_rule *evidence, __u64 rtt)
{
	struct fs_reading reading;
	struct fs_points all;

	add_all(&all, points, count, 0);
	fs_read(&reading, &all, rule, 0);
	return (fs_is_readable(&reading, &all, evidence, rtt) ? FS_USER_READABLE : 0) |
	       (fs_is_evidence(&reading, evidence) ? FS_USER_EVIDENCE : 0) | (fs_is_bunched(&all) ? FS_USER_BUNCHED : 0);
}

__u32 fs_user_is_impatient(__u64 now, __u64 read_at, __u64 rtt, __u32 patience)
{
	return fs_is_impatient(now, read_at, rtt, patience);
}

__u32 fs_user_is_refuted(__u64 gap, __u32 delivered, __u64 interval, __u32 refuted, __u32 fewest)
{
	return fs_is_refuted(gap, delivered, interval, refuted, fewest);
}

__u32 fs_user_slow_start_window(__u32 first, __u32 delivered, __u32 in_flight)
{
	return fs_slow_start_window(first, delivered, in_flight);
}

__u32 fs_user_decayed(__u32 window, __u64 idle, __u64 rto, __u32 first)
{
	return fs_decayed(window, idle, rto, first);
}

__u32 fs_user_is_worth_chirping(__u32 window, __u32 known, __u32 growth)
{
	return fs_is_worth_chirping(window, known, growth);
}

__u32 fs_user_grown(__u32 acked, __u32 cwnd, __u32 pipe, __u32 divisor, __u32 *ungrown)
{
	return fs_grown(acked, cwnd, pipe, divisor, ungrown);
}
