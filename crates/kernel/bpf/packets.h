/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Packets as programs at a device see them, and what they need of headers.
 */
#ifndef FS_PACKETS_H
#define FS_PACKETS_H

#include "quick_start.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* The context of a packet: the kernel's interface to programs (linux/bpf.h), member by member. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	__u64 flow_keys __attribute__((aligned(8)));
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
	__u64 sk __attribute__((aligned(8)));
	__u32 gso_size;
	__u8 tstamp_type;
	__u32 : 24;
	__u64 hwtstamp;
};

/* A lock in a map's value (linux/bpf.h). */
struct bpf_spin_lock {
	__u32 val;
};

/* Next program, or on to the queue: everything passes. */
#define FS_NEXT (-1)

#define FS_ETH_P_IPV4 0x0800
#define FS_ETH_P_IPV6 0x86dd

/* IPv4 (RFC 791): offsets in the header. */
#define FS_IPV4_BYTES 20
#define FS_IPV4_LONGEST 60
#define FS_IPV4_LENGTH 2
#define FS_IPV4_FRAGMENT 6
/* Bits of that field that are the offset; the others are flags. */
#define FS_IPV4_FRAGMENT_OFFSET 0x1fff
#define FS_IPV4_TTL 8
#define FS_IPV4_PROTOCOL 9
#define FS_IPV4_CHECK 10
#define FS_IPV4_SOURCE 12
/* IPv6 (RFC 8200). */
#define FS_IPV6_BYTES 40
#define FS_IPV6_LENGTH 4
#define FS_IPV6_NEXT 6
#define FS_IPV6_HOPS 7
#define FS_IPV6_SOURCE 8
#define FS_TCP 6
/* TCP (RFC 9293). */
#define FS_TCP_BYTES 20
#define FS_TCP_ACK 8
#define FS_TCP_OFFSET 12
#define FS_TCP_FLAGS 13
#define FS_TCP_CHECK 16
#define FS_FLAG_FIN 1
#define FS_FLAG_SYN 2
#define FS_FLAG_RST 4
#define FS_FLAG_ACK 16

static __always_inline __u32 fs_word(const __u8 *at)
{
	return (__u32)at[0] << 8 | at[1];
}

/* Options of IPv4 or TCP on the search for one of eight bytes; both have the same form. */
struct fs_walk {
	__u8 options[40];
	__u32 length;
	__u32 kind;
	__u32 at;
	/* Where its data begins, behind type and length; -1 where there is none, or before it a length
	 * is impossible. */
	int found;
};

static long fs_walk_step(__u32 step, struct fs_walk *walk)
{
	__u32 at = walk->at, size;
	__u8 kind;

	if (at >= walk->length || at >= 40)
		return 1;
	kind = walk->options[at];
	if (!kind)
		return 1;
	if (kind == 1) {
		walk->at = at + 1;
		return 0;
	}
	if (at + 1 >= walk->length || at >= 39)
		return 1;
	size = walk->options[at + 1];
	if (size < 2 || (kind == walk->kind && size != FS_IPV4_OPTION_BYTES) || at + size > walk->length)
		return 1;
	if (kind == walk->kind) {
		walk->found = at + 2;
		return 1;
	}
	walk->at = at + size;
	return 0;
}

/* Finds an option among `length` bytes of the packet from `from` on; the bytes stay in `walk`. */
static __always_inline int fs_find(struct __sk_buff *skb, struct fs_walk *walk, __u32 from, __u32 length, __u32 kind)
{
	if (length < FS_IPV4_OPTION_BYTES || length > 40 || bpf_skb_load_bytes(skb, from, walk->options, length))
		return -1;
	walk->length = length;
	walk->kind = kind;
	walk->at = 0;
	walk->found = -1;
	bpf_loop(40, fs_walk_step, walk, 0);
	return walk->found;
}

#endif
