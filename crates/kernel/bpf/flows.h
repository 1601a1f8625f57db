/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Extreme Quick-Start (RFC 4782 section 3.3): grants flow by flow, unused ones given back, sources
 * that ask for more than they use refused for a while. The rules are those of flowstart-quick-start
 * (router/flows.rs). Everything here happens under the router's lock, where nothing may be called.
 */
#ifndef FS_FLOWS_H
#define FS_FLOWS_H

#include "packets.h"

/* Grants and denials at most, and sources with faults; numbers begin with 1, 0 is none. */
#define FS_FLOWS 1024
#define FS_OFFENDERS (4 * FS_FLOWS)
/* Chains of the hash tables; half as many entries as chains at most, and the hash has a seed, so
 * that nobody makes long ones. */
#define FS_CHAINS (2 * FS_FLOWS)
#define FS_OFFENDER_CHAINS (2 * FS_OFFENDERS)
/* Entries of a chain that are looked at. */
#define FS_CHAIN_STEPS 8
/* A chain that is longer than that. */
#define FS_CROWDED (~0u)

enum fs_flow_data {
	FS_DATA_NONE,
	/* The first of it, in the present interval. */
	FS_DATA_BEGUN,
	/* It began before the present interval. */
	FS_DATA_FLOWING,
};

/* A grant, or a denial. */
struct fs_flow {
	__u64 flow;
	__u64 source;
	/* When it is forgotten if there is no data by then. */
	__u64 until;
	/* What of it is not in the measured load, bit/s. */
	__u64 counted;
	/* Forwarded in the interval that ends at `interval`, the present one if it is up to date. */
	__u64 bytes;
	__u64 interval;
	__u32 nonce;
	/* Neighbours in the chain, and by age. */
	__u16 next;
	__u16 previous;
	__u16 newer;
	__u16 older;
	__u8 wanted;
	__u8 rate;
	/* enum fs_flow_data */
	__u8 data;
	bool is_reported;
	bool is_used;
	__u8 reserved[3];
};

struct fs_table {
	/* How many there are, the first that is free again, and how many were ever used. */
	__u32 count;
	__u32 free;
	__u32 fresh;
	/* By age, of the grants without data. */
	__u32 oldest;
	__u32 newest;
	__u16 chains[FS_CHAINS];
	struct fs_flow flows[FS_FLOWS + 1];
};

struct fs_offender {
	__u64 source;
	__u64 last;
	__u32 faults;
	__u16 next;
	__u16 reserved;
};

struct fs_flows {
	struct fs_table granted;
	struct fs_table denied;
	/* When denials that are over are dropped next. */
	__u64 next_forgotten;
	/* The end of the interval that all grants have been brought to. */
	__u64 turned;
	__u32 offenders;
	/* All of them are forgotten at once: chains of another epoch are empty. */
	__u16 epoch;
	struct {
		__u16 epoch;
		__u16 first;
	} offender_chains[FS_OFFENDER_CHAINS];
	struct fs_offender offenders_known[FS_OFFENDERS + 1];
};

/* A flow and its source. */
struct fs_key {
	__u64 flow;
	__u64 source;
	/* It carries payload. */
	bool is_data;
	/* It could be read. */
	bool is_known;
};

/* A request or a report. */
struct fs_event {
	__u64 now;
	struct fs_key key;
	__u32 nonce;
	/* Asked for, or reported. */
	__u32 rate;
};

static __always_inline __u64 fs_since(__u64 now, __u64 then)
{
	return now > then ? now - then : 0;
}

static __always_inline __u64 fs_plus(__u64 time, __u64 span)
{
	return time + span < time ? ~0ull : time + span;
}

/* The chain of a number among 2^(64 - shift). */
static __always_inline __u32 fs_chain_of(__u64 number, __u64 seed, __u32 shift)
{
	number = (number ^ seed) * 0x9e3779b97f4a7c15ull;
	return (__u32)(number >> shift);
}

#define FS_CHAIN_OF(number, seed) (fs_chain_of(number, seed, 53) & (FS_CHAINS - 1))
#define FS_OFFENDER_CHAIN_OF(number, seed) (fs_chain_of(number, seed, 51) & (FS_OFFENDER_CHAINS - 1))

/* The compiler may not forget that a number was compared with the last one. */
#define FS_KEEP(number) asm volatile("" : "+r"(number))

static __always_inline struct fs_flow *fs_flow_at(struct fs_table *table, __u32 number)
{
	FS_KEEP(number);
	if (number > FS_FLOWS)
		number = 0;
	return &table->flows[number];
}

/* The number of a flow; 0 if it is not there. */
static __always_inline __u32 fs_find_flow(struct fs_table *table, __u64 flow, __u64 seed)
{
	__u32 number = table->chains[FS_CHAIN_OF(flow, seed)], step;
	struct fs_flow *entry;

	for (step = 0; step < FS_CHAIN_STEPS; step++) {
		if (!number)
			return 0;
		entry = fs_flow_at(table, number);
		if (entry->flow == flow)
			return number;
		number = entry->next;
	}
	return FS_CROWDED;
}

/* Takes an entry out of the order by age. */
static __always_inline void fs_no_age(struct fs_table *table, struct fs_flow *entry)
{
	if (entry->older)
		fs_flow_at(table, entry->older)->newer = entry->newer;
	else
		table->oldest = entry->newer;
	if (entry->newer)
		fs_flow_at(table, entry->newer)->older = entry->older;
	else
		table->newest = entry->older;
	entry->older = entry->newer = 0;
}

static __always_inline void fs_remove_flow(struct fs_table *table, __u32 number, __u64 seed)
{
	struct fs_flow *entry = fs_flow_at(table, number);

	if (entry->previous)
		fs_flow_at(table, entry->previous)->next = entry->next;
	else
		table->chains[FS_CHAIN_OF(entry->flow, seed)] = entry->next;
	if (entry->next)
		fs_flow_at(table, entry->next)->previous = entry->previous;
	entry->is_used = false;
	entry->next = (__u16)table->free;
	table->free = number;
	table->count--;
}

/* A place for a flow that is not there, at the head of its chain; 0 if there is none. */
static __always_inline __u32 fs_add_flow(struct fs_table *table, __u64 flow, __u64 seed)
{
	__u32 number = table->free, chain = FS_CHAIN_OF(flow, seed);
	struct fs_flow *entry;

	if (number) {
		entry = fs_flow_at(table, number);
		table->free = entry->next;
	} else {
		if (table->fresh >= FS_FLOWS)
			return 0;
		number = ++table->fresh;
		entry = fs_flow_at(table, number);
	}
	entry->flow = flow;
	entry->previous = 0;
	entry->next = table->chains[chain];
	if (entry->next)
		fs_flow_at(table, entry->next)->previous = (__u16)number;
	table->chains[chain] = (__u16)number;
	entry->is_used = true;
	entry->newer = entry->older = 0;
	table->count++;
	return number;
}

static __always_inline struct fs_offender *fs_offender_at(struct fs_flows *flows, __u32 number)
{
	FS_KEEP(number);
	if (number > FS_OFFENDERS)
		number = 0;
	return &flows->offenders_known[number];
}

/* The number of a source with faults; 0 if it has none. */
static __always_inline __u32 fs_find_offender(struct fs_flows *flows, __u64 source, __u64 seed)
{
	__u32 chain = FS_OFFENDER_CHAIN_OF(source, seed), number, step;
	struct fs_offender *offender;

	if (flows->offender_chains[chain].epoch != flows->epoch)
		return 0;
	number = flows->offender_chains[chain].first;
	for (step = 0; step < FS_CHAIN_STEPS; step++) {
		if (!number)
			return 0;
		offender = fs_offender_at(flows, number);
		if (offender->source == source)
			return number;
		number = offender->next;
	}
	return FS_CROWDED;
}

static __always_inline void fs_fault(struct fs_flows *flows, __u64 *all, __u64 now, __u64 source, __u64 forgive_after, __u32 most,
				     __u64 seed)
{
	__u32 number, chain = FS_OFFENDER_CHAIN_OF(source, seed);
	struct fs_offender *offender;

	*all += 1;
	/* When there are too many sources, the faults of all are forgotten. */
	if (flows->offenders >= most || flows->offenders >= FS_OFFENDERS) {
		flows->offenders = 0;
		flows->epoch++;
	}
	number = fs_find_offender(flows, source, seed);
	if (number == FS_CROWDED)
		return;
	if (!number) {
		number = ++flows->offenders;
		offender = fs_offender_at(flows, number);
		offender->source = source;
		offender->last = now;
		offender->faults = 0;
		offender->next = flows->offender_chains[chain].epoch == flows->epoch ? flows->offender_chains[chain].first : 0;
		flows->offender_chains[chain].epoch = flows->epoch;
		flows->offender_chains[chain].first = (__u16)number;
	}
	offender = fs_offender_at(flows, number);
	if (fs_since(now, offender->last) >= forgive_after)
		offender->faults = 0;
	if (offender->faults != ~0u)
		offender->faults++;
	offender->last = now;
}

static __always_inline __u64 fs_mixed(__u64 state, __u64 word)
{
	state = ((state ^ word) + 0xcbf29ce484222325ull) * 0x100000001b3ull;
	return state << 29 | state >> 35;
}

/* Up to eight bytes in network order. */
static __always_inline __u64 fs_number(const __u8 *bytes, __u32 length)
{
	__u64 number = 0;
	__u32 i;

	FS_UNROLL
	for (i = 0; i < length; i++)
		number = number << 8 | bytes[i];
	return number;
}

/* The flow of a packet whose header of IP begins at offset `ip`. Of TCP's ports only the first
 * fragment of IPv4 knows; the others count as a flow without. */
static __noinline int fs_key_of(struct __sk_buff *skb, __u32 ip, struct fs_key *key)
{
	__u32 protocol, header, total;
	__u8 fixed[FS_IPV6_BYTES], two[2], tcp[13];
	__u64 both, ports = 0;
	bool is_first = true;

	if (!key || bpf_skb_load_bytes(skb, ip, fixed, FS_IPV4_BYTES))
		return 0;
	if (fixed[0] >> 4 == 4) {
		key->source = fs_number(fixed + FS_IPV4_SOURCE, 4);
		both = fs_mixed(key->source, fs_number(fixed + FS_IPV4_SOURCE + 4, 4));
		protocol = fixed[FS_IPV4_PROTOCOL];
		header = (fixed[0] & 15) * 4;
		total = fs_word(fixed + FS_IPV4_LENGTH);
		is_first = !(fs_word(fixed + FS_IPV4_FRAGMENT) & FS_IPV4_FRAGMENT_OFFSET);
	} else {
		if (bpf_skb_load_bytes(skb, ip, fixed, FS_IPV6_BYTES))
			return 0;
		key->source = fs_mixed(fs_number(fixed + FS_IPV6_SOURCE, 8), fs_number(fixed + FS_IPV6_SOURCE + 8, 8));
		both = fs_mixed(fs_mixed(key->source, fs_number(fixed + 24, 8)), fs_number(fixed + 32, 8));
		protocol = fixed[FS_IPV6_NEXT];
		header = FS_IPV6_BYTES;
		total = fs_word(fixed + FS_IPV6_LENGTH) + FS_IPV6_BYTES;
		if (!protocol) {
			if (bpf_skb_load_bytes(skb, ip + FS_IPV6_BYTES, two, sizeof(two)))
				return 0;
			protocol = two[0];
			header += 8 + 8 * two[1];
		}
	}
	if (protocol == FS_TCP && is_first) {
		if (bpf_skb_load_bytes(skb, ip + header, tcp, sizeof(tcp)))
			return 0;
		ports = fs_number(tcp, 4);
		header += (tcp[FS_TCP_OFFSET] >> 4) * 4;
	}
	key->flow = fs_mixed(both, (__u64)protocol << 32 | ports);
	key->is_data = total > header;
	key->is_known = true;
	return 0;
}

#endif
