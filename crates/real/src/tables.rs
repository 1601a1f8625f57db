//! Result tables of the simulator's kind from what was recorded of real packets.

use flowstart_emulator::traffic::TcpInfo;
use flowstart_emulator::{FlowKey, FlowRecording, Recording, WorldOutcome};
use flowstart_results::{Results, Table, Value, tables, utilisation};
use flowstart_units::{Rate, Span, Time};

use super::layout::Layout;

/// What is known of a flow beside its packets; a scenario's built-in sender knows more than a
/// program's packets tell.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowFacts {
    /// The row of the table `flows` that this is; values stand for columns by name.
    pub(super) values: Vec<(&'static str, Value)>,
}

impl FlowFacts {
    /// Sets a column.
    pub(super) fn set(&mut self, column: &'static str, value: impl Into<Value>) {
        self.values.push((column, value.into()));
    }

    /// What the packets of the flow tell.
    pub(super) fn of_packets(flow: &FlowRecording) -> Self {
        let mut facts = Self::default();
        facts.set("start_s", flow.first.as_secs_f64());
        facts.set("first_data_s", (flow.first_data < Time::NEVER).then(|| flow.first_data.as_secs_f64()));
        facts.set("data_segs_out", flow.data_packets);
        facts.set("dropped", flow.dropped);
        facts.set("delivered_ce", flow.marked);
        facts
    }
}

impl FlowFacts {
    /// What the sender's kernel says of repairs, times and window.
    pub(super) fn add_state(&mut self, info: &TcpInfo) {
        self.set("total_retrans", info.total_retrans);
        self.set("rto_count", info.timeouts);
        self.set("srtt_us", micros(info.rtt));
        self.set("min_rtt_us", micros(info.min_rtt));
        self.set("snd_cwnd_pkts", info.cwnd);
    }
}

/// A row of samples that a sender's kernel gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderSample {
    pub(super) at: Time,
    pub(super) cwnd: u32,
    pub(super) ssthresh: Option<u32>,
    pub(super) unacked: u32,
    pub(super) rtt: Span,
    pub(super) pacing: Option<u64>,
    /// Bytes delivered: according to the receiver if it is built in, else acknowledged.
    pub(super) delivered: u64,
}

impl SenderSample {
    /// From what the kernel said; `delivered` as far as known.
    pub(super) fn of(at: Time, info: &TcpInfo, delivered: u64) -> Self {
        Self {
            at,
            cwnd: info.cwnd,
            ssthresh: info.ssthresh,
            unacked: info.unacked,
            rtt: info.rtt,
            pacing: info.pacing_rate.map(|bytes| bytes.saturating_mul(8)),
            delivered,
        }
    }
}

/// A flow as it stands in the tables.
#[derive(Clone, Debug)]
pub(super) struct FlowRow {
    pub(super) name: String,
    pub(super) algorithm: String,
    pub(super) facts: FlowFacts,
    pub(super) key: Option<FlowKey>,
    pub(super) samples: Vec<SenderSample>,
}

/// "tcp 10.77.0.1:40000 > 10.77.0.2:5201".
#[must_use]
pub fn flow_name(key: &FlowKey) -> String {
    let protocol = match key.protocol {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        58 => "icmpv6".to_owned(),
        other => format!("ip-{other}"),
    };
    match (key.source_port, key.destination_port) {
        (0, 0) => format!("{protocol} {} > {}", key.source, key.destination),
        (source, destination) => {
            let at = |address: std::net::IpAddr, port| std::net::SocketAddr::new(address, port);
            format!("{protocol} {} > {}", at(key.source, source), at(key.destination, destination))
        }
    }
}

/// A table with rows given by column names; what is not given is missing.
fn push(table: &mut Table, values: &[(&'static str, Value)]) {
    let row: Vec<Value> = table
        .spec()
        .columns
        .iter()
        .map(|column| {
            values.iter().rfind(|(name, _)| *name == column.name).map_or(Value::Missing, |(_, value)| value.clone())
        })
        .collect();
    table.push(row);
}

/// The tables of one run.
pub(super) fn results(
    (run, seed): (u64, u64),
    layout: &Layout,
    recording: &Recording,
    outcome: &WorldOutcome,
    flows: &[FlowRow],
    sampled: bool,
) -> Results {
    let lasted = outcome.ended.since(Time::ZERO);
    let packets = recording.flows().iter().map(|flow| flow.data_packets).sum();
    let mut results = Results::of(tables().map(Table::new), 1, packets);
    let [runs, flow_table, link_table, samples, ..] = &mut results.tables;
    let sum = |column: &str| -> u64 {
        let values = flows.iter().flat_map(|flow| &flow.facts.values).filter(|(name, _)| *name == column);
        values.filter_map(|(_, value)| if let Value::Integer(n) = value { u64::try_from(*n).ok() } else { None }).sum()
    };
    push(
        runs,
        &[
            ("run", run.into()),
            ("seed", seed.into()),
            ("duration_s", outcome.ended.as_secs_f64().into()),
            ("data_packets", results.data_packets.into()),
            ("delivered_bytes", sum("bytes_delivered").into()),
            ("dropped", outcome.links.iter().map(|link| link.dropped + link.lost).sum::<u64>().into()),
            ("marked", outcome.links.iter().map(|link| link.marked).sum::<u64>().into()),
        ],
    );
    for (number, flow) in flows.iter().enumerate() {
        let mut values = vec![
            ("run", run.into()),
            ("flow", (number as u64).into()),
            ("name", flow.name.as_str().into()),
            ("algorithm", flow.algorithm.as_str().into()),
        ];
        values.extend(flow.facts.values.iter().cloned());
        push(flow_table, &values);
    }
    for ((name, link), config) in layout.links.iter().zip(&outcome.links).zip(&layout.config.links) {
        let mean = link.total_sojourn.as_nanos() as f64 / 1e3 / link.packets as f64;
        push(
            link_table,
            &[
                ("run", run.into()),
                ("link", name.as_str().into()),
                ("packets", link.packets.into()),
                ("bytes", link.bytes.get().into()),
                ("utilisation", utilisation(config, link.busy, link.bytes, lasted).into()),
                ("dropped", link.dropped.into()),
                ("lost", link.lost.into()),
                ("marked", link.marked.into()),
                ("sojourn_mean_us", mean.into()),
                ("sojourn_max_us", micros(link.max_sojourn).into()),
            ],
        );
    }
    if sampled {
        for (number, flow) in flows.iter().enumerate() {
            flow_samples(samples, run, &format!("{}#{number}", flow.name), flow, recording);
        }
        for (name, link) in layout.links.iter().zip(recording.links()) {
            for (number, bin) in link.bins.iter().enumerate().filter(|(_, bin)| bin.packets + bin.dropped > 0) {
                let mean = micros(bin.sum) / bin.packets as f64;
                let any = bin.packets > 0;
                push(
                    samples,
                    &[
                        ("run", run.into()),
                        ("t_s", (recording.bin() * number as u64).as_secs_f64().into()),
                        ("series", name.as_str().into()),
                        ("throughput_bps", per_second(bin.bytes, recording.bin()).into()),
                        ("sojourn_min_us", any.then(|| micros(bin.least)).into()),
                        ("sojourn_mean_us", any.then_some(mean).into()),
                        ("sojourn_max_us", any.then(|| micros(bin.most)).into()),
                        ("dropped", bin.dropped.into()),
                        ("marked", bin.marked.into()),
                    ],
                );
            }
        }
    }
    results
}

fn flow_samples(samples: &mut Table, run: u64, series: &str, flow: &FlowRow, recording: &Recording) {
    let bin = recording.bin();
    let bytes = flow.key.and_then(|key| recording.flow(&key)).map_or(&[][..], |flow| &flow.bins);
    let (mut states, mut delivered) = (flow.samples.iter().peekable(), 0);
    let last = flow.samples.last().map_or(0, |sample| sample.at.since(Time::ZERO).whole(bin) as usize + 1);
    for number in 0..bytes.len().max(last) {
        let end = Time::ZERO + bin * (number as u64 + 1);
        let mut state = None;
        while let Some(next) = states.next_if(|next| next.at < end) {
            state = Some(next);
        }
        let sent = bytes.get(number).copied().unwrap_or(0);
        if sent == 0 && state.is_none() {
            continue;
        }
        let mut values = vec![
            ("run", run.into()),
            ("t_s", (bin * number as u64).as_secs_f64().into()),
            ("series", series.into()),
            ("sent_bps", per_second(sent, bin).into()),
        ];
        if let Some(state) = state {
            values.extend([
                ("delivered_bps", per_second(state.delivered.saturating_sub(delivered), bin).into()),
                ("snd_cwnd_pkts", state.cwnd.into()),
                ("snd_ssthresh_pkts", state.ssthresh.into()),
                ("unacked", state.unacked.into()),
                ("rtt_us", (!state.rtt.is_zero()).then(|| micros(state.rtt)).into()),
                ("pacing_rate_bps", state.pacing.map(|rate| rate as f64).into()),
            ]);
            delivered = state.delivered;
        }
        push(samples, &values);
    }
}

fn per_second(bytes: u64, span: Span) -> f64 {
    Rate::of(flowstart_units::Bytes::new(bytes), span).as_bps() as f64
}

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}
