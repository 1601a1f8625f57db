/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What a connection knows of its request: shared by what writes and reads packets (carrying.h) and
 * by the congestion control (fs_quick_start.bpf.c).
 */
#ifndef FS_ASKING_H
#define FS_ASKING_H

#include "kernel.h"
#include "packets.h"

const volatile struct {
	/* Rate asked for, and the largest that this host answers with; codes, 0 for none. */
	__u32 request;
	__u32 answer;
	/* Whether those who connect ask, and those who are connected to. */
	__u32 on_syn;
	__u32 on_syn_ack;
	/* A grant is used if its window is more than this many percent of the present one. */
	__u32 least_window_percent;
	/* Window above which slow start after a grant is limited (RFC 3742); 0 for never. */
	__u32 max_ssthresh;
	/* Whether CUBIC may leave slow start by delays (HyStart) after a grant. */
	__u32 hystart;
	/* A grant that no data follows is forgotten after the RTT, at the latest after this; ns. */
	__u32 lifetime;
	/* Whether a connection that sends again after an idle time asks again, and whether one asks that
	 * was not idle, when the application writes more than the window holds. */
	__u32 after_idle;
	__u32 in_middle;
} fs_parameters SEC(".rodata.parameters") = { 15, 15, 1, 0, 100, 100, 0, 3000000000u, 1, 0 };

/* Answers in a row with a wrong TTL difference after which a connection asks no more, so that a
 * receiver cannot try one after the other (RFC 4782 section 9.2; flowstart-quick-start). */
#define FS_MOST_WRONG_TTL 3

enum fs_phase {
	/* Nothing under way. */
	FS_IDLE,
	/* The next packet with new data is to carry a request: in mid-connection. */
	FS_WANTED,
	/* The request is on its way. */
	FS_ASKED,
	/* Granted, but no data has been sent since. */
	FS_GRANTED,
	/* Data is being sent at the granted rate. */
	FS_PACING,
	/* The first of it has arrived, the last has not. */
	FS_ENDED,
};

struct fs_ask {
	__u64 expires;
	/* When the last request left; none follows within an RTT. */
	__u64 asked_at;
	/* The stack's pacing rate, while another makes the packet with the request leave alone. */
	__u64 pacing_rate;
	/* Nonces as sent and as answered. */
	__u32 nonce;
	__u32 answered_nonce;
	/* Windows in packets: granted, and without the grant. */
	__u32 window;
	__u32 before;
	/* First byte of the packet with the request in mid-connection, or number of the SYN/ACK with
	 * it; later of the phase; and the byte behind its last. */
	__u32 first;
	__u32 end;
	/* The largest window since the last congestion, in packets. */
	__u32 largest;
	/* Packets of the phase that are delivered. */
	__u32 delivered;
	__u8 rate;
	__u8 difference;
	__u8 answered_rate;
	__u8 answered_difference;
	/* enum fs_phase */
	__u8 phase;
	bool is_answered;
	/* The packet with the request was sent again. */
	bool is_lost;
	/* A report is to be sent, and what it says. */
	bool is_report_due;
	__u8 reported;
	/* A grant was used, so slow start is limited. */
	bool is_granted;
	/* No more than `before` packets when the recovery is over. */
	bool falls_back;
	/* The request was on data, in mid-connection. */
	bool in_middle;
	/* The report may need an ACK of its own. */
	bool reports_alone;
	/* Nothing was sent on a grant in time, and its window has not been taken back yet. */
	bool is_expired;
	/* Never again: a wrong nonce, congestion in a phase, a request that was lost, a path that does
	 * not know Quick-Start. */
	bool is_off;
	/* There has been congestion. */
	bool was_congested;
	/* All that the application had written was sent; it has not been asked for more since. */
	bool ran_dry;
	/* Answers in a row with a wrong TTL difference. */
	__u8 wrong_ttl;
	__u8 reserved[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fs_ask);
} fs_asks SEC(".maps");

/* A connection before it has a socket. Network namespaces may have the same addresses. */
struct fs_pair {
	__u64 network;
	__u8 local[16];
	__u8 remote[16];
	/* In network order. */
	__be16 local_port;
	__be16 remote_port;
	__u32 reserved;
};

/* Requests on a SYN/ACK. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct fs_pair);
	__type(value, struct fs_ask);
} fs_opening SEC(".maps");

/* A request that came in and is not answered yet. */
struct fs_heard {
	__u64 time;
	__u32 nonce;
	__u8 rate;
	__u8 difference;
	__u16 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct fs_pair);
	__type(value, struct fs_heard);
} fs_heards SEC(".maps");

/* When the last request came in, or 0 if that is long ago. */
__u64 fs_last_heard SEC(".bss.last");

/* What happened since the program was loaded, for all connections. */
struct fs_counts {
	/* Requests sent, on SYN, SYN/ACK and data. */
	__u64 asked;
	/* Requests whose packet had to be sent again. */
	__u64 lost;
	/* Answers by enum fs_answer: good, none, wrong rate, wrong TTL difference, wrong nonce. */
	__u64 answers[5];
	/* Grants no larger than the window without them. */
	__u64 too_small;
	/* Grants that were used, and those nothing was sent on in time. */
	__u64 used;
	__u64 expired;
	/* Losses or marks in a Quick-Start phase. */
	__u64 congested;
	__u64 reports;
	/* As the receiver: requests that came in, answers sent. */
	__u64 heard;
	__u64 answered;
	/* Packets that could not be changed. */
	__u64 failed;
	/* Of the requests, those in mid-connection. */
	__u64 asked_in_middle;
};

struct fs_counts fs_counts SEC(".bss.counts");

#define FS_COUNT(what) __sync_fetch_and_add(&fs_counts.what, 1)

static __always_inline bool is_quick_start(const char *name)
{
	/* The name with its zeros: 16 bytes. */
	static const char own[16] = "fs_quick_start";
	int i;

#pragma clang loop unroll(full)
	for (i = 0; i < 15; i++)
		if (name[i] != own[i])
			return false;
	return true;
}

#endif
