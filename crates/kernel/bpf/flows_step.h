/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What a router that remembers flows does with requests, reports, data and time; part of
 * fs_router.bpf.c. Functions that take the lock are global, so that the verifier looks at each of
 * them once.
 */
#ifndef FS_FLOWS_STEP_H
#define FS_FLOWS_STEP_H

#define FS_SEED fs_parameters.seed

static __always_inline struct fs_router *the_router(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&fs_state, &zero);
}

static __always_inline struct fs_flows *the_flows(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&fs_flow_state, &zero);
}

static __always_inline void fault(struct fs_router *router, struct fs_flows *flows, __u64 now, __u64 source)
{
	__u32 most = 4 * (fs_parameters.flows ? fs_parameters.flows : 1);

	fs_fault(flows, &router->faults, now, source, fs_parameters.forgive_after, most, FS_SEED);
}

/* No data followed this grant in time. */
static __always_inline void give_back(struct fs_router *router, struct fs_flows *flows, __u32 number)
{
	struct fs_flow *entry = fs_flow_at(&flows->granted, number);

	fs_no_age(&flows->granted, entry);
	router->granted[0] -= entry->counted;
	fault(router, flows, entry->until, entry->source);
	fs_remove_flow(&flows->granted, number, FS_SEED);
}

/* Gives the oldest grant back that no data followed in time; 0 if there is none. */
__noinline int fs_sweep_one(__u64 now)
{
	struct fs_router *router = the_router();
	struct fs_flows *flows = the_flows();
	struct fs_flow *entry;
	__u32 number;
	int is_over = 0;

	if (!router || !flows || !flows->granted.oldest)
		return 0;
	bpf_spin_lock(&router->lock);
	number = flows->granted.oldest;
	entry = fs_flow_at(&flows->granted, number);
	if (number && now >= entry->until) {
		is_over = 1;
		give_back(router, flows, number);
	}
	bpf_spin_unlock(&router->lock);
	return is_over;
}

struct fs_turned {
	__u64 now;
};

/* A grant, or a denial, as of now. */
static __always_inline void fs_fill(struct fs_flow *entry, const struct fs_event *event, __u32 code, __u64 end)
{
	entry->source = event->key.source;
	entry->until = fs_plus(event->now, fs_parameters.unused_after);
	entry->counted = fs_rate_of(code);
	entry->bytes = 0;
	entry->interval = end;
	entry->nonce = event->nonce;
	entry->wanted = event->rate;
	entry->rate = (__u8)code;
	entry->data = FS_DATA_NONE;
	entry->is_reported = false;
}

static long sweep_step(__u32 step, struct fs_turned *turned)
{
	return !fs_sweep_one(turned->now);
}

/* Grants that no data followed in time are given back; the oldest are over first. */
static __always_inline void sweep(__u64 now)
{
	struct fs_turned turned = { .now = now };

	bpf_loop(FS_FLOWS, sweep_step, &turned, 0);
}

/* Brings a grant to the present interval: what its flow sent in the last one is in the load now.
 * False if it is gone. Processors do it in any order and once, whoever needs the grant first; under
 * the lock. */
static __always_inline bool bring(struct fs_router *router, struct fs_flows *flows, __u32 number, __u64 now)
{
	struct fs_flow *entry = fs_flow_at(&flows->granted, number);
	__u64 passed = router->end - entry->interval, metered, rate, before;
	bool is_next = passed == fs_parameters.interval;

	if (!passed)
		return true;
	/* As sweeping would have it, which comes first. */
	if (entry->data == FS_DATA_NONE && now >= entry->until) {
		give_back(router, flows, number);
		return false;
	}
	if (entry->data == FS_DATA_FLOWING || (entry->data == FS_DATA_BEGUN && !is_next)) {
		if (fs_parameters.expect_reports && !entry->is_reported)
			fault(router, flows, now, entry->source);
		router->granted[0] -= entry->counted;
		fs_remove_flow(&flows->granted, number, FS_SEED);
		return false;
	}
	if (entry->data == FS_DATA_BEGUN)
		entry->data = FS_DATA_FLOWING;
	if (fs_parameters.count_once) {
		metered = is_next ? fs_load_of(entry->bytes, fs_parameters.interval) : 0;
		rate = fs_rate_of(entry->rate);
		before = entry->counted;
		entry->counted = rate > metered ? rate - metered : 0;
		router->granted[0] += entry->counted - before;
	}
	entry->bytes = 0;
	entry->interval = router->end;
	return true;
}

__noinline int fs_turn_one(__u32 number, __u64 now)
{
	struct fs_router *router = the_router();
	struct fs_flows *flows = the_flows();

	if (!router || !flows)
		return 0;
	bpf_spin_lock(&router->lock);
	if (fs_flow_at(&flows->granted, number)->is_used)
		bring(router, flows, number, now);
	bpf_spin_unlock(&router->lock);
	return 0;
}

static long turn_step(__u32 step, struct fs_turned *turned)
{
	return fs_turn_one(step + 1, turned->now);
}

/* All grants are brought to the present interval. */
static __always_inline void bring_all(struct fs_router *router, struct fs_flows *flows, __u64 now)
{
	struct fs_turned turned = { .now = now };
	__u64 end = router->end;

	if (flows->granted.fresh <= FS_FLOWS)
		bpf_loop(flows->granted.fresh, turn_step, &turned, 0);
	/* Another interval may be over by now; then another processor knows. */
	flows->turned = end;
}

/* Intervals may be over. */
static __always_inline void turn(struct fs_router *router, struct fs_flows *flows, __u64 now)
{
	__u64 passed;

	bpf_spin_lock(&router->lock);
	passed = complete(router, now);
	bpf_spin_unlock(&router->lock);
	if (!passed)
		return;
	sweep(now);
	bring_all(router, flows, now);
}

/* A request that is looked at: whether it is accepted (one grant at a time, room, and a source
 * without many faults), what is granted, and the memory of it, in one go: what another processor
 * decides meanwhile knows of it. */
__noinline int fs_grant(struct fs_event *event)
{
	struct fs_router *router = the_router();
	struct fs_flows *flows = the_flows();
	struct fs_offender *known;
	struct fs_table *table;
	struct fs_flow *entry;
	bool is_accepted = false;
	struct fs_event it;
	__u32 number, code;

	if (!router || !flows || !event)
		return 0;
	it = *event;
	table = &flows->granted;
	bpf_spin_lock(&router->lock);
	if (!fs_find_flow(table, it.key.flow, FS_SEED) && table->count < fs_parameters.flows) {
		number = fs_find_offender(flows, it.key.source, FS_SEED);
		known = fs_offender_at(flows, number);
		is_accepted = !number || number == FS_CROWDED || known->faults < fs_parameters.faults ||
			      fs_since(it.now, known->last) >= fs_parameters.forgive_after;
	}
	code = decide(router, it.rate, is_accepted);
	if (!code)
		goto done;
	/* There is room for it, and the flow is not there yet. */
	number = fs_add_flow(table, it.key.flow, FS_SEED);
	entry = fs_flow_at(table, number);
	fs_fill(entry, &it, code, router->end);
	router->granted[0] += fs_rate_of(code);
	entry->older = (__u16)table->newest;
	if (table->newest)
		fs_flow_at(table, table->newest)->newer = (__u16)number;
	else
		table->oldest = number;
	table->newest = number;
done:
	bpf_spin_unlock(&router->lock);
	return code;
}

__noinline int fs_forget_one(__u32 number, __u64 now)
{
	struct fs_router *router = the_router();
	struct fs_flows *flows = the_flows();
	struct fs_flow *entry;

	if (!router || !flows)
		return 0;
	bpf_spin_lock(&router->lock);
	entry = fs_flow_at(&flows->denied, number);
	if (entry->is_used && now >= entry->until)
		fs_remove_flow(&flows->denied, number, FS_SEED);
	bpf_spin_unlock(&router->lock);
	return 0;
}

static long forget_step(__u32 step, struct fs_turned *turned)
{
	return fs_forget_one(step + 1, turned->now);
}

/* A request was granted so much; it is not a denial any more. */
__noinline int fs_not_denied(__u64 flow)
{
	struct fs_router *router = the_router();
	struct fs_flows *flows = the_flows();
	__u32 number;

	if (!router || !flows)
		return 0;
	bpf_spin_lock(&router->lock);
	number = fs_find_flow(&flows->denied, flow, FS_SEED);
	if (number && number != FS_CROWDED)
		fs_remove_flow(&flows->denied, number, FS_SEED);
	bpf_spin_unlock(&router->lock);
	return 0;
}

/* A request was denied. */
__noinline int fs_remember_denial(struct fs_event *event)
{
	struct fs_router *router = the_router();
	struct fs_flows *flows = the_flows();
	struct fs_event it;
	__u32 number;

	if (!router || !flows || !event)
		return 0;
	it = *event;
	bpf_spin_lock(&router->lock);
	if (flows->denied.count >= fs_parameters.flows)
		goto done;
	number = fs_find_flow(&flows->denied, it.key.flow, FS_SEED);
	if (number == FS_CROWDED)
		goto done;
	if (!number)
		number = fs_add_flow(&flows->denied, it.key.flow, FS_SEED);
	if (number)
		fs_fill(fs_flow_at(&flows->denied, number), &it, 0, router->end);
done:
	bpf_spin_unlock(&router->lock);
	return 0;
}

/* A request: what is granted; -1 if it is not looked at. */
static __noinline int asked(struct fs_router *router, struct fs_flows *flows, struct fs_event *event)
{
	struct fs_turned turned;
	bool is_looked;
	__u32 code;

	if (!router || !flows || !event)
		return -1;
	bpf_spin_lock(&router->lock);
	is_looked = is_looked_at(router, event->now);
	if (!is_looked)
		router->ignored++;
	bpf_spin_unlock(&router->lock);
	if (!is_looked)
		return -1;
	sweep(event->now);
	/* Another processor may be at it still. */
	if (flows->turned != router->end)
		bring_all(router, flows, event->now);
	code = fs_grant(event);
	if (code) {
		fs_not_denied(event->key.flow);
		return code;
	}
	/* Not at each denial: a flood must not cost more than that each of it is looked at. */
	if (event->now >= flows->next_forgotten) {
		turned.now = event->now;
		if (flows->denied.fresh <= FS_FLOWS)
			bpf_loop(flows->denied.fresh, forget_step, &turned, 0);
		flows->next_forgotten = fs_plus(event->now, fs_parameters.unused_after);
	}
	fs_remember_denial(event);
	return 0;
}

/* Whether a report with the nonce that was sent can belong to a request. */
static __always_inline bool is_of(const struct fs_flow *entry, __u32 nonce)
{
	return !((entry->nonce ^ nonce) & fs_nonce_bits(entry->wanted));
}

/* A report of a grant; 0 if it is none of one that is remembered. */
__noinline int fs_reported_grant(struct fs_event *event)
{
	struct fs_router *router = the_router();
	struct fs_flows *flows = the_flows();
	struct fs_flow *entry;
	struct fs_event it;
	__u32 number;
	__u64 back;
	bool again;
	int found = 0;

	if (!router || !flows || !event)
		return 0;
	it = *event;
	bpf_spin_lock(&router->lock);
	number = fs_find_flow(&flows->granted, it.key.flow, FS_SEED);
	entry = fs_flow_at(&flows->granted, number);
	if (!number || number == FS_CROWDED || !is_of(entry, it.nonce) || !bring(router, flows, number, it.now))
		goto done;
	found = 1;
	again = entry->is_reported;
	entry->is_reported = true;
	if (it.rate > entry->rate || (again && it.rate != entry->rate)) {
		fault(router, flows, it.now, it.key.source);
		goto done;
	}
	back = fs_rate_of(entry->rate) - fs_rate_of(it.rate);
	if (back > entry->counted)
		back = entry->counted;
	entry->rate = it.rate;
	entry->counted -= back;
	router->granted[0] -= back;
	if (!it.rate) {
		if (entry->data == FS_DATA_NONE)
			fs_no_age(&flows->granted, entry);
		fs_remove_flow(&flows->granted, number, FS_SEED);
	}
done:
	bpf_spin_unlock(&router->lock);
	return found;
}

/* A report of no grant that is remembered. */
__noinline int fs_reported_denial(struct fs_event *event)
{
	struct fs_router *router = the_router();
	struct fs_flows *flows = the_flows();
	struct fs_flow *entry;
	struct fs_event it;
	__u32 number;

	if (!router || !flows || !event)
		return 0;
	it = *event;
	bpf_spin_lock(&router->lock);
	number = fs_find_flow(&flows->denied, it.key.flow, FS_SEED);
	entry = fs_flow_at(&flows->denied, number);
	if (!number || number == FS_CROWDED || it.now >= entry->until || !is_of(entry, it.nonce))
		router->strays++;
	else if (it.rate)
		/* After a denial a report of zero is due. */
		fault(router, flows, it.now, it.key.source);
	bpf_spin_unlock(&router->lock);
	return 0;
}

/* Data may be the first after a grant. */
__noinline int fs_count_flow(struct fs_event *event, __u32 bytes)
{
	struct fs_router *router = the_router();
	struct fs_flows *flows = the_flows();
	struct fs_flow *entry;
	struct fs_event it;
	__u32 number;

	if (!router || !flows || !event)
		return 0;
	it = *event;
	bpf_spin_lock(&router->lock);
	number = fs_find_flow(&flows->granted, it.key.flow, FS_SEED);
	if (number && number != FS_CROWDED && bring(router, flows, number, it.now)) {
		entry = fs_flow_at(&flows->granted, number);
		entry->bytes += bytes;
		if (it.key.is_data && entry->data == FS_DATA_NONE) {
			fs_no_age(&flows->granted, entry);
			entry->data = FS_DATA_BEGUN;
			entry->until = ~0ull;
		}
	}
	bpf_spin_unlock(&router->lock);
	return 0;
}

/* A packet leaves. */
static __noinline int count_flow(struct __sk_buff *skb, struct fs_flows *flows, __u64 now, __u32 ip, __u32 bytes)
{
	struct fs_event event = { .now = now };

	if (!flows || !flows->granted.count)
		return 0;
	fs_key_of(skb, ip, &event.key);
	if (event.key.is_known)
		fs_count_flow(&event, bytes);
	return 0;
}

#endif
