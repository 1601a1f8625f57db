/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Quick-Start on the packets of a host: requests and reports into headers of IP, answers into
 * headers of TCP, and both out of them. Programs at a device do it, so that applications and
 * sockets know nothing of it; listeners that were there before are served too.
 */
#ifndef FS_CARRYING_H
#define FS_CARRYING_H

#include "asking.h"

/* Answers wait at most this long for a packet to go with. */
#define FS_ANSWER_TIME 2000000000ull
/* struct iphdr and struct ipv6hdr are what bpf_skb_adjust_room works behind. */
#define BPF_ADJ_ROOM_NET 0
#define BPF_F_CURRENT_NETNS (-1L)
#define BPF_F_PSEUDO_HDR (1ull << 4)
#define BPF_NOEXIST 1

/* A packet of TCP, as far as it has been looked at; offsets from the beginning of the packet. */
struct fs_view {
	struct fs_pair pair;
	__u32 ip;
	__u32 tcp;
	__u32 length;
	__u32 sequence;
	__u8 offset;
	__u8 flags;
	__u8 ttl;
	bool is_v6;
};

static __always_inline __u32 header_of(const struct fs_view *view)
{
	return view->offset * 4;
}

/* The network namespace of the device that a packet is at. */
static __always_inline __u64 network_of(struct __sk_buff *skb)
{
	struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);

	return BPF_CORE_READ(packet, dev, nd_net.net, net_cookie);
}

/* Payload of TCP in bytes. */
static __always_inline __u32 payload_of(const struct fs_view *view)
{
	return view->length - (view->tcp - view->ip) - header_of(view);
}

/* What leaves this host with nothing between IP and TCP. */
static __always_inline bool look_at_leaving(struct __sk_buff *skb, __u32 ip, struct fs_view *view)
{
	void *end = (void *)(long)skb->data_end;
	__u8 *fixed = (void *)(long)skb->data + ip, *tcp;

	view->ip = ip;
	if (skb->protocol == bpf_htons(FS_ETH_P_IPV4)) {
		if ((void *)fixed + FS_IPV4_BYTES + FS_TCP_BYTES > end)
			return false;
		if (fixed[0] != 0x45 || fixed[FS_IPV4_PROTOCOL] != FS_TCP)
			return false;
		tcp = fixed + FS_IPV4_BYTES;
		view->is_v6 = false;
		view->length = fs_word(fixed + FS_IPV4_LENGTH);
		view->ttl = fixed[FS_IPV4_TTL];
		view->tcp = ip + FS_IPV4_BYTES;
		__builtin_memset(&view->pair, 0, sizeof(view->pair));
		__builtin_memcpy(view->pair.local, fixed + FS_IPV4_SOURCE, 4);
		__builtin_memcpy(view->pair.remote, fixed + FS_IPV4_SOURCE + 4, 4);
	} else if (skb->protocol == bpf_htons(FS_ETH_P_IPV6)) {
		if ((void *)fixed + FS_IPV6_BYTES + FS_TCP_BYTES > end)
			return false;
		if (fixed[FS_IPV6_NEXT] != FS_TCP)
			return false;
		tcp = fixed + FS_IPV6_BYTES;
		view->is_v6 = true;
		view->length = fs_word(fixed + FS_IPV6_LENGTH) + FS_IPV6_BYTES;
		view->ttl = fixed[FS_IPV6_HOPS];
		view->tcp = ip + FS_IPV6_BYTES;
		__builtin_memcpy(view->pair.local, fixed + FS_IPV6_SOURCE, 16);
		__builtin_memcpy(view->pair.remote, fixed + FS_IPV6_SOURCE + 16, 16);
	} else {
		return false;
	}
	__builtin_memcpy(&view->pair.local_port, tcp, 2);
	__builtin_memcpy(&view->pair.remote_port, tcp + 2, 2);
	view->sequence = (__u32)fs_word(tcp + 4) << 16 | fs_word(tcp + 6);
	view->offset = tcp[FS_TCP_OFFSET] >> 4;
	view->flags = tcp[FS_TCP_FLAGS];
	return view->offset >= 5;
}

/* Writes an option of IP into a packet that has none. Returns false, and leaves the packet as it
 * was, if there is no room. */
static __noinline int write_option(struct __sk_buff *skb, __u32 ip, bool is_v6, __u32 function_and_code, __u64 ttl_and_nonce)
{
	__u32 ttl = ttl_and_nonce >> 32, nonce = (__u32)ttl_and_nonce, check, mtu = 0;
	__u32 function = function_and_code >> 4, code = function_and_code & 15;
	__u32 room = is_v6 ? FS_EXTENSION_BYTES : FS_IPV4_OPTION_BYTES;
	__u8 fixed[12], option[FS_EXTENSION_BYTES] = {};
	__be16 field;

	/* A super-packet would carry it on each of its segments. */
	if (skb->gso_segs > 1)
		return 0;
	if (bpf_check_mtu(skb, 0, &mtu, room, 0))
		return 0;
	if (bpf_skb_load_bytes(skb, ip, fixed, sizeof(fixed)))
		return 0;
	if (bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_NET, 0))
		return 0;
	if (is_v6) {
		option[0] = fixed[FS_IPV6_NEXT];
		option[1] = 1;
		option[2] = FS_IPV6_OPTION;
		option[3] = FS_IPV6_OPTION_BYTES;
		fs_write_data(option + 4, function, code, ttl, nonce);
		option[10] = 1;
		option[11] = 4;
		bpf_skb_store_bytes(skb, ip + FS_IPV6_BYTES, option, FS_EXTENSION_BYTES, 0);
		fixed[FS_IPV6_NEXT] = 0;
		bpf_skb_store_bytes(skb, ip + FS_IPV6_NEXT, fixed + FS_IPV6_NEXT, 1, 0);
		field = bpf_htons((__u16)(fs_word(fixed + FS_IPV6_LENGTH) + FS_EXTENSION_BYTES));
		bpf_skb_store_bytes(skb, ip + FS_IPV6_LENGTH, &field, sizeof(field), 0);
		return 1;
	}
	check = fs_word(fixed + FS_IPV4_CHECK);
	option[0] = FS_IPV4_OPTION;
	option[1] = FS_IPV4_OPTION_BYTES;
	fs_write_data(option + 2, function, code, ttl, nonce);
	check = fs_mended(check, fs_sum(fixed, 4), 0);
	fixed[0] = 0x47;
	field = bpf_htons((__u16)(fs_word(fixed + FS_IPV4_LENGTH) + FS_IPV4_OPTION_BYTES));
	__builtin_memcpy(fixed + FS_IPV4_LENGTH, &field, 2);
	check = fs_mended(check, 0, fs_sum(fixed, 4));
	check = fs_mended(check, 0, fs_sum(option, FS_IPV4_OPTION_BYTES));
	field = bpf_htons((__u16)check);
	bpf_skb_store_bytes(skb, ip + FS_IPV4_BYTES, option, FS_IPV4_OPTION_BYTES, 0);
	bpf_skb_store_bytes(skb, ip, fixed, 4, 0);
	bpf_skb_store_bytes(skb, ip + FS_IPV4_CHECK, &field, sizeof(field), 0);
	return 1;
}

/* Puts an answer behind the options of TCP, in a packet without payload. */
static __noinline int write_answer(struct __sk_buff *skb, struct fs_view *view, struct fs_heard *heard)
{
	__u8 option[FS_TCP_OPTION_BYTES], fixed[4], offset[2];
	__u32 end, check, mtu = 0, word;
	__be16 field, before;

	if (!view || !heard || view->offset > 13 || payload_of(view) || skb->gso_segs > 1)
		return 0;
	end = view->tcp + header_of(view);
	if (skb->len != end || bpf_check_mtu(skb, 0, &mtu, FS_TCP_OPTION_BYTES, 0))
		return 0;
	if (bpf_skb_load_bytes(skb, view->tcp + FS_TCP_OFFSET, offset, sizeof(offset)))
		return 0;
	if (bpf_skb_change_tail(skb, end + FS_TCP_OPTION_BYTES, 0))
		return 0;
	option[0] = FS_TCP_OPTION;
	option[1] = FS_TCP_OPTION_BYTES;
	fs_write_data(option + 2, 0, heard->rate, heard->difference, heard->nonce);
	bpf_skb_store_bytes(skb, end, option, sizeof(option), 0);
	/* The length in the pseudo-header, the header's length, and the option. */
	bpf_l4_csum_replace(skb, view->tcp + FS_TCP_CHECK, bpf_htons((__u16)header_of(view)),
			    bpf_htons((__u16)(header_of(view) + FS_TCP_OPTION_BYTES)), BPF_F_PSEUDO_HDR | 2);
	__builtin_memcpy(&before, offset, 2);
	offset[0] += 2 << 4;
	__builtin_memcpy(&field, offset, 2);
	bpf_l4_csum_replace(skb, view->tcp + FS_TCP_CHECK, before, field, 2);
	__builtin_memcpy(&word, option, 4);
	bpf_l4_csum_replace(skb, view->tcp + FS_TCP_CHECK, 0, word, 4);
	__builtin_memcpy(&word, option + 4, 4);
	bpf_l4_csum_replace(skb, view->tcp + FS_TCP_CHECK, 0, word, 4);
	bpf_skb_store_bytes(skb, view->tcp + FS_TCP_OFFSET, offset, sizeof(offset), 0);
	if (view->is_v6) {
		field = bpf_htons((__u16)(view->length - FS_IPV6_BYTES + FS_TCP_OPTION_BYTES));
		bpf_skb_store_bytes(skb, view->ip + FS_IPV6_LENGTH, &field, sizeof(field), 0);
	} else {
		if (bpf_skb_load_bytes(skb, view->ip, fixed, sizeof(fixed)) ||
		    bpf_skb_load_bytes(skb, view->ip + FS_IPV4_CHECK, &field, sizeof(field)))
			return 1;
		check = fs_mended(bpf_ntohs(field), view->length, view->length + FS_TCP_OPTION_BYTES);
		field = bpf_htons((__u16)(view->length + FS_TCP_OPTION_BYTES));
		bpf_skb_store_bytes(skb, view->ip + FS_IPV4_LENGTH, &field, sizeof(field), 0);
		field = bpf_htons((__u16)check);
		bpf_skb_store_bytes(skb, view->ip + FS_IPV4_CHECK, &field, sizeof(field), 0);
	}
	view->offset += 2;
	view->length += FS_TCP_OPTION_BYTES;
	FS_COUNT(answered);
	return 1;
}

/* Answers what came in, if this packet can carry the answer. */
static __always_inline void answer_on(struct __sk_buff *skb, struct fs_view *view)
{
	struct fs_heard *found, heard;

	view->pair.network = network_of(skb);
	found = bpf_map_lookup_elem(&fs_heards, &view->pair);
	if (!found)
		return;
	heard = *found;
	/* Once: a lost answer is a denial. */
	bpf_map_delete_elem(&fs_heards, &view->pair);
	if (bpf_ktime_get_ns() - heard.time < FS_ANSWER_TIME && !write_answer(skb, view, &heard))
		FS_COUNT(failed);
}

/* Secrets of a request; the difference is what the sender will compare with. */
static __always_inline void make_request(struct fs_ask *ask, __u32 code, __u8 ip_ttl, __u8 ttl)
{
	ask->nonce = bpf_get_prandom_u32() & 0x3fffffff;
	ask->rate = code;
	ask->difference = ip_ttl - ttl;
	ask->is_answered = false;
	ask->asked_at = bpf_ktime_get_ns();
	ask->phase = FS_ASKED;
}

/* The rate asked for: no more than the socket's largest pacing rate (SO_MAX_PACING_RATE). */
static __always_inline __u32 wish_of(const struct sock *sk)
{
	unsigned long most = BPF_CORE_READ(sk, sk_max_pacing_rate);
	__u32 code = fs_parameters.request & 15, limit = FS_MAX_CODE;

	if (most && most < (1ull << 40))
		limit = fs_floor_code((__u64)most * 8);
	return code < limit ? code : limit;
}

/* A SYN of a connection that this host opens. */
static __always_inline void ask_on_syn(struct __sk_buff *skb, struct fs_view *view, struct tcp_sock *tp)
{
	struct fs_ask *ask;
	char name[16] = {};
	__u32 code;
	__u8 ttl;

	ask = bpf_sk_storage_get(&fs_asks, tp, 0, 0);
	if (ask) {
		/* Sent again: without, and the answer to the first does not count (RFC 4782 section
		 * 4.7.2). */
		if (ask->phase == FS_ASKED && !ask->is_lost) {
			ask->is_lost = true;
			FS_COUNT(lost);
		}
		return;
	}
	if (!fs_parameters.on_syn)
		return;
	BPF_CORE_READ_INTO(&name, tp, inet_conn.icsk_ca_ops, name);
	if (!is_quick_start(name))
		return;
	code = wish_of((struct sock *)tp);
	if (!code)
		return;
	ask = bpf_sk_storage_get(&fs_asks, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!ask)
		return;
	ttl = (__u8)bpf_get_prandom_u32();
	make_request(ask, code, view->ttl, ttl);
	if (write_option(skb, view->ip, view->is_v6, FS_REQUEST << 4 | code, (__u64)ttl << 32 | ask->nonce)) {
		FS_COUNT(asked);
	} else {
		ask->phase = FS_IDLE;
		FS_COUNT(failed);
	}
}

/* The listener behind a connection that is being opened. */
static __always_inline struct sock *listener_of(struct tcp_request_sock *request)
{
	return BPF_CORE_READ(request, req.req.__req_common.skc_listener);
}

/* A SYN/ACK. */
static __always_inline void ask_on_syn_ack(struct __sk_buff *skb, struct fs_view *view, struct tcp_request_sock *request)
{
	struct fs_ask *known, ask;
	char name[16] = {};
	struct sock *listener;
	__u32 code;
	__u8 ttl;

	known = bpf_map_lookup_elem(&fs_opening, &view->pair);
	/* Sent again. What begins with another number is of a connection that was never opened, whose
	 * client took the same port again. */
	if (known && known->first == view->sequence) {
		known->is_lost = true;
		return;
	}
	if (known)
		bpf_map_delete_elem(&fs_opening, &view->pair);
	listener = listener_of(request);
	if (!listener)
		return;
	BPF_CORE_READ_INTO(&name, (struct tcp_sock *)listener, inet_conn.icsk_ca_ops, name);
	if (!is_quick_start(name))
		return;
	code = wish_of(listener);
	if (!code)
		return;
	ttl = (__u8)bpf_get_prandom_u32();
	__builtin_memset(&ask, 0, sizeof(ask));
	make_request(&ask, code, view->ttl, ttl);
	ask.first = view->sequence;
	if (bpf_map_update_elem(&fs_opening, &view->pair, &ask, BPF_NOEXIST))
		return;
	if (write_option(skb, view->ip, view->is_v6, FS_REQUEST << 4 | code, (__u64)ttl << 32 | ask.nonce)) {
		FS_COUNT(asked);
	} else {
		bpf_map_delete_elem(&fs_opening, &view->pair);
		FS_COUNT(failed);
	}
}

/* Bytes of a full packet. */
static __always_inline __u32 packet_of(const struct fs_view *view, const struct tcp_sock *tp)
{
	return tp->mss_cache + tp->tcp_header_len + (view->is_v6 ? FS_IPV6_BYTES : FS_IPV4_BYTES);
}

/* Whether an option of IP fits on a packet: the path may carry less than the device. */
static __always_inline bool has_room(const struct fs_view *view, const struct tcp_sock *tp)
{
	__u32 room = view->is_v6 ? FS_EXTENSION_BYTES : FS_IPV4_OPTION_BYTES;

	return view->length + room <= packet_of(view, tp);
}

/* A request on data. The window is that of the rate over the RTT: what could not be granted enough
 * of is not worth the routers' while. */
static __always_inline void ask_on_data(struct __sk_buff *skb, struct fs_view *view, struct tcp_sock *tp, struct fs_ask *ask)
{
	__u32 code = wish_of((struct sock *)tp), rtt = tp->srtt_us >> 3, limit;
	__u32 packet = packet_of(view, tp);
	__u8 ttl = (__u8)bpf_get_prandom_u32();

	/* After congestion no more than the largest window since then (RFC 4782 section 4.1). */
	if (ask->was_congested && rtt) {
		limit = fs_floor_code((__u64)ask->largest * packet * 8 * 1000000 / rtt);
		code = code < limit ? code : limit;
	}
	ask->phase = FS_IDLE;
	if (!code || fs_rate_window(code, rtt, packet) <= tp->snd_cwnd)
		return;
	if (!has_room(view, tp)) {
		FS_COUNT(failed);
		return;
	}
	make_request(ask, code, view->ttl, ttl);
	if (!write_option(skb, view->ip, view->is_v6, FS_REQUEST << 4 | code, (__u64)ttl << 32 | ask->nonce)) {
		ask->phase = FS_IDLE;
		FS_COUNT(failed);
		return;
	}
	ask->in_middle = true;
	ask->is_lost = false;
	ask->first = view->sequence;
	FS_COUNT(asked);
	FS_COUNT(asked_in_middle);
}

/* Data and ACKs. The report of what was approved leaves with the next packet that it fits on. */
static __always_inline void carry_on_data(struct __sk_buff *skb, struct fs_view *view, struct tcp_sock *tp)
{
	struct fs_ask *ask = bpf_sk_storage_get(&fs_asks, tp, 0, 0);

	if (!ask)
		return;
	if (ask->is_report_due) {
		if (has_room(view, tp) &&
		    write_option(skb, view->ip, view->is_v6, FS_REPORT << 4 | ask->reported, ask->nonce)) {
			ask->is_report_due = false;
			FS_COUNT(reports);
		}
		return;
	}
	if (!payload_of(view))
		return;
	if (ask->phase == FS_WANTED && view->sequence == tp->snd_nxt) {
		ask_on_data(skb, view, tp, ask);
	} else if (ask->phase == FS_ASKED && ask->in_middle && view->sequence == ask->first) {
		/* Sent again: something on the path may drop packets with options (as
		 * flowstart-quick-start has it). */
		ask->phase = FS_IDLE;
		ask->is_off = true;
		FS_COUNT(lost);
	}
}

/* Everything that leaves. */
static __always_inline int carry_out(struct __sk_buff *skb, __u32 ip)
{
	void *socket = (void *)(long)skb->sk;
	struct tcp_request_sock *request;
	struct fs_view view = {};
	struct tcp_sock *tp;
	__u64 last;

	if (!socket || !look_at_leaving(skb, ip, &view))
		return FS_NEXT;
	if (view.flags & FS_FLAG_RST)
		return FS_NEXT;
	if (view.flags & FS_FLAG_SYN && view.flags & FS_FLAG_ACK) {
		answer_on(skb, &view);
		if (!fs_parameters.on_syn_ack)
			return FS_NEXT;
		request = bpf_skc_to_tcp_request_sock(socket);
		if (request)
			ask_on_syn_ack(skb, &view, request);
		return FS_NEXT;
	}
	tp = bpf_skc_to_tcp_sock(socket);
	if (!tp)
		return FS_NEXT;
	if (view.flags & FS_FLAG_SYN) {
		ask_on_syn(skb, &view, tp);
		return FS_NEXT;
	}
	last = fs_last_heard;
	if (last && !payload_of(&view) && !(view.flags & FS_FLAG_FIN)) {
		if (bpf_ktime_get_ns() - last > FS_ANSWER_TIME)
			fs_last_heard = 0;
		else
			answer_on(skb, &view);
	}
	carry_on_data(skb, &view, tp);
	return FS_NEXT;
}

#endif
