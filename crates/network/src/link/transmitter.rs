//! Putting bits on the wire.

use flowstart_units::{Span, Time};

use super::{RateSchedule, RateStep};

/// Bits times nanoseconds per second: what a rate in bit/s divides.
const BIT_NANOS_PER_BYTE: u64 = 8 * 1_000_000_000;

/// A serializer: tells when the last bit of a packet leaves. Within a busy period the fractions of nanoseconds add up, so that the long-run
/// rate is exact.
#[derive(Clone, Debug)]
pub struct Transmitter {
    bits_per_second: u64,
    /// What the last division left over, in bits times nanoseconds per second.
    remainder: u64,
    busy_until: Time,
    varying: Option<Box<Varying>>,
}

/// The steps of a rate that changes.
#[derive(Clone, Debug)]
struct Varying {
    steps: Vec<RateStep>,
    period: Option<Span>,
    /// The step in force, and when it began.
    current: usize,
    began: Time,
    /// When the current repetition began.
    origin: Time,
}

impl Varying {
    /// The rate in force, and until when.
    fn current(&self) -> (u64, Time) {
        let until = match self.steps.get(self.current + 1) {
            Some(next) => self.origin + Span::from_nanos(next.at.as_nanos()),
            None => self.period.map_or(Time::NEVER, |period| self.origin + period),
        };
        (self.steps[self.current].rate.as_bps(), until)
    }

    fn advance(&mut self, until: Time) {
        self.began = until;
        self.current += 1;
        if self.current == self.steps.len() {
            self.current = 0;
            self.origin = until;
        }
    }
}

impl Transmitter {
    /// A transmitter for a valid schedule ([`RateSchedule::validate`]).
    #[must_use]
    pub fn new(schedule: &RateSchedule) -> Self {
        let varying = match schedule {
            RateSchedule::Constant(_) => None,
            RateSchedule::Steps { steps, period } => Some(Box::new(Varying {
                steps: steps.clone(),
                period: *period,
                current: 0,
                began: Time::ZERO,
                origin: Time::ZERO,
            })),
        };
        Self { bits_per_second: schedule.initial().as_bps(), remainder: 0, busy_until: Time::ZERO, varying }
    }

    /// A packet of `bytes` begins to leave at `now` (not before the previous one is done). Returns when its last bit has left.
    #[inline]
    pub fn transmit(&mut self, now: Time, bytes: u32) -> Time {
        if self.varying.is_some() {
            return self.transmit_varying(now, bytes);
        }
        if self.bits_per_second == u64::MAX {
            return now;
        }
        if now > self.busy_until {
            self.remainder = 0;
        }
        // 4 GB times 8e9 overflows; a packet of an IP network does not come near.
        let work = u64::from(bytes).saturating_mul(BIT_NANOS_PER_BYTE).saturating_add(self.remainder);
        let nanos = work.checked_div(self.bits_per_second).unwrap_or(u64::MAX);
        self.remainder = work - nanos.saturating_mul(self.bits_per_second);
        self.busy_until = now + Span::from_nanos(nanos);
        self.busy_until
    }

    fn transmit_varying(&mut self, now: Time, bytes: u32) -> Time {
        let Some(varying) = &mut self.varying else { return now };
        let mut at = now;
        // Fractions of nanoseconds are rounded to the nearest here: a rate that varies has no exact long-run rate to keep.
        let mut left = u128::from(bytes) * u128::from(BIT_NANOS_PER_BYTE);
        loop {
            let (rate, until) = varying.current();
            if until <= at {
                varying.advance(until);
                continue;
            }
            let available = u128::from(until.since(at).as_nanos()) * u128::from(rate);
            if rate == u64::MAX {
                return at;
            }
            if rate > 0 && left <= available {
                let nanos = (left + u128::from(rate) / 2) / u128::from(rate);
                return at + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            }
            if until == Time::NEVER {
                return Time::NEVER;
            }
            left -= available;
            at = until;
            varying.advance(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::Rate;

    use super::*;

    #[test]
    fn packets_of_1514_bytes_leave_a_10_mbit_link_every_1211200_ns() {
        let mut link = Transmitter::new(&RateSchedule::Constant(Rate::from_mbps(10)));
        let first = link.transmit(Time::ZERO, 1514);
        assert_eq!(first, Time::from_nanos(1_211_200));
        assert_eq!(link.transmit(first, 1514), Time::from_nanos(2_422_400));
    }

    #[test]
    fn the_long_run_rate_is_exact_though_a_packet_takes_a_fraction_of_a_nanosecond() {
        // 64 B at 10 Gbit/s take 51.2 ns.
        let mut link = Transmitter::new(&RateSchedule::Constant(Rate::from_mbps(10_000)));
        let mut now = Time::ZERO;
        for _ in 0..10_000 {
            now = link.transmit(now, 64);
        }
        assert_eq!(now, Time::from_nanos(512_000));
    }

    #[test]
    fn a_step_in_mid_packet_changes_the_rate_of_the_rest() {
        let steps = vec![
            RateStep { at: Time::ZERO, rate: Rate::from_mbps(8) },
            RateStep { at: Time::from_nanos(500_000), rate: Rate::ZERO },
            RateStep { at: Time::from_nanos(700_000), rate: Rate::from_mbps(16) },
        ];
        let mut link = Transmitter::new(&RateSchedule::Steps { steps, period: None });
        // 1000 B: 500 B until the outage, then 250 us more at twice the rate.
        assert_eq!(link.transmit(Time::ZERO, 1000), Time::from_nanos(950_000));
    }

    proptest::proptest! {
        /// Differential: a schedule whose steps all have one rate against the constant rate, up to the rounding of each packet.
        #[test]
        fn equal_steps_are_a_constant_rate(
            mbps in 1_u64..10_000,
            sizes in proptest::collection::vec(40_u32..9_000, 1..50),
        ) {
            let rate = Rate::from_mbps(mbps);
            let steps = (0..5).map(|n| RateStep { at: Time::from_nanos(n * 10_000), rate }).collect();
            let mut stepped = Transmitter::new(&RateSchedule::Steps { steps, period: Some(Span::from_nanos(50_000)) });
            let mut constant = Transmitter::new(&RateSchedule::Constant(rate));
            let (mut a, mut b) = (Time::ZERO, Time::ZERO);
            for (count, bytes) in (1..).zip(sizes) {
                a = stepped.transmit(a, bytes);
                b = constant.transmit(b, bytes);
                let apart = a.since(b).as_nanos().max(b.since(a).as_nanos());
                proptest::prop_assert!(apart <= count, "{a:?} {b:?}");
            }
        }
    }
}
