/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The arithmetic of chirps in integers: their gaps, and what the delays of one say. No kernel
 * types: it is compiled for user space as well and set against the Rust of the simulator
 * (flowstart-chirping, crates/chirping/src), whose rules these are.
 *
 * Times are nanoseconds, at most FS_LONGEST, so that no product leaves 64 bits. Ratios are in units
 * of 1/1024. There is no signed division: the instruction sets of older kernels have none.
 */
#ifndef FS_CHIRP_H
#define FS_CHIRP_H

#include "types.h"

#define FS_RATIO_ONE 1024ull
/* 2^40 ns are 18 minutes. */
#define FS_LONGEST_BITS 40
#define FS_LONGEST (1ull << FS_LONGEST_BITS)
#define FS_FOREVER (~0ull)
/* Most packets of a chirp. */
#define FS_MAX_CHIRP 64u
/* Most packets that a receiver acknowledges with one ACK (RFC 5681); ACKs of more were merged. */
#define FS_PACKETS_PER_ACK 2

/* The kernel's verifier follows a function with loops once if it is global, and at each call if it
 * is not. */
#ifdef __bpf__
#define FS_VERIFIED_ONCE __attribute__((noinline))
#else
#define FS_VERIFIED_ONCE static inline
#endif

static inline __u64 fs_min(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static inline __u64 fs_max(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

static inline __u64 fs_minus(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

/* A chirp: packets whose gaps shrink in equal steps (Misund and Briscoe 2019). */
struct fs_geometry {
	__u32 packets;
	__u32 reserved;
	__u64 first_gap;
	__u64 step;
};

/* Around the average gap `average`; the first gap is `geometry`/1024 times that, 1 to 3 times. */
static inline void fs_geometry_of(struct fs_geometry *chirp, __u32 packets, __u64 average, __u64 geometry)
{
	__u64 parts;

	geometry = fs_min(fs_max(geometry, FS_RATIO_ONE), 3 * FS_RATIO_ONE);
	packets = packets ? packets : 1;
	parts = FS_RATIO_ONE * packets;
	chirp->packets = packets;
	chirp->reserved = 0;
	chirp->first_gap = average * geometry / FS_RATIO_ONE;
	chirp->step = (2 * average * (geometry - FS_RATIO_ONE) + parts - 1) / parts;
}

/* The gap before packet `k`, counted from 0. */
static inline __u64 fs_gap(__u64 first_gap, __u64 step, __u32 k)
{
	return fs_minus(first_gap, step * (k ? k - 1 : 0));
}

/* A packet of a chirp whose RTT is its own: the newest of an ACK. */
struct fs_point {
	/* Since the point before. */
	__u64 gaps;
	/* Up to a constant. */
	__u64 delay;
	/* Since the point before, this one included. */
	__u32 packets;
	__u32 reserved;
};

/* A packet queues from the knee on: before it delays fall, behind it they rise, and what does not
 * fit into that shape is noise. */
struct fs_knee {
	/* Counted from 0. */
	__u32 at;
	/* Gaps of the regression are in units of 2^shift ns. */
	__u32 shift;
	__u64 delay;
	/* The mean gap before it, and before the last point. */
	__u64 gap;
	__u64 last_gap;
	/* Around the point with the least. */
	__u64 noise;
	/* Points with at most this much noise around them may be the knee. */
	__u64 level;
	/* Behind it: the gaps' sum, packets, points, and the first point's gap. */
	__u64 time;
	__u32 packets;
	__u32 queued;
	__u64 floor;
	/* Sums of a linear regression of the gaps at the receiver (out) over those at the sender (in),
	 * per packet. */
	__s64 in;
	__s64 out;
	__s64 in_in;
	__s64 in_out;
};

/* The points of a chirp so far. */
struct fs_points {
	__u32 points;
	/* Packets of the points but the first, and those of them whose ACKs came together: closer to the
	 * ones before than half of the time between the packets, or merged. */
	__u32 all;
	__u32 together;
	/* Delays this much above the smallest count as the smallest, in ns: what a host's own timing
	 * may add (the simulator has none: 0). */
	__u32 jitter;
	__u64 first_delay;
	__u64 last_delay;
	__u64 smallest_delay;
	__u64 largest_delay;
	/* By how much delays fell in all. */
	__u64 falls;
	struct fs_point of[FS_MAX_CHIRP];
	/* Once they are read. */
	struct fs_knee knee;
};

enum fs_says {
	/* Too few points, or too much noise. */
	FS_UNCLEAR,
	/* Nothing queued: the path carries a packet per `gap` at least. */
	FS_CLEAR,
	/* Packets queued from the knee on: the path carries a packet per `gap`. */
	FS_KNEE,
	/* They queued behind others' packets more than behind each other. */
	FS_CROWDED,
};

struct fs_reading {
	__u32 says;
	/* False if there were too few points to tell. */
	__u32 has_noise;
	__u64 gap;
	__u64 noise;
	/* By how much the last delay is above the smallest. */
	__u64 rise;
};

struct fs_reading_rule {
	/* Fewest points. */
	__u32 min_points;
	/* A rise must be this many times the noise. */
	__u32 contrast;
	/* The path is crowded if more than this share of a change of the gaps comes out at the other
	 * end; FS_NEVER_CROWDED switches the test off. */
	__u32 crowded;
};

#define FS_NEVER_CROWDED (~0u)
/* Fewest points since the knee for that. */
#define FS_FEWEST_QUEUED 3
/* The first gap is kept with this many bits, and larger ones up to 16 times that: their products
 * fit into 64 bits. */
#define FS_GAP_BITS 16
#define FS_LARGEST_GAP ((1ll << 20) - 1)

/* Points with this many times the least noise may be the knee, or with this share of what the
 * delays differ by (1 / 2^5): among packets that do not queue any may have the least. */
#define FS_LEVEL 3
#define FS_LEVEL_SHIFT 5

static inline void fs_points_init(struct fs_points *p, __u32 jitter)
{
	p->points = 0;
	p->all = 0;
	p->together = 0;
	p->jitter = jitter;
	p->falls = 0;
}

/* Bits of a gap beyond FS_GAP_BITS, without branches: the verifier would follow all of them. */
static inline __u32 fs_bits_above(__u64 gap)
{
	__u32 bits = 0, i;

#pragma GCC unroll 24
	for (i = FS_GAP_BITS; i < FS_LONGEST_BITS; i++)
		bits += (0 - (gap >> i)) >> 63;
	return bits;
}

/* A gap per packet in the regression's units. */
static inline __s64 fs_scaled(__u64 gap, __u32 packets, __u32 shift)
{
	return (__s64)fs_min((gap >> (shift & 63)) / packets, FS_LARGEST_GAP);
}

/* The next point, of FS_MAX_CHIRP at most: what left since the one before took `gaps` for `packets`
 * packets, this one included; `delay` is up to a constant. The first point's gap is not used. */
static inline void fs_points_add(struct fs_points *p, __u64 gaps, __u32 packets, __u64 delay)
{
	struct fs_point *point = &p->of[p->points % FS_MAX_CHIRP];

	packets = packets ? packets : 1;
	if (p->points == 0) {
		p->first_delay = delay;
		p->smallest_delay = delay;
		p->largest_delay = delay;
	} else {
		p->falls += fs_minus(p->last_delay, delay);
		p->all += packets;
		p->together += packets > FS_PACKETS_PER_ACK || gaps / 2 + delay < p->last_delay ? packets : 0;
		p->smallest_delay = fs_min(p->smallest_delay, delay);
		p->largest_delay = fs_max(p->largest_delay, delay);
	}
	point->gaps = gaps;
	point->delay = delay;
	point->packets = packets;
	p->last_delay = delay;
	p->points++;
}

/* A point behind the knee. */
FS_VERIFIED_ONCE int fs_knee_add(struct fs_knee *knee, const struct fs_point *point, __u64 delay_before)
{
	__u64 gaps, arrived;
	__u32 packets;
	__s64 in, out;

	if (!knee || !point)
		return 0;
	gaps = point->gaps;
	arrived = gaps + point->delay;
	packets = point->packets ? point->packets : 1;
	if (knee->queued == 0) {
		knee->floor = gaps / packets;
		knee->shift = fs_bits_above(knee->floor);
	}
	in = fs_scaled(gaps, packets, knee->shift);
	if (arrived >= delay_before)
		out = fs_scaled(arrived - delay_before, packets, knee->shift);
	else
		out = -fs_scaled(delay_before - arrived, packets, knee->shift);
	knee->queued++;
	knee->packets += packets;
	knee->time += gaps;
	knee->in += in * packets;
	knee->out += out * packets;
	knee->in_in += in * in * packets;
	knee->in_out += in * out * packets;
	return 0;
}

static inline __u64 fs_mean_gap(const struct fs_point *point)
{
	return point->gaps / (point->packets ? point->packets : 1);
}

/* The latest point with a delay of at most `limit`. One too late costs a packet that queued; one
 * too early takes gaps of packets that did not for the path's. */
FS_VERIFIED_ONCE int fs_knee_at(const struct fs_points *p, __u64 limit)
{
	__u32 i, at = 0;

	if (!p)
		return 0;
#pragma GCC unroll 1
	for (i = 0; i < FS_MAX_CHIRP; i++) {
		if (i >= p->points)
			break;
		if (p->of[i].delay <= limit)
			at = i;
	}
	return (int)at;
}

/* What is behind the knee. */
FS_VERIFIED_ONCE int fs_add_behind(struct fs_points *p)
{
	__u64 before;
	__u32 i;

	if (!p)
		return 0;
	before = p->knee.delay;
#pragma GCC unroll 1
	for (i = 1; i < FS_MAX_CHIRP; i++) {
		if (i >= p->points)
			break;
		if (i > p->knee.at) {
			fs_knee_add(&p->knee, &p->of[i], before);
			before = p->of[i].delay;
		}
	}
	return 0;
}

/* Where a chirp's packets queue, before it is read. */
FS_VERIFIED_ONCE int fs_find_knee(struct fs_points *p)
{
	const struct fs_point *point;
	struct fs_knee *knee;

	if (!p || !p->points)
		return 0;
	knee = &p->knee;
	__builtin_memset(knee, 0, sizeof(*knee));
	/* Around a point: the falls behind it and the rises up to it, which are all falls less what the
	 * delay came down up to there. */
	knee->noise = p->falls + p->smallest_delay - p->first_delay;
	knee->level = fs_max(knee->noise * FS_LEVEL, (p->largest_delay - p->smallest_delay) >> FS_LEVEL_SHIFT);
	knee->at = (__u32)fs_knee_at(p, p->smallest_delay + fs_max(knee->level - knee->noise, p->jitter)) % FS_MAX_CHIRP;
	point = &p->of[knee->at];
	knee->delay = point->delay;
	knee->gap = fs_mean_gap(point);
	knee->last_gap = fs_mean_gap(&p->of[(p->points - 1) % FS_MAX_CHIRP]);
	fs_add_behind(p);
	return 0;
}

/* True if more than `crowded`/1024 of a change of the gaps comes out at the other end. A chirp
 * has at most 64 packets, so nothing overflows. */
static inline bool fs_is_crowded(const struct fs_knee *knee, __u32 crowded)
{
	__s64 n = knee->packets, spread, slope;

	if (crowded == FS_NEVER_CROWDED || knee->queued < FS_FEWEST_QUEUED || knee->packets > FS_MAX_CHIRP)
		return false;
	spread = n * knee->in_in - knee->in * knee->in;
	slope = n * knee->in_out - knee->in * knee->out;
	return spread > 0 && slope * (__s64)FS_RATIO_ONE > spread * (__s64)crowded;
}

/* What a chirp says that follows others with the noise `noise_before`. */
static inline void fs_read(struct fs_reading *reading, const struct fs_points *p, const struct fs_reading_rule *rule, __u64 noise_before)
{
	const struct fs_knee *knee = &p->knee;
	__u64 rise, received, ceiling;

	reading->says = FS_UNCLEAR;
	reading->has_noise = 0;
	reading->gap = FS_FOREVER;
	reading->noise = 0;
	reading->rise = 0;
	if (p->points < 2 || p->points < rule->min_points || p->points > FS_MAX_CHIRP)
		return;
	reading->has_noise = 1;
	reading->noise = knee->noise;
	rise = fs_minus(p->last_delay, knee->delay);
	reading->rise = p->last_delay - p->smallest_delay;
	if (rise <= knee->noise) {
		/* Less noise than the time between two packets could not have hidden a queue. */
		if (knee->noise <= knee->last_gap) {
			reading->says = FS_CLEAR;
			reading->gap = knee->last_gap;
		}
		return;
	}
	if (rise < fs_max(knee->noise, noise_before) * rule->contrast)
		return;
	if (fs_is_crowded(knee, rule->crowded)) {
		reading->says = FS_CROWDED;
		return;
	}
	received = (knee->time + rise) / (knee->packets ? knee->packets : 1);
	/* The first packet that queued came too fast, unless the host's timing made it seem so; the
	 * last that did not did not, or by no more than may be noise. */
	ceiling = knee->at == 0 ? FS_FOREVER : fs_max(knee->gap, knee->floor) + knee->level;
	reading->says = FS_KNEE;
	reading->gap = fs_min(fs_max(received, p->jitter ? 0 : knee->floor), ceiling);
}

/* Packets that fill `rtt` at one per `gap`. */
static inline __u32 fs_packets_in(__u64 rtt, __u64 gap)
{
	return (__u32)fs_min(rtt / (gap ? gap : 1), 0x7fffffff);
}

/* A gap that is shorter by the factor `by`/1024. */
static inline __u64 fs_divided(__u64 gap, __u32 by)
{
	return fs_max(gap * FS_RATIO_ONE / (by ? by : 1), 1);
}

#endif
