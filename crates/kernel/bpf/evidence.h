/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What a chirp must be like for its word to count, and what a start does that has no such word.
 * What cannot be read is no evidence, neither of a full path nor of room: the start that everybody
 * uses goes on. No kernel types: it is compiled for user space as well, where tests hold it to
 * these words.
 */
#ifndef FS_EVIDENCE_H
#define FS_EVIDENCE_H

#include "chirp.h"

struct fs_evidence_rule {
	/* Most noise, as a share of the smallest RTT, or of the gap that was read if that is more. */
	__u32 drowned;
	__u32 clear;
	/* The rise behind a knee is at least this many times the noise. */
	__u32 standing_out;
};

/* The ACKs of most of its packets were merged, or came closer together than the packets had left:
 * something holds them back and lets them go at once, which a queue never does. */
static inline bool fs_is_bunched(const struct fs_points *p)
{
	return p->together * 2 > p->all;
}

/* A reading that may raise or bound the load: with little noise in a round trip of `rtt`. */
static inline bool fs_is_readable(const struct fs_reading *reading, const struct fs_points *p, const struct fs_evidence_rule *rule, __u64 rtt)
{
	__u64 share;

	if (reading->says != FS_CLEAR && reading->says != FS_KNEE)
		return false;
	share = fs_max(fs_min(rtt, FS_LONGEST) * rule->drowned, fs_min(reading->gap, FS_LONGEST) * rule->clear);
	return !fs_is_bunched(p) && fs_min(reading->noise, FS_LONGEST) * FS_RATIO_ONE <= share;
}

/* A knee that may end a start: the queue stands out from the noise. */
static inline bool fs_is_evidence(const struct fs_reading *reading, const struct fs_evidence_rule *rule)
{
	return reading->says == FS_KNEE && reading->rise >= reading->noise * rule->standing_out;
}

/* A chirp could not be read. True if the last that could be, complete at `read_at` (0: none), is
 * longer ago than `patience`/1024 round trips. */
static inline bool fs_is_impatient(__u64 now, __u64 read_at, __u64 rtt, __u32 patience)
{
	return !read_at || fs_min(fs_minus(now, read_at), FS_LONGEST) * FS_RATIO_ONE > fs_min(rtt, FS_LONGEST) * patience;
}

/* `delivered` packets in `interval` ns are more than a path carries with a packet per `gap`, by the
 * factor `refuted`/1024; fewer than `fewest` are no measure of a rate. */
static inline bool fs_is_refuted(__u64 gap, __u32 delivered, __u64 interval, __u32 refuted, __u32 fewest)
{
	if (!gap || delivered < fewest || !delivered)
		return false;
	return fs_min(interval, FS_LONGEST) / delivered * refuted < fs_min(gap, FS_LONGEST) * FS_RATIO_ONE;
}

/* The window that slow start would have by now: the one it began with and a packet more for each
 * that was delivered; at most twice what is in flight, as there was nobody to fill it. */
static inline __u32 fs_slow_start_window(__u32 first, __u32 delivered, __u32 in_flight)
{
	__u64 grown = (__u64)first + delivered, doubled = 2 * fs_max(in_flight, first);

	return (__u32)fs_min(fs_min(grown, doubled), 0x7fffffff);
}

/* By how many packets a window of `cwnd` grows in slow start for `acked` packets, if chirps have
 * shown that `pipe` (0: nothing) fill the path: beyond that by one for every `divisor`. What is
 * left over stays in `ungrown`. */
static inline __u32 fs_grown(__u32 acked, __u32 cwnd, __u32 pipe, __u32 divisor, __u32 *ungrown)
{
	__u32 all;

	if (!pipe || cwnd < pipe || !divisor)
		return acked;
	all = *ungrown + acked;
	*ungrown = all % divisor;
	return all / divisor;
}

/* The window after an idle time (Linux tcp_cwnd_restart): half for each timeout that passed. */
static inline __u32 fs_decayed(__u32 window, __u64 idle, __u64 rto, __u32 first)
{
	__u64 halvings = idle && rto ? (idle - 1) / rto : 0;

	return (__u32)fs_max(window >> fs_min(halvings, 31), fs_min(first, window));
}

/* Slow start from `window` takes longer to reach `known` than chirps take to be read. */
static inline bool fs_is_worth_chirping(__u32 window, __u32 known, __u32 growth)
{
	return (__u64)window * growth <= (__u64)known * FS_RATIO_ONE;
}

#endif
