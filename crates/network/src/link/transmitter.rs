//! Putting bits on the wire.

use flowstart_units::{Span, Time};

use super::{RateSchedule, RateStep};

/// Work per byte, in bits times nanoseconds per second: divided by a rate in bit/s it is a time in
/// nanoseconds.
const WORK_PER_BYTE: u64 = 8 * 1_000_000_000;

/// The work of a packet.
fn work(bytes: u32) -> u128 {
    u128::from(bytes) * u128::from(WORK_PER_BYTE)
}

/// A serializer: tells when the last bit of a packet leaves. Within a busy period fractions of
/// nanoseconds are carried from packet to packet, so that the long-run rate is exact.
#[derive(Clone, Debug)]
pub struct Transmitter {
    constant: Constant,
    busy_until: Time,
    varying: Option<Box<Varying>>,
}

/// A constant rate. Most packets have the size of the one before, so its transmission time is kept
/// and the division saved.
#[derive(Clone, Debug)]
struct Constant {
    /// Bits per second.
    rate: u64,
    /// Work that the last packet left over, less than `rate`.
    carried: u64,
    /// The last packet's size, its time rounded down, and the work beyond.
    bytes: u32,
    nanos: u64,
    remainder: u64,
}

impl Constant {
    /// How long a packet takes behind the one before.
    #[inline]
    fn time(&mut self, bytes: u32) -> Span {
        if bytes != self.bytes {
            self.divide(bytes);
        }
        // `remainder` is below `rate`, so this neither underflows nor, unlike a sum, overflows.
        let missing = self.rate.saturating_sub(self.remainder);
        if self.carried >= missing && missing > 0 {
            self.carried -= missing;
            return Span::from_nanos(self.nanos.saturating_add(1));
        }
        self.carried += self.remainder;
        Span::from_nanos(self.nanos)
    }

    fn divide(&mut self, bytes: u32) {
        self.bytes = bytes;
        (self.nanos, self.remainder) = match (self.rate, u64::from(bytes).checked_mul(WORK_PER_BYTE)) {
            (u64::MAX, _) => (0, 0),
            (0, _) => (u64::MAX, 0),
            (rate, Some(work)) => (work / rate, work % rate),
            (rate, None) => {
                let (work, rate) = (work(bytes), u128::from(rate));
                // The remainder is below the rate, which came from 64 bits.
                (u64::try_from(work / rate).unwrap_or(u64::MAX), (work % rate) as u64)
            }
        };
    }
}

/// A rate that changes.
#[derive(Clone, Debug)]
struct Varying {
    steps: Vec<RateStep>,
    period: Option<Span>,
    /// Work done in one period, and how much of it is outages.
    work_per_period: u128,
    silent_per_period: Span,
    /// The step in force.
    current: usize,
    /// When the current repetition began.
    origin: Time,
    /// Work that the last packet left over, and the rate at which it would have been done.
    carried: u64,
    carried_at: u64,
    /// When the first bit of the last packet left, and for how long outages held up the others.
    begun: Time,
    silent: Span,
}

impl Varying {
    fn new(steps: &[RateStep], period: Option<Span>) -> Self {
        let period = period.filter(|period| !period.is_zero());
        let end = period.unwrap_or(Span::ZERO).as_nanos();
        let ends = steps.iter().skip(1).map(|step| step.at.as_nanos()).chain([end]);
        let times = || steps.iter().zip(ends.clone()).map(|(step, end)| (step, end.saturating_sub(step.at.as_nanos())));
        let work_per_period = times()
            .map(|(step, nanos)| u128::from(nanos) * u128::from(step.rate.as_bps()))
            .fold(0, u128::saturating_add);
        let silent_per_period =
            times().filter(|(step, _)| step.rate.as_bps() == 0).map(|(_, nanos)| Span::from_nanos(nanos)).sum();
        Self {
            steps: steps.to_vec(),
            period,
            work_per_period,
            silent_per_period,
            current: 0,
            origin: Time::ZERO,
            carried: 0,
            carried_at: 0,
            begun: Time::ZERO,
            silent: Span::ZERO,
        }
    }

    /// Makes the step that holds at `time` current; `time` never goes back.
    fn seek(&mut self, time: Time) {
        let mut since = time.since(self.origin);
        if let Some(period) = self.period
            && since >= period
        {
            let begun = since.whole(period);
            self.origin += period * begun;
            self.current = 0;
            since = time.since(self.origin);
        }
        let later = self.steps.get(self.current + 1..).unwrap_or_default();
        if later.first().is_some_and(|next| next.at.as_nanos() <= since.as_nanos()) {
            self.current += later.partition_point(|step| step.at.as_nanos() <= since.as_nanos());
        }
    }

    /// The rate in force, and until when.
    fn current(&self) -> (u64, Time) {
        let until = match self.steps.get(self.current + 1) {
            Some(next) => self.origin + Span::from_nanos(next.at.as_nanos()),
            None => self.period.map_or(Time::NEVER, |period| self.origin + period),
        };
        (self.steps.get(self.current).map_or(0, |step| step.rate.as_bps()), until)
    }

    /// When a packet that begins to leave at `start` has left.
    fn finish(&mut self, start: Time, bytes: u32, back_to_back: bool) -> Time {
        self.seek(start);
        let mut at = start;
        let mut left = work(bytes);
        (self.begun, self.silent) = (start, Span::ZERO);
        let (rate, _) = self.current();
        // What is left over is less than a nanosecond's work; at another rate it would mean another
        // time, so it ends with the rate.
        if back_to_back && self.carried_at == rate {
            left += u128::from(self.carried);
        }
        loop {
            let (rate, until) = self.current();
            if rate == u64::MAX {
                self.carried = 0;
                return at;
            }
            let available = u128::from(until.since(at).as_nanos()) * u128::from(rate);
            if rate > 0 && left <= available {
                self.carried = (left % u128::from(rate)) as u64;
                self.carried_at = rate;
                return at + Span::from_nanos(u64::try_from(left / u128::from(rate)).unwrap_or(u64::MAX));
            }
            if until == Time::NEVER {
                return Time::NEVER;
            }
            if rate == 0 && self.begun == at {
                self.begun = until;
            } else if rate == 0 {
                self.silent += until.since(at);
            }
            left -= available;
            at = until;
            if let Some(period) = self.period
                && at >= self.origin + period
            {
                if self.work_per_period == 0 {
                    return Time::NEVER;
                }
                // Whole periods at once, but neither the one in which the first bit leaves nor that
                // of the last.
                let whole = if self.begun == at { 0 } else { left.saturating_sub(1) / self.work_per_period };
                left -= whole * self.work_per_period;
                let whole = u64::try_from(whole).unwrap_or(u64::MAX);
                at += period * whole;
                self.silent += self.silent_per_period * whole;
            }
            self.seek(at);
        }
    }
}

/// How a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// When its first bit leaves: at the end of an outage at the earliest.
    pub begun: Time,
    /// For how long the transmitter then sends: without the outages in the middle of it.
    pub busy: Span,
    /// When its last bit has left.
    pub done: Time,
}

impl Transmitter {
    /// A transmitter for a valid schedule ([`RateSchedule::validate`]). With an invalid one it is
    /// as good as an outage.
    #[must_use]
    pub fn new(schedule: &RateSchedule) -> Self {
        let mut constant = Constant { rate: schedule.initial().as_bps(), carried: 0, bytes: 0, nanos: 0, remainder: 0 };
        constant.divide(0);
        let varying = match schedule {
            RateSchedule::Constant(_) => None,
            RateSchedule::Steps { steps, period } => Some(Box::new(Varying::new(steps, *period))),
        };
        Self { constant, busy_until: Time::ZERO, varying }
    }

    /// A packet of `bytes` begins to leave at `now`, or when the one before has left if that is
    /// later. Returns when its last bit has left, rounded down to a nanosecond; [`Time::NEVER`] if
    /// it never does.
    #[inline]
    pub fn transmit(&mut self, now: Time, bytes: u32) -> Time {
        let back_to_back = now <= self.busy_until;
        let start = if back_to_back { self.busy_until } else { now };
        self.busy_until = match &mut self.varying {
            None => {
                if !back_to_back {
                    self.constant.carried = 0;
                }
                start + self.constant.time(bytes)
            }
            Some(varying) => varying.finish(start, bytes, back_to_back),
        };
        self.busy_until
    }

    /// As [`transmit`](Self::transmit), for those who ask what is waiting and what is sending.
    pub fn send(&mut self, now: Time, bytes: u32) -> Sending {
        let start = now.max(self.busy_until);
        let done = self.transmit(now, bytes);
        let (begun, silent) = match &self.varying {
            None => (start, Span::ZERO),
            Some(varying) => (varying.begun, varying.silent),
        };
        Sending { begun, busy: done.since(begun) - silent, done }
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

    #[test]
    fn an_outage_is_waited_for_before_a_packet_and_no_sending_within_it() {
        let step = |micros: u64, mbps| RateStep { at: Time::from_nanos(micros * 1_000), rate: Rate::from_mbps(mbps) };
        let steps = vec![step(0, 8), step(500, 0), step(600, 0), step(700, 16)];
        let mut link = Transmitter::new(&RateSchedule::Steps { steps, period: Some(Span::from_micros(1_000)) });
        let mut send = |micros: u64, bytes| {
            let Sending { begun, busy, done } = link.send(Time::from_nanos(micros * 1_000), bytes);
            [begun.since(Time::ZERO), busy, done.since(Time::ZERO)].map(|span| span.as_nanos() / 1_000)
        };
        // A byte per microsecond, later two.
        assert_eq!(send(100, 100), [100, 100, 200]);
        assert_eq!(send(450, 100), [450, 75, 725]);
        // From outages before the first bit into the next period.
        assert_eq!(send(1_550, 700), [1_700, 400, 2_100]);
        // Ten periods of 1100 B each, 200 us of each without sending.
        assert_eq!(send(2_100, 11_000), [2_100, 8_000, 12_100]);
        let mut plain = Transmitter::new(&RateSchedule::Constant(Rate::from_mbps(8)));
        let (begun, done) = (Time::from_nanos(5_000), Time::from_nanos(105_000));
        assert_eq!(plain.send(begun, 100), Sending { begun, busy: Span::from_micros(100), done });
        assert_eq!(plain.send(begun, 100).begun, done, "behind the one before");
    }

    #[test]
    fn an_idle_link_forgets_the_fraction() {
        let mut link = Transmitter::new(&RateSchedule::Constant(Rate::from_bps(3_000_000_000)));
        // 1 B takes 2.67 ns.
        assert_eq!(link.transmit(Time::ZERO, 1), Time::from_nanos(2));
        assert_eq!(link.transmit(Time::from_nanos(2), 1), Time::from_nanos(5));
        assert_eq!(link.transmit(Time::from_nanos(6), 1), Time::from_nanos(8));
    }

    #[test]
    fn a_packet_that_takes_a_thousand_years_takes_no_longer_to_compute() {
        let steps = vec![
            RateStep { at: Time::ZERO, rate: Rate::from_bps(1) },
            RateStep { at: Time::from_nanos(1), rate: Rate::ZERO },
        ];
        let schedule = RateSchedule::Steps { steps, period: Some(Span::from_nanos(2)) };
        let mut link = Transmitter::new(&schedule);
        // 1 bit needs a second of the half of the time in which the link is up; the last nanosecond
        // of work is in an odd slot.
        assert_eq!(link.transmit(Time::ZERO, 1), Time::from_nanos(2 * 8_000_000_000 - 1));
        assert_eq!(link.transmit(Time::from_nanos(1 << 62), u32::MAX), Time::NEVER);
    }

    #[test]
    fn extreme_rates_and_sizes_are_total() {
        for (rate, done) in [(Rate::UNLIMITED, Time::from_nanos(5)), (Rate::ZERO, Time::NEVER)] {
            let mut link = Transmitter::new(&RateSchedule::Constant(rate));
            assert_eq!(link.transmit(Time::from_nanos(5), u32::MAX), done);
            assert_eq!(link.transmit(done, u32::MAX), done);
        }
        let mut link = Transmitter::new(&RateSchedule::Constant(Rate::from_bps(1)));
        assert_eq!(link.transmit(Time::ZERO, u32::MAX), Time::NEVER);
        let mut link = Transmitter::new(&RateSchedule::Steps { steps: Vec::new(), period: None });
        assert_eq!(link.transmit(Time::ZERO, 1), Time::NEVER);
    }

    #[test]
    fn packets_whose_work_needs_more_than_64_bits_take_their_time_too() {
        // 2^32 - 1 bytes at 8 Gbit/s: a nanosecond per byte; at 3 Gbit/s two and two thirds.
        for (bps, first, second) in [
            (8_000_000_000, u64::from(u32::MAX), 2 * u64::from(u32::MAX)),
            (3_000_000_000, 11_453_246_120, 22_906_492_240),
        ] {
            let mut link = Transmitter::new(&RateSchedule::Constant(Rate::from_bps(bps)));
            assert_eq!(link.transmit(Time::ZERO, u32::MAX), Time::from_nanos(first));
            assert_eq!(link.transmit(Time::ZERO, u32::MAX), Time::from_nanos(second));
        }
    }

    /// What a schedule does, nanosecond by nanosecond: the reference for small cases.
    fn by_nanoseconds(steps: &[RateStep], period: Option<Span>, start: u64, mut left: u128) -> u64 {
        for now in start.. {
            let phase = period.map_or(now, |period| now % period.as_nanos());
            let rate = steps.iter().rev().find(|step| step.at.as_nanos() <= phase).map_or(0, |step| step.rate.as_bps());
            if left < u128::from(rate) || left == 0 {
                return now;
            }
            left -= u128::from(rate);
        }
        unreachable!()
    }

    proptest::proptest! {
        /// Differential: a schedule whose steps all have one rate against the constant rate, to the
        /// nanosecond.
        #[test]
        fn equal_steps_are_a_constant_rate(
            bps in 1_000_u64..100_000_000_000,
            period in 50_001_u64..100_000,
            packets in proptest::collection::vec((40_u32..9_000, 0_u64..1_000), 1..50),
        ) {
            let rate = Rate::from_bps(bps);
            let steps = (0..5).map(|n| RateStep { at: Time::from_nanos(n * 10_000), rate }).collect();
            let mut stepped = Transmitter::new(&RateSchedule::Steps { steps, period: Some(Span::from_nanos(period)) });
            let mut constant = Transmitter::new(&RateSchedule::Constant(rate));
            let mut now = Time::ZERO;
            for (bytes, pause) in packets {
                let done = constant.transmit(now, bytes);
                proptest::prop_assert_eq!(stepped.transmit(now, bytes), done);
                now = done + Span::from_nanos(pause / 2);
            }
        }

        /// Differential: against adding up every nanosecond.
        #[test]
        fn a_varying_rate_is_the_sum_over_its_nanoseconds(
            rates in proptest::collection::vec(0_u64..4, 1..5),
            repeat: bool,
            start in 0_u64..200,
            bytes in 1_u32..4,
        ) {
            let scale = 1_000_000_000;
            let last = if rates.iter().all(|rate| *rate == 0) || !repeat { 2 } else { 0 };
            let steps: Vec<RateStep> = (0..).zip(rates.iter().copied().chain([last]))
                .map(|(n, rate)| RateStep { at: Time::from_nanos(n * 7), rate: Rate::from_bps(rate * scale) })
                .collect();
            let period = repeat.then(|| Span::from_nanos(7 * steps.len() as u64));
            let expected = by_nanoseconds(&steps, period, start, work(bytes));
            let phase = |now: u64| period.map_or(now, |period| now % period.as_nanos());
            let silent = |now: u64| {
                steps.iter().rev().find(|step| step.at.as_nanos() <= phase(now)).is_some_and(|step| step.rate.as_bps() == 0)
            };
            let first = (start..).find(|now| !silent(*now)).unwrap();
            let idle = (first..expected).filter(|now| silent(*now)).count() as u64;
            let mut link = Transmitter::new(&RateSchedule::Steps { steps, period });
            let sending = link.send(Time::from_nanos(start), bytes);
            proptest::prop_assert_eq!(sending.done.as_nanos(), expected);
            proptest::prop_assert_eq!(sending.begun.as_nanos(), first);
            proptest::prop_assert_eq!(sending.busy.as_nanos(), expected - first - idle);
        }
    }
}
