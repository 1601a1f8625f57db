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

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u32 = 1250;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// A flow of a packet per millisecond without jitter, whose intervals last two RTTs.
    fn flow() -> ProbeFlow {
        let config = DetectorConfig { jitter: Jitter::None, interval_rtts: 2.0, ..DetectorConfig::default() };
        ProbeFlow::new(&config, Rate::from_mbps(10), at(0), 1)
    }

    /// Sends packets up to this time, one every millisecond.
    fn send(flow: &mut ProbeFlow, until: u64) {
        while flow.next_departure() < at(until) {
            flow.on_sent(flow.next_departure(), BYTES);
        }
    }

    /// The ACK of a packet after ten milliseconds.
    fn ack(flow: &mut ProbeFlow, number: u64) -> ProbeEvent {
        flow.on_ack(at(number + 10), number, at(number))
    }

    #[test]
    fn a_sample_is_the_part_that_arrived_and_its_rate() {
        let sample = Sample { rate: Rate::from_mbps(10), packets: 8, lost: 2 };
        assert_eq!((sample.arrived(), sample.good()), (0.75, Rate::from_bps(7_500_000)));
        let none = Sample { packets: 0, lost: 0, ..sample };
        assert_eq!((none.arrived(), none.good()), (0.0, Rate::ZERO));
    }

    #[test]
    fn packets_leave_at_the_rate_however_late_the_one_before_was() {
        let mut flow = flow();
        assert_eq!(flow.next_departure(), at(0));
        assert_eq!([0, 5, 6].map(|late| flow.on_sent(at(late), BYTES)), [0, 1, 2]);
        assert_eq!(flow.next_departure(), at(3));
        flow.measure(Rate::from_mbps(5));
        flow.on_sent(at(6), BYTES);
        assert_eq!(flow.next_departure(), at(5));
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_has_its_mean() {
        // Of the gap between 0.5 and 1.5 with the mean 1; of the rate between 0.5 and 2, whose gaps
        // have the mean ln(4) / 1.5.
        for (jitter, least, most, mean) in [(Jitter::Gap, 0.5, 1.5, 1.0), (Jitter::Rate, 0.5, 2.0, 0.9242)] {
            let config = DetectorConfig { jitter, ..DetectorConfig::default() };
            let mut flow = ProbeFlow::new(&config, Rate::from_mbps(10), at(0), 7);
            let gaps: Vec<f64> = (0..20_000)
                .map(|_| {
                    let before = flow.next_departure();
                    flow.on_sent(before, BYTES);
                    flow.next_departure().since(before).ratio(ms(1))
                })
                .collect();
            assert!(gaps.iter().all(|gap| (least..=most).contains(gap)), "{jitter:?}");
            assert!(gaps.iter().any(|gap| *gap < least + 0.01) && gaps.iter().any(|gap| *gap > most - 0.01));
            assert!((gaps.iter().sum::<f64>() / 20_000.0 - mean).abs() < 0.01, "{jitter:?}");
        }
    }

    #[test]
    fn the_average_rtt_takes_a_quarter_of_each_new_one() {
        let mut flow = flow();
        send(&mut flow, 5);
        assert_eq!(flow.average_rtt(), None);
        flow.on_ack(at(8), 0, at(0));
        assert_eq!(flow.average_rtt(), Some(ms(8)));
        flow.on_ack(at(21), 1, at(1));
        assert_eq!(flow.average_rtt(), Some(ms(11)));
        // Neither an old ACK nor one of a packet that never left.
        assert_eq!(flow.on_ack(at(50), 1, at(1)), ProbeEvent::Nothing);
        assert_eq!(flow.on_ack(at(50), 5, at(5)), ProbeEvent::Nothing);
        assert_eq!(flow.average_rtt(), Some(ms(11)));
    }

    #[test]
    fn an_interval_lasts_two_rtts_and_is_complete_when_all_its_packets_are_settled() {
        let mut flow = flow();
        send(&mut flow, 10);
        assert_eq!(ack(&mut flow, 0), ProbeEvent::Nothing);
        // Packets 10 to 30 leave within 20 ms of the first, 31 is of none.
        send(&mut flow, 32);
        assert!((1..30).all(|number| ack(&mut flow, number) == ProbeEvent::Nothing));
        // 21 packets over 20 gaps of a millisecond.
        let sample = Sample { rate: Rate::from_bps(10_500_000), packets: 21, lost: 0 };
        assert_eq!(ack(&mut flow, 30), ProbeEvent::Sample(sample));
        assert_eq!(ack(&mut flow, 31), ProbeEvent::Nothing);
        // The next packet opens another one.
        send(&mut flow, 53);
        assert!((32..52).all(|number| ack(&mut flow, number) == ProbeEvent::Nothing));
        assert_eq!(ack(&mut flow, 52), ProbeEvent::Sample(sample));
    }

    #[test]
    fn packets_of_the_interval_that_were_skipped_are_lost() {
        let mut flow = flow();
        flow.has_lost = true;
        send(&mut flow, 10);
        ack(&mut flow, 0);
        send(&mut flow, 40);
        // 8 and 9 left before it, 10 to 12 are of it.
        (1..8).for_each(|number| _ = ack(&mut flow, number));
        ack(&mut flow, 13);
        (14..29).for_each(|number| _ = ack(&mut flow, number));
        // 29 and 30 are of it, 31 and 32 are not; the ACK of 33 settles them.
        let sample = Sample { rate: Rate::from_bps(10_500_000), packets: 21, lost: 5 };
        assert_eq!(ack(&mut flow, 33), ProbeEvent::Sample(sample));
    }

    #[test]
    fn the_first_loss_ends_the_interval_if_it_is_to_be_measured_again() {
        for restart in [true, false] {
            let mut flow = flow();
            flow.restart = restart;
            send(&mut flow, 10);
            ack(&mut flow, 0);
            send(&mut flow, 31);
            let event = ack(&mut flow, 15);
            assert_eq!(event, if restart { ProbeEvent::FirstLoss } else { ProbeEvent::Nothing });
            assert_eq!(flow.interval.is_some(), !restart);
            // The second one does not.
            flow.on_sent(at(31), BYTES);
            assert_eq!(ack(&mut flow, 20), ProbeEvent::Nothing);
            assert!(flow.interval.is_some());
        }
    }

    #[test]
    fn an_interval_of_one_packet_tells_nothing() {
        let mut flow = flow();
        flow.on_sent(at(0), BYTES);
        flow.on_ack(at(10), 0, at(0));
        flow.on_sent(at(10), BYTES);
        assert_eq!(flow.on_ack(at(40), 1, at(10)), ProbeEvent::Nothing);
        assert!(flow.interval.is_none());
    }
}
