//! Lines on standard error: no more of a server than can be read, and one that tells how it goes.

use std::io::Write as _;

use flowstart_pages::transfer::{live, rate};
use flowstart_units::{Span, Time};

/// Lines that a server says in [`WHILE`] at most: whoever asks for much, in vain or not, fills
/// nobody's disk. (own choice: twenty a second)
const MOST_LINES: u64 = 200;
const WHILE: Span = Span::from_secs(10);

/// What a server says to whoever runs it, no more than can be read.
#[derive(Debug, Default)]
pub(super) struct Log {
    since: Time,
    said: u64,
}

impl Log {
    /// What is to be said of these lines, and of those that were left out before, if a while is
    /// over.
    pub(super) fn lines(&mut self, now: Time, lines: impl Iterator<Item = String>) -> Vec<String> {
        let mut all = Vec::new();
        if now.since(self.since) >= WHILE || now < self.since {
            all.extend(self.left_out());
            (self.since, self.said) = (now, 0);
        }
        for line in lines {
            self.said += 1;
            if self.said <= MOST_LINES {
                all.push(line);
            }
        }
        all
    }

    /// How many lines were left out of late, if any were.
    pub(super) fn left_out(&self) -> Option<String> {
        let left = self.said.saturating_sub(MOST_LINES);
        (left > 0).then(|| format!("... and {left} more lines within {WHILE}"))
    }
}

/// A line that tells how it goes, on a terminal.
pub(super) struct Live {
    shown: bool,
    last: (Time, u64),
}

impl Live {
    pub(super) fn new(shown: bool) -> Self {
        Self { shown, last: (Time::ZERO, 0) }
    }

    /// Twice a second: bytes, rate since the last time, RTT if one was measured.
    pub(super) fn show(&mut self, now: Time, bytes: u64, rtt: Option<Span>) {
        let since = now.since(self.last.0);
        if !self.shown || since < Span::from_millis(500) {
            return;
        }
        let rate = rate(bytes - self.last.1.min(bytes), since.as_nanos());
        self.last = (now, bytes);
        let line = live(bytes, rate, rtt);
        let _ = write!(std::io::stderr(), "\r{line:<60}");
    }

    /// Leaves no trace.
    pub(super) fn clear(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r{:<60}\r", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_lines_it_is_said_how_many_there_were() {
        let mut log = Log::default();
        let many = |count: u64| (0..count).map(|number| number.to_string());
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        assert_eq!(log.lines(at(1), many(150)).len(), 150);
        assert_eq!((log.lines(at(2), many(150)).len(), log.lines(at(9), many(9)).len()), (50, 0));
        assert_eq!(log.lines(at(11), many(2)), ["... and 109 more lines within 10 s", "0", "1"]);
        assert!(log.left_out().is_none() && log.lines(at(30), many(0)).is_empty());
    }
}
