//! One of the two flows: when its packets leave, and what becomes of them.

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::random::Random;

use super::config::{DetectorConfig, Jitter};

/// What became of the packets of a monitor interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Rate measured from the first packet to the last: n packets over n-1 gaps, as implemented.
    pub rate: Rate,
    /// Packets sent.
    pub packets: u32,
    /// Packets lost.
    pub lost: u32,
}

impl Sample {
    /// Part of the packets that arrived.
    #[must_use]
    pub fn arrived(&self) -> f64 {
        f64::from(self.packets.saturating_sub(self.lost)) / f64::from(self.packets.max(1))
    }

    /// The part of the rate that arrived.
    #[must_use]
    pub fn good(&self) -> Rate {
        let arrived = u64::from(self.packets.saturating_sub(self.lost));
        self.rate.mul_ratio(arrived, u64::from(self.packets.max(1)))
    }
}

/// What an ACK brought about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProbeEvent {
    /// Nothing that concerns the detector.
    Nothing,
    /// The flow lost packets for the first time.
    FirstLoss,
    /// An interval is complete.
    Sample(Sample),
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    first: u64,
    last: u64,
    first_sent: Time,
    last_sent: Time,
    length: Span,
    bytes: u64,
    packets: u32,
    acked: u32,
    lost: u32,
}

impl Interval {
    fn contains(&self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }

    fn is_complete(&self, now: Time) -> bool {
        now >= self.first_sent + self.length && self.acked + self.lost >= self.packets
    }

    /// `None` if there was only one packet, or all left at once.
    fn sample(&self) -> Option<Sample> {
        let span = self.last_sent.since(self.first_sent);
        let rate = Rate::of(Bytes::new(self.bytes), span);
        (!span.is_zero()).then_some(Sample { rate, packets: self.packets, lost: self.lost })
    }
}

/// A flow that sends at a rate and measures what arrives. Packets are numbered by transmission,
/// from 0.
#[derive(Clone, Debug)]
pub struct ProbeFlow {
    interval_rtts: f64,
    jitter: Jitter,
    restart: bool,
    random: Random,
    rate: Rate,
    next_number: u64,
    next_at: Time,
    /// Numbers below this are acknowledged, or were found lost.
    settled: u64,
    average_rtt: Option<Span>,
    interval: Option<Interval>,
    has_lost: bool,
}

impl ProbeFlow {
    /// A flow that begins to send at `rate` at the time `start`. `seed` is that of its jitter.
    #[must_use]
    pub fn new(config: &DetectorConfig, rate: Rate, start: Time, seed: u64) -> Self {
        Self {
            interval_rtts: config.interval_rtts,
            jitter: config.jitter,
            restart: config.restart_on_first_loss,
            random: Random::new(seed),
            rate,
            next_number: 0,
            next_at: start,
            settled: 0,
            average_rtt: None,
            interval: None,
            has_lost: false,
        }
    }

    /// When the next packet leaves.
    #[must_use]
    pub fn next_departure(&self) -> Time {
        self.next_at
    }

    /// The average RTT, once there is one.
    #[must_use]
    pub fn average_rtt(&self) -> Option<Span> {
        self.average_rtt
    }

    /// Sends at this rate from the next gap on and opens a new interval with the next packet.
    pub fn measure(&mut self, rate: Rate) {
        self.rate = rate;
        self.interval = None;
    }

    /// A packet of `bytes` leaves now; returns its number. Lateness is carried forward.
    pub fn on_sent(&mut self, now: Time, bytes: u32) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        match (&mut self.interval, self.average_rtt) {
            (None, Some(rtt)) => {
                self.interval = Some(Interval {
                    first: number,
                    last: number,
                    first_sent: now,
                    last_sent: now,
                    length: rtt.mul_f64(self.interval_rtts),
                    bytes: u64::from(bytes),
                    packets: 1,
                    acked: 0,
                    lost: 0,
                });
            }
            (Some(interval), _) if now.since(interval.first_sent) <= interval.length => {
                interval.last = number;
                interval.last_sent = now;
                interval.bytes += u64::from(bytes);
                interval.packets += 1;
            }
            _ => {}
        }
        let gap = self.rate.transmission_time(Bytes::new(u64::from(bytes)));
        let gap = match self.jitter {
            Jitter::None => gap,
            Jitter::Gap => gap.mul_f64(0.5 + self.random.unit()),
            Jitter::Rate => gap.mul_f64(1.0 / (0.5 + 1.5 * self.random.unit())),
        };
        self.next_at += gap;
        number
    }

    /// The ACK of packet `number`, which left at `sent_at`. All earlier packets not acknowledged
    /// are lost.
    pub fn on_ack(&mut self, now: Time, number: u64, sent_at: Time) -> ProbeEvent {
        let rtt = now.since(sent_at);
        if number < self.settled || number >= self.next_number {
            return ProbeEvent::Nothing;
        }
        let lost = self.settled..number;
        self.settled = number + 1;
        let mut event = ProbeEvent::Nothing;
        if !lost.is_empty() && !self.has_lost {
            self.has_lost = true;
            self.interval = self.interval.filter(|_| !self.restart);
            if self.restart {
                event = ProbeEvent::FirstLoss;
            }
        }
        self.average_rtt = Some(self.average_rtt.map_or(rtt, |average| (average * 3 + rtt) / 4));
        if let Some(interval) = &mut self.interval {
            let first = lost.start.max(interval.first);
            let end = lost.end.min(interval.last + 1);
            interval.lost = interval.lost.saturating_add(u32::try_from(end.saturating_sub(first)).unwrap_or(u32::MAX));
            interval.acked += u32::from(interval.contains(number));
            if interval.is_complete(now) {
                let sample = interval.sample();
                self.interval = None;
                if let Some(sample) = sample {
                    event = ProbeEvent::Sample(sample);
                }
            }
        }
        event
    }
}
