//! A chirp in tables, sentences and JSON.

use serde_json::{Value, json};

use flowstart_congestion::start::paced_chirping::belief::Room;
use flowstart_congestion::start::paced_chirping::reading::Reading;
use flowstart_explain::{Explanation, Part, Simulated, SimulatedStart};
use flowstart_race::exit_name;
use flowstart_report::{Cell, Column, Table, Terminal};
use flowstart_units::Rate;

use super::{Case, Truth};

/// Characters of the longest bar of the sketch.
const LONGEST_BAR: u64 = 30;

/// A start and its path in a few words.
pub fn path(simulated: &Simulated) -> String {
    let Simulated { capacity, rtt, buffer, start, udp, jitter, background, seed } = simulated;
    let mut text = format!("{start} over {capacity}, {rtt} RTT, buffer {buffer}");
    if *udp > 0.0 {
        text.push_str(&format!(", {:.3} % datagrams", udp * 100.0).replace(".000", ""));
    }
    if !jitter.is_zero() {
        text.push_str(&format!(", jitter {jitter}"));
    }
    for flows in background {
        text.push_str(&format!(", against {flows}"));
    }
    if *udp > 0.0 || !jitter.is_zero() || !background.is_empty() {
        text.push_str(&format!(", seed {seed}"));
    }
    text
}

/// A rate.
pub fn rate(rate: Rate) -> String {
    format!("{:.2} Mbit/s", rate.as_mbps_f64())
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

fn time(nanos: u64) -> String {
    format!("{:.1} µs", micros(nanos))
}

/// What a chirp says, in a word.
fn reading_name(reading: Reading) -> &'static str {
    match reading {
        Reading::Clear(_) => "clear",
        Reading::Knee(_) => "knee",
        Reading::Crowded => "crowded",
        Reading::Unclear => "unclear",
    }
}

/// What the picture of delays shows.
pub fn delays_caption(case: &Case) -> &'static str {
    match case.explanation.judged.reading {
        Reading::Knee(_) => "Up to the knee packets come slower than the path carries them; from there on they queue.",
        Reading::Clear(_) => "No packet came faster than the path carries them.",
        Reading::Crowded => "Packets queue behind others' packets more than behind each other.",
        Reading::Unclear => "The noise is too large, or the ACKs too few, to tell where packets begin to queue.",
    }
}

/// What the picture of gaps shows.
pub fn gaps_caption(case: &Case) -> &'static str {
    match case.explanation.judged.reading {
        Reading::Knee(_) => {
            "Where packets queue, the path spaces them, and the gaps received no longer follow the gaps sent."
        }
        Reading::Clear(_) => "The gaps received follow the gaps sent: nothing queued.",
        Reading::Crowded => {
            "Packets queue, but the gaps received still follow the gaps sent: others' packets come in between."
        }
        Reading::Unclear => "The gaps received neither follow the gaps sent nor become equal.",
    }
}

/// The packets, and what they say.
pub fn text(case: &Case, terminal: Terminal) -> String {
    let mut text = table(case).to_terminal(terminal);
    text.push('\n');
    for sentence in sentences(case) {
        text.push_str(&sentence);
        text.push('\n');
    }
    text
}

fn table(case: &Case) -> Table {
    let mut table = Table::new(
        &case.title,
        vec![
            Column::number("packet", ""),
            Column::number("sent", "ms"),
            Column::number("gap sent", "µs"),
            Column::number("gap received", "µs"),
            Column::number("delay", "µs"),
            Column::number("label", "µs"),
            Column::text("shape"),
        ],
    );
    let rows = &case.explanation.packets;
    let highest = rows.iter().map(|row| row.delay).max().unwrap_or(0).max(1);
    for (packet, row) in rows.iter().enumerate() {
        let length = u128::from(row.delay) * u128::from(LONGEST_BAR) / u128::from(highest);
        let sign = match row.part {
            Part::Quiet => ".",
            Part::Spike => "-",
            Part::Ended => "+",
            Part::Open => "#",
        };
        let mut sketch = sign.repeat(usize::try_from(length).unwrap_or(0) + 1);
        if case.explanation.knee == Some(packet) {
            sketch.push_str(" knee");
        }
        table.push(vec![
            Cell::count(packet as u64),
            Cell::number(row.sent as f64 / 1e6, 3),
            Cell::number_or_missing(row.gap.map(micros), 1),
            Cell::number_or_missing(row.received.map(micros), 1),
            Cell::number_or_missing(row.own.then_some(micros(row.delay)), 1),
            Cell::number_or_missing(row.label.map(micros), 1),
            Cell::text(sketch),
        ]);
    }
    table
}

/// What each rule concluded and why, and what is true.
fn sentences(case: &Case) -> Vec<String> {
    let mut all = vec![
        "Delay: what the packet waited more than the one of its chirp that waited least. # in the excursion to the end, + in one that \
         ended, - in one too short to count."
            .to_owned(),
    ];
    if case.explanation.packets.iter().any(|row| !row.own) {
        all.push(
            "Without a delay: no ACK told of the packet as its newest (delayed or merged ACKs), and nobody knows what it \
             waited. The published rule takes it for what the ACK that told of it shows, this project's leaves it out."
                .to_owned(),
        );
    }
    all.extend([published(case), own(case)]);
    all.extend(case.truth.as_ref().map(truth));
    all
}

fn published(case: &Case) -> String {
    let Explanation { excursions, rest, estimate, packets, .. } = &case.explanation;
    let count = |part: Part| packets.iter().filter(|row| row.part == part).count();
    let end = match excursions.last() {
        Some(last) if !last.terminated => format!(
            "from packet {} on the delay rises and stays up to the end, so packets are labelled with its gap, {}",
            last.start,
            time(*rest)
        ),
        _ => format!("no excursion lasts to the end, so packets are labelled with the last gap, {}", time(*rest)),
    };
    let ended = match count(Part::Ended) {
        0 => String::new(),
        n => {
            format!("; of {n} packets in excursions that ended, those that wait less than the next have their own gap")
        }
    };
    let mean = estimate.map_or_else(String::new, |gap| {
        format!(" The estimate is the mean of all labels: {} per packet, {}.", time(gap), rate(case.rate(gap)))
    });
    format!("Published rule: {end}{ended}.{mean}")
}

fn own(case: &Case) -> String {
    let Explanation { judged, knee, contrast, packets, .. } = &case.explanation;
    let acks = case.chirp.points.len();
    let noise = judged.noise.map_or_else(String::new, time);
    let last = packets.iter().rfind(|row| row.own).map_or(0, |row| row.delay);
    let risen = knee.map_or(0, |knee| last.saturating_sub(packets[knee].delay));
    let said = match judged.reading {
        Reading::Knee(gap) => format!(
            "knee: behind packet {} the delays rise by {}, with a noise of {noise}; what queued came out at {} per packet, {}",
            knee.unwrap_or(0),
            time(risen),
            time(gap),
            rate(case.rate(gap))
        ),
        Reading::Clear(gap) => format!(
            "clear: the delays do not rise by more than their noise, {noise}, and that is less than the last gap, {}; the path carries at \
             least {}",
            time(gap),
            rate(case.rate(gap))
        ),
        Reading::Crowded => format!(
            "crowded: behind packet {} the delays rise by {}, but a change of the gaps comes out at the other end: others' \
             packets come in between, and how much is to be had only trying can tell",
            knee.unwrap_or(0),
            time(risen)
        ),
        Reading::Unclear if judged.noise.is_none() => {
            format!("unclear: {acks} ACKs for {} packets are too few", packets.len())
        }
        Reading::Unclear => format!(
            "unclear: the delays miss the shape of a queue by {noise}, and do not rise by {contrast} times that"
        ),
    };
    format!("This project's rule: {said}.")
}

fn truth(truth: &Truth) -> String {
    let Truth { simulated, observed } = truth;
    let mut text = format!(
        "Truth: the path carries {}. The chirp left {:.2} ms after the flow began, with a load of a packet per {}",
        rate(simulated.capacity),
        observed.at.as_millis_f64(),
        time(observed.load.as_nanos())
    );
    if simulated.udp > 0.0 {
        let left = simulated.capacity.as_mbps_f64() * (1.0 - simulated.udp);
        text.push_str(&format!("; datagrams leave {left:.2} Mbit/s on average"));
    }
    text.push('.');
    text
}

/// The chirp as one JSON document.
pub fn document(case: &Case) -> Value {
    let explanation = &case.explanation;
    let mut packets = Vec::new();
    for (packet, row) in explanation.packets.iter().enumerate() {
        packets.push(json!({
            "packet": packet,
            "sent_ns": row.sent,
            "gap_ns": row.gap,
            "received_gap_ns": row.received,
            "delay_ns": row.delay,
            "own_ack": row.own,
            "part": row.part.name(),
            "label_ns": row.label,
        }));
    }
    let excursions: Vec<Value> = explanation
        .excursions
        .iter()
        .map(|e| json!({ "start": e.start, "packets": e.packets, "ended": e.terminated }))
        .collect();
    let mut document = json!({
        "title": case.title,
        "packet_bytes": case.packet.get(),
        "packets": packets,
        "published": {
            "excursions": excursions,
            "estimate_ns": explanation.estimate,
            "rate_bps": explanation.estimate.map(|gap| case.rate(gap).as_bps()),
        },
        "own": reading_document(explanation, |gap| case.rate(gap)),
    });
    if let Some(Truth { simulated, observed }) = &case.truth {
        document["simulation"] = json!({
            "capacity_bps": simulated.capacity.as_bps(),
            "rtt_ns": simulated.rtt.as_nanos(),
            "buffer": simulated.buffer.to_string(),
            "start": simulated.start.to_string(),
            "udp": simulated.udp,
            "jitter_ns": simulated.jitter.as_nanos(),
            "seed": simulated.seed,
            "chirp": observed.number,
            "at_ns": observed.at.as_nanos(),
            "load_ns": observed.load.as_nanos(),
        });
    }
    document
}

fn reading_document(explanation: &Explanation, rate: impl Fn(u64) -> Rate) -> Value {
    let judged = &explanation.judged;
    let gap = Some(judged.reading.gap()).filter(|gap| *gap != u64::MAX);
    json!({
        "reading": reading_name(judged.reading),
        "gap_ns": gap,
        "rate_bps": gap.map(|gap| rate(gap).as_bps()),
        "knee": explanation.knee,
        "noise_ns": judged.noise,
    })
}

/// The chirps of a start as a table.
pub fn list(simulated: &Simulated, start: &SimulatedStart, terminal: Terminal) -> String {
    let mut table = Table::new(
        format!("Chirps of {}", path(simulated)),
        vec![
            Column::number("chirp", ""),
            Column::number("sent", "ms"),
            Column::number("packets", ""),
            Column::number("mean gap", "µs"),
            Column::number("load", "µs"),
            Column::number("published", "Mbit/s"),
            Column::text("reading"),
            Column::number("rate", "Mbit/s"),
            Column::number("noise", "µs"),
            Column::text("all chirps, Mbit/s"),
        ],
    );
    let speed = |gap: u64| flowstart_explain::rate(start.packet, gap).as_mbps_f64();
    for chirp in &start.chirps {
        let judged = &chirp.explanation.judged;
        let gap = Some(judged.reading.gap()).filter(|gap| *gap != u64::MAX);
        table.push(vec![
            Cell::count(u64::from(chirp.number)),
            Cell::number(chirp.at.as_millis_f64(), 2),
            Cell::count(chirp.chirp.gaps.len() as u64),
            Cell::number(micros(chirp.chirp.mean_gap().as_nanos()), 1),
            Cell::number(micros(chirp.load.as_nanos()), 1),
            Cell::number_or_missing(chirp.explanation.estimate.map(speed), 2),
            Cell::text(reading_name(judged.reading)),
            Cell::number_or_missing(gap.map(speed), 2),
            Cell::number_or_missing(judged.noise.map(micros), 1),
            chirp.room.map_or_else(|| Cell::Missing, |room| Cell::text(together(room, speed))),
        ]);
    }
    let end = match &start.exit {
        Some(exit) => format!("The start ended: {}, window {} packets.", exit_name(Some(exit.reason)), exit.cwnd),
        None => "The start had not ended after 40 round trips.".to_owned(),
    };
    format!("{}\n{end}\n", table.to_terminal(terminal))
}

/// The capacities that are plausible by all chirps so far.
fn together(room: Room, speed: impl Fn(u64) -> f64) -> String {
    match room {
        Room { crowded: true, .. } => "crowded".to_owned(),
        Room { least: 0, most, .. } => format!("at least {:.1}", speed(most)),
        Room { least, most, .. } => format!("{:.1} to {:.1}", speed(most), speed(least)),
    }
}

/// The same as one JSON document.
pub fn list_document(start: &SimulatedStart) -> Value {
    let speed = |gap: u64| flowstart_explain::rate(start.packet, gap);
    let chirps: Vec<Value> = start
        .chirps
        .iter()
        .map(|chirp| {
            json!({
                "chirp": chirp.number,
                "at_ns": chirp.at.as_nanos(),
                "packets": chirp.chirp.gaps.len(),
                "mean_gap_ns": chirp.chirp.mean_gap().as_nanos(),
                "load_ns": chirp.load.as_nanos(),
                "estimate_ns": chirp.explanation.estimate,
                "own": reading_document(&chirp.explanation, speed),
                "together": chirp.room.map(|room| json!({
                    "least_gap_ns": room.least,
                    "likely_gap_ns": room.best,
                    "most_gap_ns": room.most,
                    "crowded": room.crowded,
                })),
            })
        })
        .collect();
    json!({ "chirps": chirps, "exit": start.exit.as_ref().map(|exit| exit_name(Some(exit.reason))) })
}
