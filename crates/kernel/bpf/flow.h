/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What fs_chirp knows of a connection, its parameters, and what it tells those who watch.
 */
#ifndef FS_FLOW_H
#define FS_FLOW_H

#include "evidence.h"
#include "ecn.h"

/* Parameters, in the order of crates/kernel/src/algorithm.rs, which says what they mean. Ratios
 * are in units of 1/1024, times in ns. */
struct fs_parameters {
	__u32 ecn;
	__u32 avoidance;
	__u32 packets;
	__u32 probe_divisor;
	__u32 min_first_gap;
	__u32 max_first_gap;
	__u32 geometry;
	__u32 centre;
	__u32 growth;
	__u32 blind_growth;
	__u32 doubling_packets;
	__u32 min_points;
	__u32 contrast;
	__u32 jitter;
	__u32 crowded;
	__u32 agreeing;
	__u32 tolerance;
	__u32 delay_samples;
	__u32 delay_share;
	__u32 min_delay;
	__u32 max_delay;
	__u32 pardoned_losses;
	__u32 loss_factor;
	__u32 max_rounds;
	__u32 stall;
	__u32 mark_share;
	__u32 again;
	__u32 min_quiet_rounds;
	__u32 min_silences;
	__u32 quiet_periods;
	__u32 quiet_deviations;
	__u32 max_backoff;
	__u32 gain;
	__u32 restart_gap;
	__u32 gain_shift;
	__u32 initial_alpha;
	__u32 stale_rtt;
	__u32 drowned;
	__u32 clear;
	__u32 standing_out;
	__u32 patience;
	__u32 refuted;
	__u32 again_growth;
	__u32 late_divisor;
	__u32 unread;
};

/* Filled in by the loader. */
const volatile struct fs_parameters fs_parameters SEC(".rodata.parameters") = {};

enum fs_avoidance {
	FS_CUBIC,
	FS_RENO,
};

enum fs_phase {
	/* The start, or looking for more. */
	FS_CHIRPING,
	/* After a timeout, while what was lost is sent again in slow start. */
	FS_REPAIR,
	/* The start is over. */
	FS_AVOIDANCE,
};

/* In icsk_ca_priv. CUBIC's functions take its beginning for their own. */
struct fs_private {
	__u64 cubic[8];
	struct fs_ecn ecn;
	/* Window when the last reduction began. */
	__u32 prior_cwnd;
	/* Smallest RTT in µs. */
	__u32 min_rtt;
	/* The round ends when this is acknowledged. */
	__u32 round_end;
	__u8 phase;
	bool dctcp;
	bool cubic_is_ours;
};

_Static_assert(sizeof(struct fs_private) <= 104, "ICSK_CA_PRIV_SIZE");

/* Chirps in flight whose ACKs are read; more than these are sent, but not read. A power of two. */
#define FS_TRAINS 64

struct fs_train {
	/* Sequence number of its first packet. */
	__u32 begin;
	__u32 packets;
	/* Bytes of a packet. */
	__u32 mss;
	/* Gaps in ns; 0 if it left as a burst. */
	__u32 first_gap;
	__u32 step;
	/* No gap is shorter: the application set a highest rate (SO_MAX_PACING_RATE). In ns, 0 if it
	 * did not. */
	__u32 floor;
	/* Time per packet in ns of the load it was sent with. */
	__u64 load;
};

/* The gap before packet `k` of a chirp, counted from 0. */
static __always_inline __u64 fs_train_gap(const struct fs_train *train, __u32 k)
{
	return fs_max(fs_gap(train->first_gap, train->step, k), train->floor);
}

struct fs_trains {
	struct fs_train of[FS_TRAINS];
	/* Of the chirp that is being read. */
	struct fs_points points;
};

/* Only while chirps are sent. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fs_trains);
} fs_trains SEC(".maps");

/* Listens for marks that do not come. Rounds in units of 1/1024. */
struct fs_quiet {
	__u32 rounds;
	__u32 measured;
	__u32 vain;
	__u32 mean;
	__u32 deviation;
	__u32 delivered_ce;
	bool heard;
	bool limited;
};

struct fs_flow {
	/* When the connection, or the search for more, began, in ns. */
	__u64 began;
	/* The gap that chirps are centred on, and the time per packet that holds the load, in ns; zero
	 * before the first chirp. */
	__u64 probe;
	__u64 load;
	/* The last two gaps that were read, the newest first; zero if there are none. */
	__u64 gaps[2];
	__u64 noise;
	/* When a chirp was complete last that could be read; 0 if none was. */
	__u64 read_at;
	/* When the round trip began. */
	__u64 round_at;
	/* Departure of the leaving chirp's first packet in ns. */
	__u64 first;
	/* Departure in µs of the packet that was acknowledged last in the chirp that is being read. */
	__u64 last_sent;
	struct fs_quiet quiet;
	/* The chirp that is leaving. */
	struct fs_train leaving;
	/* Chirps planned so far, and the number of the first one. */
	__u32 chirps;
	__u32 first_chirp;
	__u32 first_packets;
	/* Chirps that were acknowledged as a whole. */
	__u32 chirps_read;
	/* Chirps to be read are those from tail to head; the one at head is leaving. */
	__u32 tail;
	__u32 head;
	/* Packets of the chirp being read that are acknowledged. */
	__u32 read_packets;
	__u32 agreed;
	__u32 unclear;
	__u32 losses;
	/* Smallest of the latest RTTs in µs, and how many they are. */
	__u32 recent_rtt;
	__u32 recent;
	__u32 round;
	__u32 round_delivered;
	__u32 round_ce;
	/* Packets delivered before the start began. */
	__u32 delivered_before;
	/* Packets that fill the path by what chirps have shown, if another start goes on; 0 if they
	 * have shown nothing. */
	__u32 pipe;
	__u32 ungrown;
	/* The window before, if the flow looks for more. */
	__u32 window;
	__u32 una;
	bool is_leaving;
	/* Its first packet left. */
	bool has_begun;
	bool is_recorded;
	/* A packet of the chirp that is being read was lost. */
	bool is_void;
	/* One left much later than asked for. */
	bool is_stalled;
	bool has_noise;
	bool newest_is_knee;
	/* The gap was known before the first chirp. */
	bool is_known;
	/* A chirp is complete that could not be read. */
	bool is_vain;
	/* The last start ended on what chirps showed. */
	bool was_read;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fs_flow);
} fs_flows SEC(".maps");

enum fs_event_kind {
	FS_EVENT_BEGIN,
	FS_EVENT_CHIRP,
	FS_EVENT_EXIT,
};

/* fs_event.what of a chirp that says nothing because a packet was lost; the others are enum
 * fs_says. */
#define FS_EVENT_VOID 4

enum fs_reason {
	FS_PIPE_FULL,
	FS_DELAY,
	FS_MARKS,
	FS_LOSS,
	FS_TIMEOUT,
	FS_LIMIT,
	FS_RATE_LIMIT,
	FS_UNREADABLE,
};

/* What those who watch are told; crates/kernel/src/watch.rs has the same. */
struct fs_event {
	/* Of the machine's monotonic clock, in ns. */
	__u64 time;
	__u64 since_begin;
	/* Which connection: the same number for all of its events. */
	__u64 socket;
	/* Gap that was read, the noise, and the gaps for what is sent next, in ns. */
	__u64 gap;
	__u64 noise;
	__u64 probe;
	__u64 load;
	__u8 address[16];
	__u16 family;
	__u16 local_port;
	__u16 remote_port;
	__u8 kind;
	/* enum fs_says of a chirp, enum fs_reason of an exit. */
	__u8 what;
	/* Number of a chirp. */
	__u32 number;
	__u32 packets;
	__u32 points;
	__u32 cwnd;
	__u32 srtt;
	__u32 min_rtt;
	/* Where a chirp was in the stream, and its gaps as they were asked for. */
	__u32 begin;
	__u32 first_gap;
	__u32 step;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} fs_events SEC(".maps");

/* Somebody watches. */
__u32 fs_watchers SEC(".bss.watchers");

static __noinline int fs_tell(struct sock *sk, struct fs_flow *flow, const struct fs_event *said)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct fs_private *ca = inet_csk_ca(sk);
	const struct sock_common *common = &sk->__sk_common;
	struct fs_event *event;

	if (!fs_watchers || !flow)
		return 0;
	event = bpf_ringbuf_reserve(&fs_events, sizeof(*event), 0);
	if (!event)
		return 0;
	*event = *said;
	event->time = tp->tcp_clock_cache;
	event->since_begin = tp->tcp_clock_cache - flow->began;
	event->socket = (__u64)sk;
	event->probe = flow->probe;
	event->load = flow->load;
	event->family = common->skc_family;
	event->local_port = common->skc_num;
	event->remote_port = common->skc_dport;
	__builtin_memset(event->address, 0, sizeof(event->address));
	if (common->skc_family == 2)
		__builtin_memcpy(event->address, (void *)&common->skc_daddr, 4);
	else
		bpf_probe_read_kernel(event->address, 16, (void *)&common->skc_v6_daddr);
	event->cwnd = said->kind == FS_EVENT_EXIT ? tp->snd_cwnd : packets_in_flight(tp);
	event->srtt = tp->srtt_us >> 3;
	event->min_rtt = ca->min_rtt;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

#endif
