/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * When the marks of a scalable control stay away for so long that capacity must have come free:
 * flowstart-chirping (crates/chirping/src/again.rs) in integers. Silences are measured with mean
 * and deviation as RFC 6298 measures round-trip times.
 */
#ifndef FS_QUIET_H
#define FS_QUIET_H

#include "flow.h"

/* Newton's iteration, as often as 32 bits need, without branches for the verifier to follow. */
static __always_inline __u32 fs_root(__u32 value)
{
	__u64 root = (__u64)value + 1;
	int i;

#pragma clang loop unroll(full)
	for (i = 0; i < 22; i++)
		root = (root + value / (root ? root : 1)) / 2;
	return (__u32)root;
}

static __always_inline __u32 fs_quiet_threshold(const struct fs_quiet *quiet, __u32 cwnd)
{
	__u64 measured = quiet->mean + (__u64)quiet->deviation * fs_parameters.quiet_deviations / FS_RATIO_ONE;
	/* The root in units of 1/32, as 1024 is 32 squared. */
	__u64 expected = (__u64)fs_parameters.quiet_periods * fs_root(fs_min(cwnd, 1u << 20) * 512) / 32;
	__u64 rounds = quiet->measured < fs_parameters.min_silences ? fs_max(measured, expected) : measured;

	rounds = fs_max(rounds / FS_RATIO_ONE + 2, fs_parameters.min_quiet_rounds);
	return (__u32)fs_min(rounds << (fs_min(quiet->vain, fs_parameters.max_backoff) & 15), 1u << 30);
}

/* At the end of a round in congestion avoidance. Returns true if the silence is too long. */
static __always_inline bool fs_quiet_round(struct fs_quiet *quiet, const struct tcp_sock *tp, bool limited)
{
	__u32 silence = quiet->rounds * FS_RATIO_ONE, error;

	if (tp->delivered_ce != quiet->delivered_ce) {
		/* Marks in consecutive rounds are one burst. */
		if (quiet->heard && quiet->rounds) {
			if (!quiet->measured) {
				quiet->mean = silence;
				quiet->deviation = silence / 2;
			} else {
				error = silence > quiet->mean ? silence - quiet->mean : quiet->mean - silence;
				quiet->mean = (7 * (__u64)quiet->mean + silence) / 8;
				quiet->deviation = (3 * (__u64)quiet->deviation + error) / 4;
			}
			quiet->measured++;
		}
		quiet->heard = true;
		quiet->rounds = 0;
		quiet->vain = 0;
		quiet->delivered_ce = tp->delivered_ce;
	} else if (limited && quiet->rounds < (1u << 20)) {
		/* A flow that does not use its window is not marked for a reason of its own. */
		quiet->rounds++;
	}
	return quiet->heard && quiet->rounds > fs_quiet_threshold(quiet, tp->snd_cwnd);
}

/* The chirps are over: the window they found, and the one before. */
static __always_inline void fs_quiet_answered(struct fs_quiet *quiet, const struct tcp_sock *tp, __u32 found, __u32 window)
{
	quiet->rounds = 0;
	quiet->delivered_ce = tp->delivered_ce;
	if ((__u64)found * FS_RATIO_ONE > (__u64)window * fs_parameters.gain) {
		/* Another window has another period. */
		quiet->measured = 0;
		quiet->vain = 0;
	} else {
		quiet->vain++;
	}
}

#endif
