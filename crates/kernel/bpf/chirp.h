/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The arithmetic of chirps in integers: their gaps, and what the delays of one say. No kernel
 * types: it is compiled for user space as well and set against the Rust of the simulator
 * (flowstart-congestion, start/paced_chirping), whose rules these are.
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

/* What the packets of a chirp whose RTT is their own (the newest of each ACK) have shown so far.
 * A packet queues from the knee on, the last of the smallest delays: before it delays fall,
 * behind it they rise, and what does not fit into that shape is noise. */
struct fs_points {
	__u32 points;
	/* Packets of the points but the first, and those of them whose ACKs came together: closer to the
	 * ones before than half of the time between the packets, or merged. */
	__u32 all;
	__u32 together;
	/* Delays this much above the smallest count as the smallest, in ns: what a host's own timing
	 * may add (the simulator has none: 0). */
	__u32 jitter;
	/* The knee, counted from 0. */
	__u32 knee;
	__u64 first_delay;
	__u64 last_delay;
	/* Mean gap before the last point. */
	__u64 last_gap;
	/* By how much delays fell in all. */
	__u64 falls;
	__u64 smallest_delay;
	__u64 knee_delay;
	__u64 knee_gap;
	/* Since the knee: the gaps' sum, packets, points, and the first point's gap. */
	__u64 time;
	__u32 packets;
	__u32 queued;
	__u64 floor;
	/* Sums of a linear regression of the gaps at the receiver (out) over those at the sender (in),
	 * since the knee, per packet, in units of 2^shift ns. */
	__u32 shift;
	__u32 n;
	__s64 in;
	__s64 out;
	__s64 in_in;
	__s64 in_out;
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
	/* By how much delays rose behind the knee. */
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

static inline void fs_points_init(struct fs_points *p, __u32 jitter)
{
	p->points = 0;
	p->all = 0;
	p->together = 0;
	p->jitter = jitter;
	p->falls = 0;
}

static inline void fs_points_at_knee(struct fs_points *p, __u64 gap, __u64 delay)
{
	p->knee = p->points;
	p->knee_delay = delay;
	p->knee_gap = gap;
	p->time = 0;
	p->packets = 0;
	p->queued = 0;
	p->floor = 0;
	p->n = 0;
	p->in = 0;
	p->out = 0;
	p->in_in = 0;
	p->in_out = 0;
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

/* The next point: what left since the one before took `gaps` for `packets` packets, this one
 * included; `delay` is up to a constant. The first point's gap is not used. */
static inline void fs_points_add(struct fs_points *p, __u64 gaps, __u32 packets, __u64 delay)
{
	__u64 gap;
	__s64 in, out;

	packets = packets ? packets : 1;
	gap = gaps / packets;
	if (p->points == 0) {
		p->first_delay = delay;
		p->smallest_delay = delay;
		fs_points_at_knee(p, gap, delay);
	} else {
		p->falls += fs_minus(p->last_delay, delay);
		p->all += packets;
		p->together += packets > FS_PACKETS_PER_ACK || gaps / 2 + delay < p->last_delay ? packets : 0;
		p->smallest_delay = fs_min(p->smallest_delay, delay);
		if (delay <= p->smallest_delay + p->jitter) {
			fs_points_at_knee(p, gap, delay);
		} else {
			if (p->queued == 0) {
				p->floor = gap;
				p->shift = fs_bits_above(gap);
			}
			in = fs_scaled(gaps, packets, p->shift);
			if (gaps + delay >= p->last_delay)
				out = fs_scaled(gaps + delay - p->last_delay, packets, p->shift);
			else
				out = -fs_scaled(p->last_delay - gaps - delay, packets, p->shift);
			p->queued++;
			p->packets += packets;
			p->time += gaps;
			p->n += packets;
			p->in += in * packets;
			p->out += out * packets;
			p->in_in += in * in * packets;
			p->in_out += in * out * packets;
		}
	}
	p->last_delay = delay;
	p->last_gap = gap;
	p->points++;
}

/* True if more than `crowded`/1024 of a change of the gaps comes out at the other end. A chirp
 * has at most 64 packets, so nothing overflows. */
static inline bool fs_is_crowded(const struct fs_points *p, __u32 crowded)
{
	__s64 n = p->n, spread, slope;

	if (crowded == FS_NEVER_CROWDED || p->queued < FS_FEWEST_QUEUED || p->n > FS_MAX_CHIRP)
		return false;
	spread = n * p->in_in - p->in * p->in;
	slope = n * p->in_out - p->in * p->out;
	return spread > 0 && slope * (__s64)FS_RATIO_ONE > spread * (__s64)crowded;
}

/* What a chirp says that follows others with the noise `noise_before`. */
static inline void fs_read(struct fs_reading *reading, const struct fs_points *p, const struct fs_reading_rule *rule, __u64 noise_before)
{
	__u64 rise, noise, received, ceiling;

	reading->says = FS_UNCLEAR;
	reading->has_noise = 0;
	reading->gap = FS_FOREVER;
	reading->noise = 0;
	reading->rise = 0;
	if (p->points < 2 || p->points < rule->min_points)
		return;
	/* The falls behind the knee, and the rises up to it: all falls less what the delay came down up
	 * to there. */
	noise = p->falls + p->knee_delay - p->first_delay;
	reading->has_noise = 1;
	reading->noise = noise;
	rise = fs_minus(p->last_delay, p->knee_delay);
	reading->rise = rise;
	if (rise <= noise) {
		/* Less noise than the time between two packets could not have hidden a queue. */
		if (noise <= p->last_gap) {
			reading->says = FS_CLEAR;
			reading->gap = p->last_gap;
		}
		return;
	}
	if (rise < fs_max(noise, noise_before) * rule->contrast)
		return;
	if (fs_is_crowded(p, rule->crowded)) {
		reading->says = FS_CROWDED;
		return;
	}
	received = (p->time + rise) / (p->packets ? p->packets : 1);
	/* The first packet that queued came too fast, unless the host's timing made it seem so; the
	 * last that did not did not. */
	ceiling = p->knee == 0 ? FS_FOREVER : fs_max(p->knee_gap, p->floor);
	reading->says = FS_KNEE;
	reading->gap = fs_min(fs_max(received, p->jitter ? 0 : p->floor), ceiling);
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
