//! The tables and their columns.

/// Version of the tables; grows when a column changes its meaning or disappears.
pub const SCHEMA_VERSION: u32 = 2;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Float,
    /// True or false.
    Flag,
}

impl Kind {
    /// Its name in the documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Float => "number",
            Self::Flag => "flag",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name, with the unit at its end.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Unit, or empty.
    pub unit: &'static str,
    /// Where it is measured.
    pub place: &'static str,
    /// What it says and what it includes.
    pub meaning: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Name; also the file's.
    pub name: &'static str,
    /// What a row is.
    pub meaning: &'static str,
    /// Its columns.
    pub columns: &'static [ColumnSpec],
}

/// Declares columns: name: kind, unit, place, meaning.
macro_rules! columns {
    ($($name:literal: $kind:ident, $unit:literal, $place:literal, $meaning:literal;)*) => {
        &[$(ColumnSpec { name: $name, kind: Kind::$kind, unit: $unit, place: $place, meaning: $meaning }),*]
    };
}

/// One row per run.
pub(super) const RUNS: TableSpec = TableSpec {
    name: "runs",
    meaning: "One row per run of the scenario.",
    columns: columns! {
        "run": Integer, "", "", "Number of the run, from 0. All runs share the seed; each has random streams of its own.";
        "seed": Integer, "", "", "Seed of the scenario.";
        "duration_s": Float, "s", "simulator", "Virtual time at the end of the run.";
        "events": Integer, "", "simulator", "Events processed.";
        "data_packets": Integer, "packets", "senders", "Data packets and datagrams sent, retransmissions included.";
        "delivered_bytes": Integer, "B", "receivers", "Bytes read by all receiving applications.";
        "dropped": Integer, "packets", "links", "Packets dropped by queues and loss processes of all links, ACKs included.";
        "marked": Integer, "packets", "links", "Packets that left a queue with CE, counted at every link.";
    },
};

/// One row per flow.
pub(super) const FLOWS: TableSpec = TableSpec {
    name: "flows",
    meaning: "One row per flow and run.",
    columns: columns! {
        "run": Integer, "", "", "Number of the run.";
        "flow": Integer, "", "", "Number of the flow within the run, from 0 in the order of the scenario, arrivals in order of arrival.";
        "name": Text, "", "", "Its name in the scenario, or its algorithm.";
        "algorithm": Text, "", "", "START+AVOIDANCE, or udp.";
        "start_s": Float, "s", "sender", "When the SYN or the first datagram left.";
        "first_data_s": Float, "s", "sender", "When the first data packet left.";
        "completed_s": Float, "s", "receiver", "When the receiver had all bytes of a transfer; empty if it did not or for endless flows.";
        "completion_time_s": Float, "s", "sender to receiver", "From the first data packet sent to the last byte delivered in order: without the handshake.";
        "completion_with_handshake_s": Float, "s", "sender to receiver", "The same from the SYN on, as users wait and as ns-3's flow completion times have it; equal to completion_time_s for a flow without a handshake.";
        "size_bytes": Integer, "B", "sender", "Size of the transfer; empty for endless flows.";
        "bytes_delivered": Integer, "B", "receiver", "Stream bytes read by the application; for datagrams the IP bytes received.";
        "goodput_bps": Float, "bit/s", "receiver", "Bytes delivered from the first data packet to completion or to the end of the run.";
        "data_segs_out": Integer, "packets", "sender", "Data packets sent, retransmissions included.";
        "total_retrans": Integer, "packets", "sender", "Retransmissions among them.";
        "dropped": Integer, "packets", "links", "Data packets of this flow dropped on the way (ground truth, not what the sender believes).";
        "dropped_in_start": Integer, "packets", "links", "Those that had left the sender before its flow start ended, or within two smoothed round trips after that.";
        "delivered_ce": Integer, "packets", "receiver", "Data packets that arrived with CE.";
        "rto_count": Integer, "", "sender", "Retransmission timeouts.";
        "recoveries": Integer, "", "sender", "Fast recoveries.";
        "exit_reason": Text, "", "sender", "Why the flow start ended; empty if it did not.";
        "exit_s": Float, "s", "sender", "When it ended, since the first data packet left.";
        "exit_cwnd_pkts": Integer, "packets", "sender", "Window when it ended, before any reduction.";
        "exit_ssthresh_pkts": Integer, "packets", "sender", "Threshold after it.";
        "exit_in_flight_pkts": Integer, "packets", "sender", "Packets in flight when it ended.";
        "srtt_us": Float, "us", "sender", "Smoothed RTT at the end.";
        "min_rtt_us": Float, "us", "sender", "Smallest RTT.";
        "snd_cwnd_pkts": Integer, "packets", "sender", "Window at the end.";
        "companion_of": Integer, "", "", "The flow whose second connection this is: what it carries is delivered by that flow.";
        "isolation": Text, "", "sender", "What its detector of fair queuing decided first: isolated, shared or unknown; empty without one.";
        "isolation_s": Float, "s", "sender", "When, since the first data packet left.";
        "isolation_ratio": Float, "", "sender", "The number that was decided from: for the published detector the part of the first connection that arrived over that of the second, else the mean of delays of lone packets over those of trains.";
        "isolation_revoked_s": Float, "s", "sender", "When its avoidance took back that it has a queue of its own, since the first data packet left, for the last time; empty if it did not.";
        "isolation_later": Text, "", "sender", "Its detector's latest answer, if it gave another one later: isolated or shared.";
        "isolation_later_s": Float, "s", "sender", "When, since the first data packet left.";
    },
};

/// One row per link.
pub(super) const LINKS: TableSpec = TableSpec {
    name: "links",
    meaning: "One row per link and run.",
    columns: columns! {
        "run": Integer, "", "", "Number of the run.";
        "link": Text, "", "", "Name of the link.";
        "packets": Integer, "packets", "link", "Transmissions begun, without those that nobody heard because of an outage: they are lost.";
        "bytes": Integer, "B", "link", "Their bytes on the wire, link overhead included.";
        "utilisation": Float, "", "link", "Share of the run during which the link was sending; outages are no sending. Of a Wi-Fi link the share of time on the air of its aggregates and their block ACKs, not what it carried over its capacity. Behind a shaper or policer the bytes over what its rate lets through in the run, at most 1.";
        "dropped": Integer, "packets", "queue", "Packets dropped by the queue.";
        "lost": Integer, "packets", "link", "Packets lost by the link's loss process.";
        "marked": Integer, "packets", "queue exit", "Packets that left the queue with CE.";
        "sojourn_mean_us": Float, "us", "queue", "Mean time from arrival at the queue to the beginning of the transmission.";
        "sojourn_max_us": Float, "us", "queue", "Largest such time.";
        "requests_approved": Integer, "", "router", "Quick-Start requests that its router approved, at any rate; with the next three, 0 if it does not know them.";
        "requests_denied": Integer, "", "router", "Quick-Start requests that its router denied.";
        "reports": Integer, "", "router", "Reports of approved rate that passed.";
        "report_faults": Integer, "", "router", "Grants not used or not reported, and reports that do not agree with the grant; only a router that remembers flows can tell.";
    },
};

/// One row per bin of time.
pub(super) const SAMPLES: TableSpec = TableSpec {
    name: "samples",
    meaning: "One row per bin of time, run and series; a series is a flow or a link. Bins in which nothing happened have no row.",
    columns: columns! {
        "run": Integer, "", "", "Number of the run.";
        "t_s": Float, "s", "", "Beginning of the bin. Rates are of its whole width, in the last bin too, within which the run may end.";
        "series": Text, "", "", "Name of the flow (with its number behind #) or of the link.";
        "sent_bps": Float, "bit/s", "sender", "IP bytes of SYNs, data packets and datagrams that left the sender in the bin.";
        "delivered_bps": Float, "bit/s", "receiver", "Stream bytes read by the application in the bin; for datagrams the IP bytes received.";
        "snd_cwnd_pkts": Integer, "packets", "sender", "Window after the last event of the bin.";
        "snd_ssthresh_pkts": Integer, "packets", "sender", "Threshold after it; empty before the first.";
        "unacked": Integer, "packets", "sender", "Packets in flight after it.";
        "rtt_us": Float, "us", "sender", "Smoothed RTT after it; empty before the first.";
        "pacing_rate_bps": Float, "bit/s", "sender", "Pacing rate after it; empty if the flow is not paced.";
        "throughput_bps": Float, "bit/s", "link", "Bytes on the wire whose transmission began in the bin.";
        "sojourn_min_us": Float, "us", "queue", "Smallest queueing delay of a packet whose transmission began in the bin.";
        "sojourn_mean_us": Float, "us", "queue", "Mean of those.";
        "sojourn_max_us": Float, "us", "queue", "Largest of those.";
        "dropped": Integer, "packets", "link", "Packets dropped or lost in the bin.";
        "marked": Integer, "packets", "queue exit", "Packets that left the queue with CE in the bin.";
    },
};

/// One row per data packet.
pub(super) const PACKETS: TableSpec = TableSpec {
    name: "packets",
    meaning: "One row per data packet or datagram: those that reached their receivers or were dropped, in the order in which that happened, then those on their way at the end of the run, by flow and number.",
    columns: columns! {
        "run": Integer, "", "", "Number of the run.";
        "flow": Integer, "", "", "Number of the flow.";
        "number": Integer, "", "sender", "Transmission number within the flow.";
        "seq": Integer, "B", "sender", "First byte of the stream in it; empty for datagrams.";
        "bytes": Integer, "B", "sender", "Length of the IP packet.";
        "retrans": Flag, "", "sender", "True if it was sent before.";
        "ce": Flag, "", "receiver", "True if it arrived with CE, or carried it when it was dropped.";
        "sent_s": Float, "s", "sender", "When it left the sender's stack.";
        "received_s": Float, "s", "receiver", "When it reached the receiver's stack; empty if it did not.";
        "read_s": Float, "s", "receiver", "When the application had read it, that is all bytes before it had arrived too; empty if not yet.";
        "sender_stack_us": Float, "us", "sender", "From the write of its last byte to its leaving; empty for endless writes and datagrams.";
        "network_us": Float, "us", "network", "From leaving the sender's stack to reaching the receiver's.";
        "receiver_stack_us": Float, "us", "receiver", "From reaching the receiver's stack to being read.";
        "fate": Text, "", "network", "What became of it: received, dropped, or in_flight at the end of the run.";
        "dropped_s": Float, "s", "link", "When it was dropped; empty if it was not.";
        "dropped_at": Text, "", "link", "The link that dropped it.";
        "drop_reason": Text, "", "link", "Why: its queue was full (full), the flow's own queue was (flow_full), the queue management chose it (early), or the link's loss process or another part of its medium took it (loss).";
    },
};

/// One row per page of a user.
pub(super) const PAGES: TableSpec = TableSpec {
    name: "pages",
    meaning: "One row per page that a user of the web has got whole (`[[web]]`), user by user.",
    columns: columns! {
        "run": Integer, "", "", "Number of the run.";
        "name": Text, "", "", "Name of the users' flows.";
        "user": Integer, "", "", "Number of the user among all of the scenario.";
        "page": Integer, "", "user", "Number of the page among this user's, from 0.";
        "wished_s": Float, "s", "user", "When the user wished for it.";
        "page_time_s": Float, "s", "user", "From the wish until the last byte of its last file was read; handshakes and requests included.";
        "files": Integer, "", "user", "Its files.";
        "bytes": Integer, "B", "user", "Bytes of all of them.";
    },
};

/// All tables.
#[must_use]
pub const fn tables() -> [&'static TableSpec; 6] {
    [&RUNS, &FLOWS, &LINKS, &SAMPLES, &PACKETS, &PAGES]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_named_once_and_explained() {
        for table in tables() {
            for (index, column) in table.columns.iter().enumerate() {
                assert!(table.columns[..index].iter().all(|other| other.name != column.name), "{}", column.name);
                assert!(column.meaning.ends_with('.'), "{}.{}", table.name, column.name);
            }
        }
    }
}
