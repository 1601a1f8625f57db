//! A receiver that tells when the messages of an application that is paced arrived, and when it has
//! read them.

use std::collections::BTreeMap;
use std::ops::Range;

use flowstart_units::{Span, Time};

use crate::message::{LEAST_MESSAGE, Message, Readings};

/// Time from the first reading to the telling of it: what is told is as exact later, and every
/// telling is a packet on the way back and an ACK on the way there.
const EVERY: Span = Span::from_millis(50);
/// Readings that are told at once: two times of 20 digits each fit into a message of the protocol.
const AT_ONCE: usize = 256;
/// Readings that wait at most, while the sender does not take what it asked for.
const MOST: usize = 1 << 17;

/// What was read and is not told yet.
#[derive(Debug)]
pub(crate) struct Telling {
    /// Bytes of a message.
    message: u64,
    /// Messages whose reading was told.
    told: u64,
    /// When those after them were read, and when they had arrived.
    read: Vec<(Time, Time)>,
    /// When those arrived that are not read, by their numbers; no more than a sender may have under
    /// way.
    arrived: BTreeMap<u64, Time>,
    /// The other end wants to know when they arrived.
    waits: bool,
    /// What the stream did not take yet of what was told last.
    left: Vec<u8>,
}

impl Telling {
    /// Of messages of so many bytes, whose arrivals are told, too, or not.
    pub(crate) fn new(message: u64, waits: bool) -> Self {
        let message = message.max(LEAST_MESSAGE);
        Self { message, told: 0, read: Vec::new(), arrived: BTreeMap::new(), waits, left: Vec::new() }
    }

    /// These bytes arrived with a datagram that the system took in at this time.
    pub(crate) fn arrived(&mut self, at: Time, bytes: &Range<u64>) {
        let known = self.told + self.read.len() as u64;
        for message in (bytes.start / self.message..bytes.end / self.message).filter(|message| *message >= known) {
            self.arrived.entry(message).or_insert(at);
        }
    }

    /// So many bytes have been read by now.
    pub(crate) fn note(&mut self, now: Time, bytes: u64) {
        let known = self.told + self.read.len() as u64;
        for message in known..bytes / self.message {
            let arrived = self.arrived.remove(&message).unwrap_or(now);
            self.read.push((now, arrived.min(now)));
        }
    }

    /// When there is something to be told at the latest.
    pub(crate) fn due(&self) -> Time {
        // What the stream does not take now goes on when the sender allows more.
        if self.is_behind() {
            return Time::NEVER;
        }
        self.read.first().map_or(Time::NEVER, |(read, _)| *read + EVERY)
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
            let read: Vec<(Time, Time)> = self.read.drain(..self.read.len().min(AT_ONCE)).collect();
            let ages: Vec<u64> = read.iter().map(|(read, _)| now.since(*read).as_nanos()).collect();
            let waits = read.iter().filter(|_| self.waits).map(|(read, arrived)| read.since(*arrived).as_nanos());
            let (first, told, waits) = (self.told, now.as_nanos(), waits.collect());
            self.told += ages.len() as u64;
            self.left = Message::Readings(Readings { first, told, ages, waits }).encode();
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
        let mut telling = Telling::new(1000, true);
        telling.note(at(10), 999);
        assert_eq!(telling.due(), Time::NEVER);
        // The third arrived whole before the second.
        telling.arrived(at(12), &(2000..3000));
        telling.arrived(at(18), &(999..1500));
        telling.arrived(at(19), &(1500..2100));
        telling.arrived(at(20), &(1500..2100));
        telling.note(at(20), 2100);
        telling.note(at(40), 2900);
        telling.note(at(45), 3000);
        assert_eq!(telling.due(), at(70));
        assert!(heard(&mut telling, at(69), false, usize::MAX).is_empty());
        let ms = |ms: u64| ms * 1_000_000;
        let told = heard(&mut telling, at(71), false, usize::MAX);
        assert_eq!(
            told,
            [Readings {
                first: 0,
                told: ms(71),
                ages: vec![ms(51), ms(51), ms(26)],
                waits: vec![ms(2), ms(1), ms(33)]
            }]
        );
        telling.note(at(80), 4000);
        let told = heard(&mut telling, at(81), true, usize::MAX);
        assert_eq!(told, [Readings { first: 3, told: ms(81), ages: vec![ms(1)], waits: vec![0] }]);
        assert!(heard(&mut telling, at(999), true, usize::MAX).is_empty());
        // Ends of before do not know that word.
        let mut telling = Telling::new(1000, false);
        telling.note(at(80), 1000);
        assert_eq!(heard(&mut telling, at(81), true, usize::MAX)[0].waits, [0; 0]);
    }

    #[test]
    fn much_is_told_in_messages_that_fit_whatever_the_stream_takes() {
        let mut telling = Telling::new(LEAST_MESSAGE, true);
        for message in 0..2000 {
            telling.arrived(at(0), &(message * LEAST_MESSAGE..(message + 1) * LEAST_MESSAGE));
        }
        telling.note(at(1_800_000), 2000 * LEAST_MESSAGE);
        // An hour later every age, and every wait, has thirteen digits.
        let later = at(3_600_000);
        let told = heard(&mut telling, later, false, usize::MAX);
        assert_eq!(told.iter().map(|readings| readings.ages.len()).sum::<usize>(), 2000);
        assert!(told.iter().all(|readings| Message::Readings(readings.clone()).encode().len() <= MOST_BYTES));
        telling.note(at(1_800_000), 2003 * LEAST_MESSAGE);
        assert!(heard(&mut telling, later, true, 7).is_empty() && telling.is_behind());
        assert_eq!(telling.due(), Time::NEVER, "nothing to be done until the sender allows more");
        telling.note(later, (2003 + MOST as u64 + 1) * LEAST_MESSAGE);
        assert!(telling.is_too_much());
    }
}
