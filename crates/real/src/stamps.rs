//! The socket's own word of when the kernel sent a message, beside what the path saw.

use flowstart_emulator::traffic::{SocketStamp, StampedBy};
use flowstart_units::{Span, Time};

/// How the stamps of sockets (`SO_TIMESTAMPING`) agree with when packets were seen to leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StampCheck {
    /// Messages that were seen to leave.
    pub messages: u64,
    /// Those of them whose end has a stamp of its own. TCP keeps one stamp for the writes that it
    /// joins in one buffer.
    pub stamped: u64,
    /// Why the kernel refused to stamp, if it did.
    pub refused: Option<String>,
    /// How far the stamps of the driver are from when the packet was seen.
    pub(super) apart: Vec<Span>,
    /// How long packets were in the queueing discipline.
    pub(super) queued: Vec<Span>,
}

impl StampCheck {
    /// Of messages of this size: when they were seen to leave, from the first on, and what the
    /// socket said.
    pub(super) fn new(
        message: u64,
        left: impl Iterator<Item = Option<Time>>,
        stamps: &[SocketStamp],
        refused: Option<String>,
    ) -> Self {
        let mut check = Self { refused, ..Self::default() };
        let left: Vec<Option<Time>> = left.collect();
        check.messages = left.iter().flatten().count() as u64;
        // What is sent again is stamped again: the first of each kind counts.
        let mut first = vec![(None, None); left.len()];
        for stamp in stamps.iter().filter(|stamp| stamp.written > 0 && stamp.written.is_multiple_of(message)) {
            let number = usize::try_from(stamp.written / message - 1).unwrap_or(usize::MAX);
            let Some((scheduled, sent)) = first.get_mut(number) else { continue };
            let place: &mut Option<Time> = match stamp.by {
                StampedBy::Scheduler => scheduled,
                StampedBy::Driver => sent,
            };
            place.get_or_insert(stamp.at);
        }
        for (left, (scheduled, sent)) in left.iter().zip(first) {
            let (Some(left), Some(sent)) = (*left, sent) else { continue };
            check.stamped += 1;
            check.apart.push(left.since(sent).max(sent.since(left)));
            check.queued.extend(scheduled.map(|scheduled: Time| sent.since(scheduled)));
        }
        check
    }

    /// Adds those of another probe.
    pub(super) fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.stamped += other.stamped;
        self.refused = self.refused.take().or(other.refused);
        self.apart.extend(other.apart);
        self.queued.extend(other.queued);
    }

    /// How far a stamp of the driver and the time at which the packet was seen are apart at most,
    /// for this share of the stamped messages; `None` if there are none.
    #[must_use]
    pub fn apart(&self, share: f64) -> Option<Span> {
        quantile(&self.apart, share)
    }

    /// How long a packet was in the host's queueing discipline at most, for this share of them.
    #[must_use]
    pub fn queued(&self, share: f64) -> Option<Span> {
        quantile(&self.queued, share)
    }
}

impl std::fmt::Display for StampCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(refused) = &self.refused {
            return write!(f, "the kernel gives no stamps of sockets (SO_TIMESTAMPING): {refused}");
        }
        let micros = |span: Option<Span>| span.map_or(0.0, |span| span.as_nanos() as f64 / 1e3);
        write!(f, "{} of {} messages have a stamp of the socket", self.stamped, self.messages)?;
        if self.stamped == 0 {
            return Ok(());
        }
        let (half, most) = (micros(self.apart(0.5)), micros(self.apart(0.99)));
        write!(f, "; the packet was seen within {half:.1} us of it (median), {most:.1} us (99 %)")
    }
}

fn quantile(spans: &[Span], share: f64) -> Option<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::from_nanos(us * 1_000)
    }

    fn stamp(written: u64, by: StampedBy, us: u64) -> SocketStamp {
        SocketStamp { written, by, at: at(us) }
    }

    #[test]
    fn a_message_is_compared_by_the_first_stamp_of_its_own_end() {
        use StampedBy::{Driver, Scheduler};
        let left = [Some(at(110)), Some(at(210)), None, Some(at(400)), Some(at(520))];
        let stamps = [
            // Before the first write, and of a write that ends within a message.
            stamp(0, Driver, 10),
            stamp(1_500, Driver, 109),
            stamp(1_000, Scheduler, 100),
            stamp(1_000, Driver, 104),
            // Sent again.
            stamp(1_000, Driver, 900),
            // The packet was not seen.
            stamp(3_000, Driver, 300),
            // Of a message that was not sent.
            stamp(9_000, Driver, 300),
            // Seen before it was stamped, as clocks are.
            stamp(4_000, Driver, 401),
            // Only on its way to the driver.
            stamp(5_000, Scheduler, 500),
        ];
        let mut check = StampCheck::new(1_000, left.into_iter(), &stamps, None);
        assert_eq!((check.messages, check.stamped), (4, 2));
        let micros = Span::from_micros;
        assert_eq!((check.apart(0.5), check.apart(0.99)), (Some(micros(1)), Some(micros(6))));
        assert_eq!(check.queued(1.0), Some(micros(4)));
        let said = "2 of 4 messages have a stamp of the socket; the packet was seen within 1.0 us of it (median), \
                    6.0 us (99 %)";
        assert_eq!(check.to_string(), said);
        let others = [stamp(1_000, Scheduler, 0), stamp(1_000, Driver, 9)];
        check.add(StampCheck::new(1_000, [Some(at(29))].into_iter(), &others, None));
        assert_eq!((check.messages, check.stamped, &check.refused), (5, 3, &None));
        assert_eq!((check.apart(0.99), check.queued(1.0)), (Some(micros(20)), Some(micros(9))));
        // Who was refused once was refused.
        check.add(StampCheck::new(1_000, [Some(at(9))].into_iter(), &[], Some("EPERM".to_owned())));
        check.add(StampCheck::default());
        assert_eq!((check.messages, check.stamped, check.refused.as_deref()), (6, 3, Some("EPERM")));
        assert!(check.to_string().ends_with("(SO_TIMESTAMPING): EPERM"));
        assert_eq!((StampCheck::default().apart(0.5), StampCheck::default().queued(0.5)), (None, None));
    }
}
