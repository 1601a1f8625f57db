//! How long before a departure a thread stops sleeping, and watches the clock instead.
//!
//! Waking takes 5 to 12 µs on an idle core that answers at once, but 30 to 70 µs, and at times some
//! hundreds, on a virtual machine; and after a sleep of milliseconds a packet is made and encrypted
//! in 20 to 100 µs, for nothing that is needed is near the core. So both are learnt.

use flowstart_units::{Span, Time};

/// One in so many times may take longer than expected ...
const SELDOM: u64 = 256;
/// ... and then this part more is expected.
const MORE: u64 = 4;
/// What is expected at first, at least and at most.
const FIRST: Span = Span::from_micros(60);
const LEAST: Span = Span::from_micros(30);
const MOST: Span = Span::from_micros(200);
/// Longer than at first is watched for no more than half of the time that passes, beyond this: who
/// never sleeps takes the processor from all others, until the system takes it back for 50 ms.
const BEYOND: Span = Span::from_millis(50);

/// How long something takes at most, nearly always.
#[derive(Clone, Copy, Debug)]
struct Expected(Span);

impl Expected {
    fn took(&mut self, span: Span) {
        // The machine did something else: to expect that would help nobody.
        if span > MOST {
            return;
        }
        self.0 = match span > self.0 {
            true => (self.0 + self.0 / MORE).min(MOST),
            false => (self.0 - self.0 / (MORE * SELDOM)).max(LEAST),
        };
    }
}

/// What a thread has learnt of its sleeps and its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watching {
    waking: Expected,
    making: Expected,
    taking: Expected,
    /// Time that may be watched, and when that was counted.
    credit: Span,
    counted: Time,
}

impl Watching {
    pub(crate) fn new() -> Self {
        let first = Expected(FIRST);
        Self { waking: first, making: first, taking: first, credit: BEYOND, counted: Time::ZERO }
    }

    /// How long before the next departure the thread stops sleeping.
    pub(crate) fn span(&self) -> Span {
        let span = self.waking.0 + self.making.0;
        if self.credit < span { span.min(FIRST) } else { span }
    }

    /// How long before it the packet is to be made.
    pub(crate) fn making(&self) -> Span {
        self.making.0.min(self.span())
    }

    /// How long before it nothing that arrived is taken in any more, for there is no time left to
    /// do so and to make the packet.
    pub(crate) fn ahead(&self) -> Span {
        let span = self.taking.0 + self.making.0;
        if self.credit < span { span.min(FIRST) } else { span }
    }

    /// Taking in what arrived took so long.
    pub(crate) fn took(&mut self, span: Span) {
        self.taking.took(span);
    }

    /// A sleep ended so much later than asked for.
    pub(crate) fn woke(&mut self, late: Span) {
        self.waking.took(late);
    }

    /// Making a packet took so long.
    pub(crate) fn made(&mut self, span: Span) {
        self.making.took(span);
    }

    /// The clock was watched for so long.
    pub(crate) fn watched(&mut self, now: Time, span: Span) {
        let earned = now.since(self.counted) / 2;
        self.counted = now;
        self.credit = (self.credit + earned).min(BEYOND) - span;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a thread sleep before 20 000 departures, `gap` apart. Waking and making a packet take
    /// `usual` microseconds, and `seldom` every 200th time. How many of the later half were late,
    /// and the share of the time that was watched.
    fn run(gap: u64, usual: [u64; 2], seldom: [u64; 2]) -> (u32, f64) {
        let (mut watching, mut now, mut late, mut watched) = (Watching::new(), Time::ZERO, 0, Span::ZERO);
        for number in 0..20_000 {
            let takes = if number % 200 == 7 { seldom } else { usual };
            let [waking, making] = takes.map(Span::from_micros);
            let until = now + Span::from_micros(gap);
            let (wake, mut woke) = (until - watching.span(), now);
            if wake > now {
                woke = wake + waking;
                watching.woke(woke.since(wake));
            }
            let made = woke.max(until - watching.making()) + making;
            watching.made(making);
            late += u32::from(number >= 10_000 && made > until + Span::from_micros(1));
            now = made.max(until);
            watching.watched(now, until.since(woke));
            watched += until.since(woke);
        }
        (late, watched.as_secs_f64() / now.as_secs_f64())
    }

    #[test]
    fn sleeps_end_as_long_before_a_departure_as_waking_and_making_a_packet_take() {
        for gap in [500, 1000, 5000] {
            for usual in [[8, 12], [40, 20], [65, 40], [100, 90], [10, 150]] {
                let (late, _) = run(gap, usual, [500, 500]);
                assert!(late <= 50, "{gap} {usual:?}: {late} of 10000");
                assert_eq!(run(gap, usual, usual).0, 0, "{gap} {usual:?}");
            }
        }
    }

    #[test]
    fn where_cores_answer_at_once_the_clock_is_watched_briefly() {
        // 60 us at first.
        let (late, share) = run(1000, [8, 12], [8, 12]);
        assert!(late == 0 && (0.05..0.06).contains(&share), "{late} {share}");
    }

    #[test]
    fn a_thread_never_watches_for_much_more_than_half_of_its_time() {
        for gap in [100, 150, 200, 310] {
            let (_, share) = run(gap, [80, 80], [2000, 80]);
            assert!(share < 0.65, "{gap}: {share}");
        }
    }
}
