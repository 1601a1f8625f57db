//! CoDel's control law (RFC 8289 section 5; Linux `codel_impl.h`), apart from the queue it works
//! on.

use flowstart_units::{Span, Time};

use super::DropReason;
use crate::Frame;

/// Whose arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum CodelArithmetic {
    /// RFC 8289: nanoseconds, the exact square root, dropping as soon as the interval is over.
    Rfc8289,
    /// Linux: ticks of 1024 ns, 1/√count in 16 bits by one Newton step per change of count (so that
    /// the second drop follows the first by half an interval), dropping strictly after the
    /// interval. Where `fq_codel` adds so many drops to the count that Linux's step wraps, the true
    /// root.
    #[default]
    Linux,
}

/// How many nanoseconds a Linux tick has, as a power of two (`CODEL_SHIFT`).
const TICK_SHIFT: u32 = 10;
/// Bits of Linux's 1/√count (`REC_INV_SQRT_BITS`), and the value for a count of 1.
const RECIPROCAL_BITS: u32 = 16;
const RECIPROCAL_OF_ONE: u64 = (1 << RECIPROCAL_BITS) - 1;
/// A dropping state that begins within this many intervals of the last one goes on from its count
/// (RFC 8289 section 5.5).
const MEMORY_INTERVALS: u64 = 16;

/// The constants, in the clock's own units (ticks or nanoseconds).
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    arithmetic: CodelArithmetic,
    target: u64,
    interval: u64,
    /// No drops while the backlog is at most this many bytes.
    floor: u64,
    ecn: bool,
    mark_threshold: Option<u64>,
}

/// Where the control takes its packets from.
pub(super) trait Source<P> {
    /// The oldest packet and when it arrived.
    fn pop(&mut self) -> Option<(P, Time)>;
    /// Bytes left behind, with link-layer overhead.
    fn backlog(&self) -> u64;
}

/// The state of one controlled queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    pub(super) count: u64,
    last_count: u64,
    dropping: bool,
    /// Linux's 1/√count.
    reciprocal: u64,
    /// When the sojourn time will have been above target for an interval.
    first_above: Option<u64>,
    drop_next: u64,
}

impl Law {
    pub(super) fn new(
        arithmetic: CodelArithmetic,
        target: Span,
        interval: Span,
        floor: u32,
        ecn: bool,
        mark_threshold: Option<Span>,
    ) -> Self {
        let law = Self { arithmetic, target: 0, interval: 0, floor: u64::from(floor), ecn, mark_threshold: None };
        Self {
            target: law.units(target.as_nanos()),
            interval: law.units(interval.as_nanos()),
            mark_threshold: mark_threshold.map(|threshold| law.units(threshold.as_nanos())),
            ..law
        }
    }

    #[inline]
    fn units(&self, nanos: u64) -> u64 {
        match self.arithmetic {
            CodelArithmetic::Rfc8289 => nanos,
            CodelArithmetic::Linux => nanos >> TICK_SHIFT,
        }
    }

    /// How long a packet waited; in ticks it is the difference of two roundings, as in Linux.
    #[inline]
    fn sojourn(&self, now: Time, arrived: Time) -> u64 {
        self.units(now.as_nanos()).saturating_sub(self.units(arrived.as_nanos()))
    }
}

impl Control {
    /// True if a packet that waited so long may be dropped.
    fn may_drop(&mut self, law: &Law, now: u64, sojourn: u64, backlog: u64) -> bool {
        if sojourn < law.target || backlog <= law.floor {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now.saturating_add(law.interval));
                false
            }
            Some(first) if law.arithmetic == CodelArithmetic::Linux => now > first,
            Some(first) => now >= first,
        }
    }

    fn set_count(&mut self, count: u64) {
        self.count = count;
        if count <= 1 {
            self.reciprocal = RECIPROCAL_OF_ONE;
            return;
        }
        // x ← x (3 - count x²) / 2 with x in 32-bit fixed point. Counts beyond 32 bits would take
        // 10^13 s.
        let count = count.min(u64::from(u32::MAX));
        let x = self.reciprocal << (32 - RECIPROCAL_BITS);
        let square = (x * x) >> 32;
        let product = count.saturating_mul(square);
        if product > 2 << 32 {
            // Counting up one by one never gets here. fq_codel does when it adds a batch to the
            // count; Linux's subtraction may wrap then, and the step lands so far from the root
            // that none leads back. Begin anew at the true root.
            self.reciprocal = ((1_u64 << (2 * RECIPROCAL_BITS)) / count).isqrt().min(RECIPROCAL_OF_ONE);
            return;
        }
        let rest = (3_u64 << 32) - product;
        // Two bits are given away before the product so that it fits 64, and one is taken for the
        // half.
        let x = ((rest >> 2) * x) >> (32 - 2 + 1);
        self.reciprocal = x >> (32 - RECIPROCAL_BITS);
    }

    /// `from` + interval / √count.
    fn next_drop(&self, law: &Law, from: u64) -> u64 {
        let gap = match law.arithmetic {
            CodelArithmetic::Linux => {
                let wide = u128::from(law.interval) * u128::from(self.reciprocal);
                (wide >> RECIPROCAL_BITS) as u64
            }
            CodelArithmetic::Rfc8289 => {
                let square = u128::from(law.interval) * u128::from(law.interval) / u128::from(self.count.max(1));
                // The root of at most the square of 64 bits.
                square.isqrt() as u64
            }
        };
        from.saturating_add(gap)
    }

    /// The next packet, after dropping or marking as the law says. Counts marks in `marked`.
    pub(super) fn dequeue<P: Frame>(
        &mut self,
        law: &Law,
        time: Time,
        source: &mut impl Source<P>,
        marked: &mut u64,
        dropped: &mut dyn FnMut(P, DropReason),
    ) -> Option<(P, Time)> {
        let now = law.units(time.as_nanos());
        let mut next = source.pop();
        let may_drop = self.judge(law, now, time, &next, source);
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.set_count(self.count.saturating_add(1));
                if law.ecn && mark(&mut next, marked) {
                    // One mark per packet that leaves is all that can be said.
                    self.drop_next = self.next_drop(law, self.drop_next);
                    break;
                }
                next = drop_and_pop(next, source, dropped);
                if self.judge(law, now, time, &next, source) {
                    self.drop_next = self.next_drop(law, self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            if !(law.ecn && mark(&mut next, marked)) {
                next = drop_and_pop(next, source, dropped);
                self.judge(law, now, time, &next, source);
            }
            // The state begins even if the next packet is well; it ends with the next dequeue then.
            self.dropping = true;
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.saturating_sub(self.drop_next) < law.interval.saturating_mul(MEMORY_INTERVALS);
            self.set_count(if delta > 1 && recent { delta } else { 1 });
            self.last_count = self.count;
            self.drop_next = self.next_drop(law, now);
        }
        if let (Some(threshold), Some((packet, arrived))) = (law.mark_threshold, &mut next)
            && law.sojourn(time, *arrived) > threshold
        {
            *marked += u64::from(packet.set_ce());
        }
        next
    }

    /// May this packet be dropped? Without a packet the queue is empty, which is well.
    fn judge<P>(
        &mut self,
        law: &Law,
        now: u64,
        time: Time,
        packet: &Option<(P, Time)>,
        source: &impl Source<P>,
    ) -> bool {
        match packet {
            Some((_, arrived)) => self.may_drop(law, now, law.sojourn(time, *arrived), source.backlog()),
            None => {
                self.first_above = None;
                false
            }
        }
    }
}

fn mark<P: Frame>(packet: &mut Option<(P, Time)>, marked: &mut u64) -> bool {
    let done = packet.as_mut().is_some_and(|(packet, _)| packet.set_ce());
    *marked += u64::from(done);
    done
}

fn drop_and_pop<P>(
    packet: Option<(P, Time)>,
    source: &mut impl Source<P>,
    dropped: &mut dyn FnMut(P, DropReason),
) -> Option<(P, Time)> {
    if let Some((packet, _)) = packet {
        dropped(packet, DropReason::Early);
    }
    source.pop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::Box1;

    /// An overload that nothing impresses: there is always a packet, and it has always waited for a
    /// second.
    struct Overload(Time);

    impl Source<Box1> for Overload {
        fn pop(&mut self) -> Option<(Box1, Time)> {
            Some((Box1::new(0, 1500), Time::from_nanos(self.0.as_nanos() - 1_000_000_000)))
        }

        fn backlog(&self) -> u64 {
            1_000_000
        }
    }

    const START: u64 = 1_024_000_000_000;

    /// Times of the drops after the first, in nanoseconds from it, with a dequeue every 1024 ns.
    fn drops(arithmetic: CodelArithmetic, lasting: Span) -> Vec<u64> {
        let law = Law::new(arithmetic, Span::from_millis(5), Span::from_millis(100), 1514, false, None);
        let mut control = Control::default();
        let mut times = Vec::new();
        for now in (START..).step_by(1 << TICK_SHIFT) {
            let time = Time::from_nanos(now);
            control.dequeue(&law, time, &mut Overload(time), &mut 0, &mut |_, _| times.push(now));
            if times.first().is_some_and(|first| now - first > lasting.as_nanos()) {
                break;
            }
        }
        times.iter().map(|time| time - times[0]).skip(1).collect()
    }

    fn assert_drops(arithmetic: CodelArithmetic, expected_ms: &[f64]) {
        let drops = drops(arithmetic, Span::from_millis(500));
        for (drop, expected) in drops.iter().zip(expected_ms) {
            // Two decimals and one tick.
            assert!((*drop as f64 / 1e6 - expected).abs() < 0.005 + 0.001_024, "{drop} {expected}");
        }
        assert!(drops.len() >= expected_ms.len());
    }

    #[test]
    fn with_exact_roots_the_drops_come_when_rfc_8289_says() {
        let expected = [100.0, 170.71, 228.45, 278.45, 323.17, 363.99, 401.79, 437.14, 470.48];
        assert_drops(CodelArithmetic::Rfc8289, &expected);
    }

    #[test]
    fn with_one_newton_step_the_drops_come_when_linux_has_them() {
        let expected = [100.0, 150.0, 206.25, 255.03, 299.18, 339.58, 377.10, 412.25, 445.43];
        assert_drops(CodelArithmetic::Linux, &expected);
    }

    #[test]
    fn the_reciprocals_of_linux_for_counts_2_to_6() {
        let mut control = Control::default();
        control.set_count(1);
        let expected = [0.5, 0.5625, 0.4878, 0.4415, 0.4041];
        for (count, expected) in (2..).zip(expected) {
            control.set_count(count);
            let reciprocal = control.reciprocal as f64 / 65_536.0;
            assert!((reciprocal - expected).abs() < 1e-4, "{count} {reciprocal}");
        }
    }

    #[test]
    fn drops_in_half_a_second_to_five_seconds_of_overload() {
        for (arithmetic, expected) in
            // Linux begins with shorter gaps and keeps the lead; its values were measured here, the
            // others computed elsewhere.
            [(CodelArithmetic::Rfc8289, [10, 33, 115, 662]), (CodelArithmetic::Linux, [11, 34, 118, 669])]
        {
            let drops = drops(arithmetic, Span::from_secs(5));
            // The first drop, at time 0, counts.
            let within =
                [500, 1000, 2000, 5000].map(|ms| 1 + drops.iter().filter(|time| **time <= ms * 1_000_000).count());
            assert_eq!(within, expected, "{arithmetic:?}");
        }
    }

    #[test]
    fn the_reciprocal_recovers_from_any_jump_of_the_count() {
        for jump in [2, 3, 4, 65, 1000, 1 << 20, u64::from(u32::MAX)] {
            let mut control = Control::default();
            control.set_count(1);
            for _ in 0..60 {
                control.set_count(jump);
            }
            let (reciprocal, exact) = (control.reciprocal as f64 / 65_536.0, 1.0 / (jump as f64).sqrt());
            assert!((reciprocal - exact).abs() < 0.01 * exact + 2.0 / 65_536.0, "{jump}: {reciprocal} {exact}");
        }
    }

    #[test]
    fn a_dropping_state_soon_after_another_goes_on_from_its_count() {
        let law = Law::new(CodelArithmetic::Linux, Span::from_millis(5), Span::from_millis(100), 1514, false, None);
        let mut control = Control { count: 10, last_count: 4, drop_next: 1_000_000, ..Control::default() };
        control.first_above = Some(1_000_000);
        let time = Time::from_nanos(1_000_001 << TICK_SHIFT);
        control.dequeue(&law, time, &mut Overload(time), &mut 0, &mut |_, _| {});
        assert_eq!((control.count, control.last_count, control.dropping), (6, 6, true));
    }
}
