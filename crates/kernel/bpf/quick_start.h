/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Quick-Start (RFC 4782) without kernel types: rate codes, nonces, options as bytes, checks,
 * checksums. flowstart-quick-start in integers; tests set the two against each other.
 */
#ifndef FS_QUICK_START_H
#define FS_QUICK_START_H

#include "types.h"

/* Loops that the verifier need not follow; other compilers do what they like. */
#ifdef __clang__
#define FS_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FS_UNROLL
#endif

/* Option types and lengths (RFC 4782 sections 3.1, 3.2 and 4.1). */
#define FS_IPV4_OPTION 25
#define FS_IPV4_OPTION_BYTES 8
#define FS_IPV6_OPTION 0x26
#define FS_IPV6_OPTION_BYTES 6
#define FS_TCP_OPTION 27
#define FS_TCP_OPTION_BYTES 8
/* Data of the option of IP, behind type and length. */
#define FS_DATA_BYTES 6
/* A hop-by-hop header with the option and padding. */
#define FS_EXTENSION_BYTES 16
/* Function codes. */
#define FS_REQUEST 0
#define FS_REPORT 8
/* Rates: 40 kbit/s times 2^code. */
#define FS_UNIT_BPS 40000ull
#define FS_MAX_CODE 15

/* Bits of the nonce below the steps above `code` (RFC 4782 section 3.4). */
static inline __attribute__((always_inline)) __u32 fs_nonce_bits(__u32 code)
{
	return (1u << (2 * (code & 15))) - 1;
}

static inline __attribute__((always_inline)) __u64 fs_rate_of(__u32 code)
{
	return code & 15 ? FS_UNIT_BPS << (code & 15) : 0;
}

/* The largest code whose rate is at most `bps`. */
static inline __attribute__((always_inline)) __u32 fs_floor_code(__u64 bps)
{
	__u64 units = bps / FS_UNIT_BPS;
	__u32 code = 0, n;

	FS_UNROLL
	for (n = 1; n <= FS_MAX_CODE; n++)
		if (units >> n)
			code = n;
	return code;
}

/* Nonce of a request whose rate falls: the bits of the steps taken away become random. */
static inline __attribute__((always_inline)) __u32 fs_lowered_nonce(__u32 nonce, __u32 from, __u32 to, __u32 random)
{
	__u32 taken = fs_nonce_bits(from) & ~fs_nonce_bits(to);

	return (nonce & ~taken) | (random & taken);
}

/* What became of a request. */
enum fs_answer {
	FS_ANSWER_GOOD,
	FS_ANSWER_NONE,
	FS_ANSWER_RATE,
	FS_ANSWER_TTL,
	FS_ANSWER_NONCE,
};

/* The checks of an answer in the order of RFC 4782 section 4.4. */
static inline __attribute__((always_inline)) enum fs_answer fs_check_answer(__u32 asked, __u32 difference, __u32 nonce, __u32 code,
									    __u32 answered_difference, __u32 answered_nonce)
{
	if (!code || code > asked)
		return FS_ANSWER_RATE;
	if (difference != answered_difference)
		return FS_ANSWER_TTL;
	if ((nonce ^ answered_nonce) & fs_nonce_bits(code))
		return FS_ANSWER_NONCE;
	return FS_ANSWER_GOOD;
}

/* Window in packets of `packet` bytes that makes the rate over `rtt_us`, rounded down (RFC 4782
 * section 4.4). */
static inline __attribute__((always_inline)) __u32 fs_rate_window(__u32 code, __u64 rtt_us, __u32 packet)
{
	__u64 bytes;

	/* No RTT is longer than a minute. */
	if (rtt_us > 60000000)
		rtt_us = 60000000;
	bytes = fs_rate_of(code) / 8 * rtt_us / 1000000;
	return (__u32)(bytes / (packet ? packet : 1));
}

/* The six bytes of a request or report. */
static inline __attribute__((always_inline)) void fs_write_data(__u8 *data, __u32 function, __u32 code, __u32 ttl, __u32 nonce)
{
	__u32 field = nonce << 2;

	data[0] = (__u8)(function << 4 | code);
	data[1] = (__u8)ttl;
	data[2] = (__u8)(field >> 24);
	data[3] = (__u8)(field >> 16);
	data[4] = (__u8)(field >> 8);
	data[5] = (__u8)field;
}

/* The nonce with its two reserved bits. */
static inline __attribute__((always_inline)) __u32 fs_nonce_field(const __u8 *data)
{
	return (__u32)data[2] << 24 | (__u32)data[3] << 16 | (__u32)data[4] << 8 | data[5];
}

/* Data of a request that a router approves: the TTL falls by `hops`, reserved bits stay. */
static inline __attribute__((always_inline)) void fs_approve(__u8 *data, __u32 code, __u32 hops, __u32 random)
{
	__u32 from = data[0] & 15, field = fs_nonce_field(data);
	__u32 nonce = fs_lowered_nonce(field >> 2, from, code, random);

	fs_write_data(data, data[0] >> 4, code, data[1] - hops, nonce);
	data[5] |= field & 3;
}

/* Data of a request that a router denies by zeroing. */
static inline __attribute__((always_inline)) void fs_zero(__u8 *data)
{
	data[0] &= 0xf0;
	data[1] = data[2] = data[3] = data[4] = 0;
	data[5] &= 3;
}

static inline __attribute__((always_inline)) __u32 fs_fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* The ones' complement sum of the 16-bit words in `bytes` (an even number). */
static inline __attribute__((always_inline)) __u32 fs_sum(const __u8 *bytes, __u32 length)
{
	__u32 sum = 0, i;

	FS_UNROLL
	for (i = 0; i + 1 < length; i += 2)
		sum += (__u32)bytes[i] << 8 | bytes[i + 1];
	return fs_fold(sum);
}

/* A checksum after some words changed (RFC 1624 equation 3), all in host order. */
static inline __attribute__((always_inline)) __u32 fs_mended(__u32 check, __u32 before, __u32 after)
{
	return ~fs_fold((~check & 0xffff) + (~before & 0xffff) + after) & 0xffff;
}

/* A load from bytes in `interval` ns, in bit/s: exact as long as the interval is at most two
 * seconds. */
static inline __attribute__((always_inline)) __u64 fs_load_of(__u64 bytes, __u64 interval)
{
	__u64 whole, rest;

	if (!interval)
		return ~0ull;
	whole = bytes / interval;
	rest = bytes % interval;
	return whole * 8000000000ull + rest * 8000000000ull / interval;
}

#endif
