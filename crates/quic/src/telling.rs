//! A receiver that tells when it has read the messages of an application that is paced.

use flowstart_units::{Span, Time};

use crate::message::{Message, Readings};

/// Bytes at least of a message whose reading is told: shorter ones would have more told of them
/// than they are worth.
pub(crate) const LEAST_MESSAGE: u64 = 512;
/// Time from the first reading to the telling of it: what is told is as exact later, and every
/// telling is a packet on the way back and an ACK on the way there.
const EVERY: Span = Span::from_millis(50);
/// Readings that are told at once: ten digits each and more fit into a message of the protocol.
const AT_ONCE: usize = 512;
/// Readings that wait at most, while the sender does not take what it asked for.
const MOST: usize = 1 << 17;

/// What was read and is not told yet.
#[derive(Debug)]
pub(crate) struct Telling {
    /// Bytes of a message.
    message: u64,
    /// Messages whose reading was told.
    told: u64,
    /// When those after them were read.
    read: Vec<Time>,
    /// What the stream did not take yet of what was told last.
    left: Vec<u8>,
}

impl Telling {
    /// Of messages of so many bytes.
    pub(crate) fn new(message: u64) -> Self {
        Self { message: message.max(LEAST_MESSAGE), told: 0, read: Vec::new(), left: Vec::new() }
    }

    /// So many bytes have been read by now.
    pub(crate) fn note(&mut self, now: Time, bytes: u64) {
        let known = self.told + self.read.len() as u64;
        for _ in known..bytes / self.message {
            self.read.push(now);
        }
    }

    /// When there is something to be told at the latest.
    pub(crate) fn due(&self) -> Time {
        // What the stream does not take now goes on when the sender allows more.
        if self.is_behind() {
            return Time::NEVER;
        }
        self.read.first().map_or(Time::NEVER, |read| *read + EVERY)
    }

    /// True while the stream has not taken all that was told.
    pub(crate) fn is_behind(&self) -> bool {
        !self.left.is_empty()
    }

    /// True if the sender leaves lying more than anybody keeps for it.
    pub(crate) fn is_too_much(&self) -> bool {
        self.read.len() > MOST
    }

    /// Tells what is due, or `all`, to a stream that says how many bytes it took.
    pub(crate) fn tell(&mut self, now: Time, all: bool, write: &mut dyn FnMut(&[u8]) -> usize) {
        loop {
            if self.is_behind() {
                let took = write(&self.left).min(self.left.len());
                self.left.drain(..took);
                if self.is_behind() {
                    return;
                }
            }
            let due = all || self.read.len() >= AT_ONCE || self.due() <= now;
            if !due || self.read.is_empty() {
                return;
            }
            let read = self.read.drain(..self.read.len().min(AT_ONCE));
            let ages: Vec<u64> = read.map(|read| now.since(read).as_nanos()).collect();
            let (first, told) = (self.told, now.as_nanos());
            self.told += ages.len() as u64;
            self.left = Message::Readings(Readings { first, told, ages }).encode();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Decoder, MOST_BYTES};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// What a stream that takes so many bytes at a time was told.
    fn heard(telling: &mut Telling, now: Time, all: bool, most: usize) -> Vec<Readings> {
        let mut decoder = Decoder::default();
        telling.tell(now, all, &mut |bytes| {
            let took = bytes.len().min(most);
            decoder.push(&bytes[..took]);
            took
        });
        std::iter::from_fn(|| match decoder.message().unwrap()? {
            Message::Readings(readings) => Some(readings),
            other => panic!("{other:?}"),
        })
        .collect()
    }

    #[test]
    fn every_message_is_told_once_when_it_is_due_with_its_age() {
        let mut telling = Telling::new(1000);
        telling.note(at(10), 999);
        assert_eq!(telling.due(), Time::NEVER);
        telling.note(at(20), 2100);
        telling.note(at(40), 2900);
        telling.note(at(45), 3000);
        assert_eq!(telling.due(), at(70));
        assert!(heard(&mut telling, at(69), false, usize::MAX).is_empty());
        let ms = |ms: u64| ms * 1_000_000;
        let told = heard(&mut telling, at(71), false, usize::MAX);
        assert_eq!(told, [Readings { first: 0, told: ms(71), ages: vec![ms(51), ms(51), ms(26)] }]);
        telling.note(at(80), 4000);
        let told = heard(&mut telling, at(81), true, usize::MAX);
        assert_eq!(told, [Readings { first: 3, told: ms(81), ages: vec![ms(1)] }]);
        assert!(heard(&mut telling, at(999), true, usize::MAX).is_empty());
    }

    #[test]
    fn much_is_told_in_messages_that_fit_whatever_the_stream_takes() {
        let mut telling = Telling::new(LEAST_MESSAGE);
        telling.note(at(1), 2000 * LEAST_MESSAGE);
        // An hour later every age has thirteen digits.
        let later = at(3_600_000);
        let told = heard(&mut telling, later, false, usize::MAX);
        assert_eq!(told.iter().map(|readings| readings.ages.len()).sum::<usize>(), 2000);
        assert!(told.iter().all(|readings| Message::Readings(readings.clone()).encode().len() <= MOST_BYTES));
        telling.note(at(1), 2003 * LEAST_MESSAGE);
        assert!(heard(&mut telling, later, true, 7).is_empty() && telling.is_behind());
        assert_eq!(telling.due(), Time::NEVER, "nothing to be done until the sender allows more");
        telling.note(later, (2003 + MOST as u64 + 1) * LEAST_MESSAGE);
        assert!(telling.is_too_much());
    }
}
