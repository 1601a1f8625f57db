//! What Python is told: ACKs, round trips, signals of congestion. Times in seconds.

use flowstart::congestion::{Ack as Event, Signal};
use flowstart::units::{Span, Time};
use pyo3::prelude::*;

/// Seconds, or `None` for what is not known yet.
fn seconds(span: Span) -> Option<f64> {
    (span != Span::ZERO && span != Span::MAX).then(|| span.as_secs_f64())
}

/// Seconds since the beginning of the simulation.
pub(super) fn instant(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// What an ACK says. Times in seconds, packets where nothing else is said.
#[pyclass(frozen, get_all, module = "flowstart._native")]
pub(crate) struct Ack {
    now: f64,
    acked: u32,
    acked_bytes: u64,
    marked: u32,
    lost: u32,
    rtt: Option<f64>,
    srtt: Option<f64>,
    min_rtt: Option<f64>,
    in_flight: u32,
    packets_out: u32,
    delivered: u64,
    /// Packets delivered per second over about the last round trip.
    delivery_rate: Option<f64>,
    cwnd_limited: bool,
    app_limited: bool,
}

impl Ack {
    pub(super) fn new(event: &Event) -> Self {
        Self {
            now: instant(event.now),
            acked: event.acked,
            acked_bytes: event.acked_bytes,
            marked: event.marked,
            lost: event.newly_lost(),
            rtt: event.rtt.map(Span::as_secs_f64),
            srtt: seconds(event.srtt),
            min_rtt: seconds(event.min_rtt),
            in_flight: event.in_flight,
            packets_out: event.packets_out,
            delivered: event.delivered,
            delivery_rate: event.rate.map(|rate| f64::from(rate.delivered) / rate.interval.as_secs_f64()),
            cwnd_limited: event.cwnd_limited,
            app_limited: event.app_limited,
        }
    }
}

/// What a round trip showed: from a packet's departure until its ACK.
#[pyclass(frozen, get_all, module = "flowstart._native")]
#[derive(Clone, Copy)]
pub(crate) struct Round {
    number: u32,
    now: f64,
    duration: f64,
    acked: u32,
    lost: u32,
    marked: u32,
    first_rtt: Option<f64>,
    last_rtt: Option<f64>,
    smallest_rtt: Option<f64>,
    min_rtt: Option<f64>,
    in_flight: u32,
}

/// Sums up rounds.
#[derive(Clone, Default)]
pub(super) struct Rounds {
    end: u64,
    began: f64,
    round: Option<Round>,
    number: u32,
}

impl Rounds {
    /// Takes an ACK in; a whole round if one has ended.
    pub(super) fn on_ack(&mut self, event: &Event) -> Option<Round> {
        let now = instant(event.now);
        let rtt = event.rtt.map(Span::as_secs_f64);
        let round = self.round.get_or_insert(Round {
            number: self.number,
            now,
            duration: 0.0,
            acked: 0,
            lost: 0,
            marked: 0,
            first_rtt: None,
            last_rtt: None,
            smallest_rtt: None,
            min_rtt: None,
            in_flight: 0,
        });
        round.acked += event.acked;
        round.lost += event.newly_lost();
        round.marked += event.marked;
        round.first_rtt = round.first_rtt.or(rtt);
        round.last_rtt = rtt.or(round.last_rtt);
        round.smallest_rtt = match (round.smallest_rtt, rtt) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if event.una < self.end {
            return None;
        }
        let mut whole = self.round.take()?;
        (whole.now, whole.duration) = (now, now - self.began);
        (whole.min_rtt, whole.in_flight) = (seconds(event.min_rtt), event.in_flight);
        self.number += 1;
        self.began = now;
        self.end = event.next;
        Some(whole)
    }
}

/// A signal of congestion by its name.
pub(super) fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::Loss => "loss",
        Signal::Marks => "marks",
        Signal::Timeout => "timeout",
    }
}
