// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* A router that knows Quick-Start (RFC 4782 section 3.3) at the egress of a device: meters what
 * leaves, decides on requests, rewrites them. The decisions are those of flowstart-quick-start
 * (router/admission.rs, router/meter.rs, router/flows.rs); the TTL of IP has been lowered by the
 * kernel. */
#include "flows.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* Samples kept at most (RFC 4782 appendix C: 3 to 20). */
#define FS_SAMPLES 20
/* Options of IPv6 that are looked at. */
#define FS_IPV6_STEPS 64

const volatile struct {
	/* What load and grants may reach together, bit/s. */
	__u64 limit;
	/* Length of an interval of the meter, ns; at most two seconds. */
	__u64 interval;
	/* When the first interval began, on the kernel's clock. */
	__u64 origin;
	/* Time between two requests that are looked at, and how much earlier one may come, ns. */
	__u64 gap;
	__u64 tolerance;
	/* Intervals whose largest load counts. */
	__u32 samples;
	/* By how much the TTL of IP falls for packets that are forwarded. */
	__u32 hops;
	/* Bytes in front of IP: 14 for Ethernet, 0 for tunnels. */
	__u32 link_header;
	/* The clock and what is random come with the packet, and the decision is the program's result:
	 * for tests. */
	__u32 test;
	/* Grants remembered flow by flow at most; 0: sums of the last intervals instead. */
	__u32 flows;
	/* Faults after which a source is refused. */
	__u32 faults;
	/* Whether a grant that is used but not reported is a fault. */
	__u32 expect_reports;
	/* Whether a grant counts only as far as its flow is not in the load yet. */
	__u32 count_once;
	/* A grant that no data follows is given back after this, and faults are forgotten; ns. */
	__u64 unused_after;
	__u64 forgive_after;
	/* Of the hash tables. */
	__u64 seed;
} fs_parameters SEC(".rodata.parameters") = { .limit = 0, .interval = 1000000000 };

struct fs_router {
	struct bpf_spin_lock lock;
	/* Sample that is overwritten next. */
	__u32 turn;
	/* When the present interval ends, and what has left in it. */
	__u64 end;
	__u64 bytes;
	__u64 load;
	/* Grants of the present and the last interval, bit/s; with flows the first is all. */
	__u64 granted[2];
	/* When the next request is expected at the earliest. */
	__u64 expected;
	__u64 approved;
	__u64 denied;
	__u64 ignored;
	__u64 reports;
	/* Reports by what they said: of nothing, and of a rate. */
	__u64 reports_of_zero;
	/* Sum of all rates granted, and of all rates reported, bit/s. */
	__u64 granted_sum;
	__u64 reported_sum;
	/* Everything that left. */
	__u64 packets;
	__u64 all_bytes;
	/* With flows: broken rules, and reports that belong to no request. */
	__u64 faults;
	__u64 strays;
	__u64 samples[FS_SAMPLES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_router);
} fs_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_flows);
} fs_flow_state SEC(".maps");

/* Intervals that ended at `now` or before are complete; how many. Under the lock. */
static __always_inline __u64 complete(struct fs_router *router, __u64 now)
{
	__u64 interval = fs_parameters.interval, bytes = router->bytes, passed, first, load = 0;
	__u32 samples = fs_parameters.samples, n, turn = router->turn;

	if (now < router->end || !interval)
		return 0;
	passed = (now - router->end) / interval + 1;
	first = fs_load_of(bytes, interval);
	for (n = 0; n <= FS_SAMPLES; n++) {
		if (n >= passed || n > samples)
			break;
		if (turn >= FS_SAMPLES)
			turn = 0;
		router->samples[turn] = n ? 0 : first;
		turn++;
		if (turn >= samples)
			turn = 0;
	}
	router->turn = turn;
	/* Other processors count on meanwhile; what they add is the next interval's. */
	__sync_fetch_and_add(&router->bytes, -bytes);
	router->end += interval * passed;
	for (n = 0; n < FS_SAMPLES; n++)
		if (router->samples[n] > load)
			load = router->samples[n];
	router->load = load;
	if (!fs_parameters.flows) {
		router->granted[1] = passed == 1 ? router->granted[0] : 0;
		router->granted[0] = 0;
	}
	return passed;
}

/* Whether a request is looked at: the virtual scheduling algorithm (ITU-T I.371, appendix). Under
 * the lock. */
static __always_inline bool is_looked_at(struct fs_router *router, __u64 now)
{
	__u64 expected = router->expected;

	/* None at all per second. */
	if (fs_parameters.gap == ~0ull)
		return false;
	if (expected > now && expected - now > fs_parameters.tolerance)
		return false;
	router->expected = (expected > now ? expected : now) + fs_parameters.gap;
	return true;
}

/* What there is of `wanted`, counted as decided. Under the lock. */
static __always_inline __u32 decide(struct fs_router *router, __u32 wanted, bool is_accepted)
{
	__u64 used = router->load + router->granted[0] + router->granted[1], free = 0;
	__u32 code = 0;

	if (is_accepted && used < fs_parameters.limit)
		free = fs_parameters.limit - used;
	code = fs_floor_code(free);
	if (code > wanted)
		code = wanted;
	if (!fs_parameters.flows)
		router->granted[0] += fs_rate_of(code);
	router->granted_sum += fs_rate_of(code);
	if (code)
		router->approved++;
	else
		router->denied++;
	return code;
}

/* What is granted of `wanted` without regard to flows; -1 if the request is not looked at. */
static __always_inline int admit(struct fs_router *router, __u64 now, __u32 wanted)
{
	int granted = -1;

	bpf_spin_lock(&router->lock);
	if (is_looked_at(router, now))
		granted = decide(router, wanted, true);
	else
		router->ignored++;
	bpf_spin_unlock(&router->lock);
	return granted;
}

#include "flows_step.h"

static __always_inline void count(struct fs_router *router, struct fs_flows *flows, __u64 now, __u32 bytes)
{
	if (now >= router->end) {
		if (flows) {
			turn(router, flows, now);
		} else {
			bpf_spin_lock(&router->lock);
			complete(router, now);
			bpf_spin_unlock(&router->lock);
		}
	}
	__sync_fetch_and_add(&router->bytes, bytes);
	__sync_fetch_and_add(&router->all_bytes, bytes);
	__sync_fetch_and_add(&router->packets, 1);
}

/* Looks at the data of an option and changes it. Returns what was granted; -1 if nothing was
 * decided. */
static __noinline int look(struct __sk_buff *skb, struct fs_router *router, __u64 now, __u8 *data)
{
	__u32 wanted, hops, random = 0, zero = 0;
	struct fs_flows *flows = 0;
	struct fs_event event = {};
	int granted;

	if (!router || !data)
		return -1;
	wanted = data[0] & 15;
	if (fs_parameters.flows) {
		flows = bpf_map_lookup_elem(&fs_flow_state, &zero);
		event.now = now;
		event.rate = wanted;
		event.nonce = fs_nonce_field(data) >> 2;
		/* The key as it was when the packet was counted: options are no part of it. */
		fs_key_of(skb, fs_parameters.link_header, &event.key);
		if (!event.key.is_known)
			event.key.flow = event.key.source = 0;
	}
	if (data[0] >> 4 == FS_REPORT) {
		if (flows) {
			sweep(now);
			if (!fs_reported_grant(&event))
				fs_reported_denial(&event);
		}
		__sync_fetch_and_add(&router->reports, 1);
		if (wanted)
			__sync_fetch_and_add(&router->reported_sum, fs_rate_of(wanted));
		else
			__sync_fetch_and_add(&router->reports_of_zero, 1);
		return -1;
	}
	if (data[0] >> 4 != FS_REQUEST || !wanted)
		return -1;
	granted = flows ? asked(router, flows, &event) : admit(router, now, wanted);
	if (granted < 0)
		return -1;
	if (!granted) {
		fs_zero(data);
		return 0;
	}
	if ((__u32)granted < wanted)
		random = fs_parameters.test ? skb->cb[2] : bpf_get_prandom_u32();
	/* What this machine sends itself leaves with the TTL it was made with. */
	hops = fs_parameters.test || skb->ingress_ifindex ? fs_parameters.hops : 0;
	fs_approve(data, granted, hops, random);
	return granted;
}

/* The Quick-Start option in a header of IPv4 with options, at offset `ip` of the packet. */
static __noinline int look_ipv4(struct __sk_buff *skb, struct fs_router *router, __u64 now, __u32 ip, __u32 header)
{
	struct fs_walk walk = {};
	__u32 check, before, begin;
	int data, granted;
	__u8 window[8];
	__be16 field;

	if (!router)
		return -1;
	data = fs_find(skb, &walk, ip + FS_IPV4_BYTES, header - FS_IPV4_BYTES, FS_IPV4_OPTION);
	if (data < 0)
		return -1;
	/* The four words in which the data is. */
	begin = (FS_IPV4_BYTES + data - 1) & ~1u;
	if (bpf_skb_load_bytes(skb, ip + begin, window, sizeof(window)))
		return -1;
	if (bpf_skb_load_bytes(skb, ip + FS_IPV4_CHECK, &field, sizeof(field)))
		return -1;
	check = bpf_ntohs(field);
	before = fs_sum(window, sizeof(window));
	granted = data & 1 ? look(skb, router, now, window + 1) : look(skb, router, now, window + 2);
	if (granted < 0)
		return -1;
	field = bpf_htons((__u16)fs_mended(check, before, fs_sum(window, sizeof(window))));
	/* If one of the two could not be written the packet would be damaged; neither can fail after
	 * the other. */
	if (bpf_skb_store_bytes(skb, ip + begin, window, sizeof(window), 0))
		return -1;
	bpf_skb_store_bytes(skb, ip + FS_IPV4_CHECK, &field, sizeof(field), 0);
	return granted;
}

/* The Quick-Start option in a hop-by-hop header, at offset `ip` of the packet. */
static __noinline int look_ipv6(struct __sk_buff *skb, struct fs_router *router, __u64 now, __u32 ip)
{
	__u8 two[2], data[FS_DATA_BYTES];
	__u32 at = 2, end, step;
	int granted;

	if (!router || bpf_skb_load_bytes(skb, ip + FS_IPV6_BYTES, two, sizeof(two)))
		return -1;
	end = 8 * (two[1] + 1);
	if (ip + FS_IPV6_BYTES + end > skb->len)
		return -1;
	for (step = 0; step < FS_IPV6_STEPS; step++) {
		if (at >= end)
			return -1;
		if (bpf_skb_load_bytes(skb, ip + FS_IPV6_BYTES + at, two, 1))
			return -1;
		if (!two[0]) {
			at++;
			continue;
		}
		if (at + 1 >= end || bpf_skb_load_bytes(skb, ip + FS_IPV6_BYTES + at + 1, two + 1, 1))
			return -1;
		if (at + 2 + two[1] > end)
			return -1;
		if (two[0] == FS_IPV6_OPTION)
			break;
		at += 2 + two[1];
	}
	if (step == FS_IPV6_STEPS || two[1] != FS_IPV6_OPTION_BYTES)
		return -1;
	at += ip + FS_IPV6_BYTES + 2;
	if (bpf_skb_load_bytes(skb, at, data, sizeof(data)))
		return -1;
	granted = look(skb, router, now, data);
	if (granted >= 0)
		bpf_skb_store_bytes(skb, at, data, sizeof(data), 0);
	return granted;
}

SEC("tc")
int fs_router_egress(struct __sk_buff *skb)
{
	__u32 ip = fs_parameters.link_header, zero = 0, bytes, header = 0, version;
	struct fs_router *router = bpf_map_lookup_elem(&fs_state, &zero);
	struct fs_flows *flows;
	void *begin, *end;
	int decided = -1;
	__u8 *fixed;
	__u64 now;

	if (!router || ip > 14)
		return FS_NEXT;
	if (skb->protocol != bpf_htons(FS_ETH_P_IPV4) && skb->protocol != bpf_htons(FS_ETH_P_IPV6))
		return fs_parameters.test ? 0 : FS_NEXT;
	begin = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	fixed = begin + ip;
	if ((void *)fixed + FS_IPV4_BYTES > end) {
		bpf_skb_pull_data(skb, ip + FS_IPV4_BYTES);
		begin = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
		fixed = begin + ip;
		if ((void *)fixed + FS_IPV4_BYTES > end)
			return fs_parameters.test ? 0 : FS_NEXT;
	}
	if (fixed[0] >> 4 == 4) {
		header = (fixed[0] & 15) * 4;
		if (header < FS_IPV4_BYTES || ip + header > skb->len)
			return fs_parameters.test ? 0 : FS_NEXT;
		bytes = fs_word(fixed + FS_IPV4_LENGTH);
	} else if (fixed[0] >> 4 == 6) {
		if (ip + FS_IPV6_BYTES > skb->len)
			return fs_parameters.test ? 0 : FS_NEXT;
		bytes = fs_word(fixed + FS_IPV6_LENGTH) + FS_IPV6_BYTES;
		/* With its options it is looked at more closely. */
		header = fixed[FS_IPV6_NEXT] ? 0 : FS_IPV6_BYTES;
	} else {
		return fs_parameters.test ? 0 : FS_NEXT;
	}
	/* Segments that the device will cut. */
	if (skb->gso_segs > 1)
		bytes = skb->wire_len - skb->gso_segs * ip;
	now = fs_parameters.test ? ((__u64)skb->cb[1] << 32 | skb->cb[0]) : bpf_ktime_get_ns() - fs_parameters.origin;
	version = fixed[0] >> 4;
	flows = fs_parameters.flows ? bpf_map_lookup_elem(&fs_flow_state, &zero) : 0;
	count(router, flows, now, bytes);
	if (flows)
		count_flow(skb, flows, now, ip, bytes);
	if (version == 4) {
		if (header > FS_IPV4_BYTES)
			decided = look_ipv4(skb, router, now, ip, header);
	} else if (header) {
		decided = look_ipv6(skb, router, now, ip);
	}
	return fs_parameters.test ? decided + 1 : FS_NEXT;
}
