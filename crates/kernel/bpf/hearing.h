/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Quick-Start on the packets that come in: requests to be answered, answers to be judged.
 */
#ifndef FS_HEARING_H
#define FS_HEARING_H

#include "carrying.h"

/* Options of a hop-by-hop header that are looked at. */
#define FS_HOP_STEPS 16

struct bpf_sock_tuple {
	union {
		struct {
			__be32 saddr;
			__be32 daddr;
			__be16 sport;
			__be16 dport;
		} ipv4;
		struct {
			__be32 saddr[4];
			__be32 daddr[4];
			__be16 sport;
			__be16 dport;
		} ipv6;
	};
};

/* The data of a Quick-Start option came with this TTL of IP. */
static __noinline int hear_request(struct fs_pair *pair, const __u8 *data, __u8 ip_ttl)
{
	struct fs_heard heard = {};
	__u32 code;

	if (!pair || !data)
		return 0;
	code = data[0] & 15;
	if (data[0] >> 4 != FS_REQUEST || !code || !fs_parameters.answer)
		return 0;
	FS_COUNT(heard);
	heard.time = bpf_ktime_get_ns();
	heard.nonce = fs_nonce_field(data) >> 2;
	heard.rate = code < fs_parameters.answer ? code : fs_parameters.answer;
	heard.difference = ip_ttl - data[1];
	if (!bpf_map_update_elem(&fs_heards, pair, &heard, BPF_ANY))
		fs_last_heard = heard.time;
	return 0;
}

/* An answer came: kept for the congestion control, which judges it. */
static __noinline int hear_answer(struct __sk_buff *skb, struct fs_pair *pair, bool is_v6, const __u8 *data)
{
	struct bpf_sock_tuple tuple = {};
	struct fs_ask *ask = 0;
	struct tcp_sock *tp;
	void *socket;

	if (!pair || !data)
		return 0;
	if (is_v6) {
		__builtin_memcpy(tuple.ipv6.saddr, pair->remote, 16);
		__builtin_memcpy(tuple.ipv6.daddr, pair->local, 16);
		tuple.ipv6.sport = pair->remote_port;
		tuple.ipv6.dport = pair->local_port;
		socket = bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	} else {
		__builtin_memcpy(&tuple.ipv4.saddr, pair->remote, 4);
		__builtin_memcpy(&tuple.ipv4.daddr, pair->local, 4);
		tuple.ipv4.sport = pair->remote_port;
		tuple.ipv4.dport = pair->local_port;
		socket = bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	if (!socket)
		return 0;
	tp = bpf_skc_to_tcp_sock(socket);
	if (tp)
		ask = bpf_sk_storage_get(&fs_asks, tp, 0, 0);
	else
		ask = bpf_map_lookup_elem(&fs_opening, pair);
	if (ask && ask->phase == FS_ASKED && !ask->is_answered) {
		ask->answered_rate = data[0] & 15;
		ask->answered_difference = data[1];
		ask->answered_nonce = fs_nonce_field(data) >> 2;
		ask->is_answered = true;
	}
	bpf_sk_release(socket);
	return 0;
}

static __noinline int hear_tcp_options(struct __sk_buff *skb, struct fs_pair *pair, bool is_v6, __u32 at, __u32 length)
{
	struct fs_walk walk = {};
	int found;

	if (!pair)
		return 0;
	found = fs_find(skb, &walk, at, length, FS_TCP_OPTION);
	if (found >= 2 && found <= 34)
		hear_answer(skb, pair, is_v6, walk.options + found);
	return 0;
}

static __noinline int hear_ipv4_options(struct __sk_buff *skb, struct fs_pair *pair, __u32 at, __u32 length, __u8 ttl)
{
	struct fs_walk walk = {};
	int found;

	if (!pair)
		return 0;
	found = fs_find(skb, &walk, at, length, FS_IPV4_OPTION);
	if (found >= 2 && found <= 34)
		hear_request(pair, walk.options + found, ttl);
	return 0;
}

static __noinline int hear_ipv6_options(struct __sk_buff *skb, struct fs_pair *pair, __u32 begin, __u32 end, __u8 hops)
{
	__u8 two[2], data[FS_DATA_BYTES];
	__u32 at = begin, step;

	if (!pair)
		return 0;
	for (step = 0; step < FS_HOP_STEPS; step++) {
		if (at >= end || bpf_skb_load_bytes(skb, at, two, 1))
			return 0;
		if (!two[0]) {
			at++;
			continue;
		}
		if (at + 1 >= end || bpf_skb_load_bytes(skb, at + 1, two + 1, 1) || at + 2 + two[1] > end)
			return 0;
		if (two[0] == FS_IPV6_OPTION) {
			if (two[1] == FS_IPV6_OPTION_BYTES && !bpf_skb_load_bytes(skb, at + 2, data, sizeof(data)))
				hear_request(pair, data, hops);
			return 0;
		}
		at += 2 + two[1];
	}
	return 0;
}

/* Everything that comes in. */
static __always_inline int carry_in(struct __sk_buff *skb, __u32 ip)
{
	__u32 header, at, length;
	struct fs_pair pair = {};
	void *end;
	__u8 *fixed, tcp[24];
	bool is_v6;
	__u8 ttl;

	if (skb->protocol == bpf_htons(FS_ETH_P_IPV4))
		is_v6 = false;
	else if (skb->protocol == bpf_htons(FS_ETH_P_IPV6))
		is_v6 = true;
	else
		return FS_NEXT;
	header = is_v6 ? FS_IPV6_BYTES : FS_IPV4_BYTES;
	if ((void *)(long)skb->data + ip + header > (void *)(long)skb->data_end && bpf_skb_pull_data(skb, ip + header))
		return FS_NEXT;
	fixed = (void *)(long)skb->data + ip;
	end = (void *)(long)skb->data_end;
	if (is_v6) {
		if ((void *)fixed + FS_IPV6_BYTES > end)
			return FS_NEXT;
		if (fixed[FS_IPV6_NEXT] != FS_TCP && fixed[FS_IPV6_NEXT])
			return FS_NEXT;
		ttl = fixed[FS_IPV6_HOPS];
		__builtin_memcpy(pair.remote, fixed + FS_IPV6_SOURCE, 16);
		__builtin_memcpy(pair.local, fixed + FS_IPV6_SOURCE + 16, 16);
		if (!fixed[FS_IPV6_NEXT]) {
			if (bpf_skb_load_bytes(skb, ip + FS_IPV6_BYTES, tcp, 2) || tcp[0] != FS_TCP)
				return FS_NEXT;
			header = FS_IPV6_BYTES + 8 * (tcp[1] + 1);
		}
	} else {
		if ((void *)fixed + FS_IPV4_BYTES > end)
			return FS_NEXT;
		header = (fixed[0] & 15) * 4;
		if (fixed[FS_IPV4_PROTOCOL] != FS_TCP || header < FS_IPV4_BYTES)
			return FS_NEXT;
		/* The ports are in the first fragment, the option too. */
		if (fs_word(fixed + FS_IPV4_FRAGMENT) & FS_IPV4_FRAGMENT_OFFSET)
			return FS_NEXT;
		ttl = fixed[FS_IPV4_TTL];
		__builtin_memcpy(pair.remote, fixed + FS_IPV4_SOURCE, 4);
		__builtin_memcpy(pair.local, fixed + FS_IPV4_SOURCE + 4, 4);
	}
	at = ip + header;
	/* With no options there is nothing to hear; with timestamps alone, as on most data, neither. */
	if (bpf_skb_load_bytes(skb, at, tcp, sizeof(tcp))) {
		if (header == (is_v6 ? FS_IPV6_BYTES : FS_IPV4_BYTES) || bpf_skb_load_bytes(skb, at, tcp, FS_TCP_BYTES))
			return FS_NEXT;
	}
	__builtin_memcpy(&pair.remote_port, tcp, 2);
	__builtin_memcpy(&pair.local_port, tcp + 2, 2);
	length = (tcp[FS_TCP_OFFSET] >> 4) * 4;
	if (header > (is_v6 ? FS_IPV6_BYTES : FS_IPV4_BYTES))
		pair.network = network_of(skb);
	if (!is_v6 && header > FS_IPV4_BYTES)
		hear_ipv4_options(skb, &pair, ip + FS_IPV4_BYTES, header - FS_IPV4_BYTES, ttl);
	if (is_v6 && header > FS_IPV6_BYTES)
		hear_ipv6_options(skb, &pair, ip + FS_IPV6_BYTES + 2, at, ttl);
	if (length <= FS_TCP_BYTES || !(tcp[FS_TCP_FLAGS] & FS_FLAG_ACK) || tcp[FS_TCP_FLAGS] & FS_FLAG_RST)
		return FS_NEXT;
	if (length == 32 && tcp[20] == 1 && tcp[21] == 1 && tcp[22] == 8 && tcp[23] == 10)
		return FS_NEXT;
	pair.network = network_of(skb);
	hear_tcp_options(skb, &pair, is_v6, at + FS_TCP_BYTES, length - FS_TCP_BYTES);
	return FS_NEXT;
}

#endif
