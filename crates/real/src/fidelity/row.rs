//! How late each of a row of things was, as records have it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use flowstart_network::LateArrivals;
use flowstart_units::{Span, Time};

/// What was due within this time is told together.
const SLOT_US: u64 = 10_000;
/// What one step of a digit is.
const STEP_US: u64 = 2;
const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// How late each of a row was (ACKs, timers). In a file it is a text with a word for each 10 ms,
/// which has a digit for each that was due in them, in order: `0` to `9`, `a` to `z`, `A` to `Z`
/// for 0, 2, ... 122 us, and microseconds in brackets for more. `-` stands for 10 ms without any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Lateness(Vec<Vec<u64>>);

impl Lateness {
    /// These: when each was due, and how late it was.
    #[must_use]
    pub fn new(row: &[(Time, Span)]) -> Self {
        let mut slots: Vec<Vec<u64>> = Vec::new();
        let mut row: Vec<_> = row.iter().map(|(due, late)| (due.as_nanos() / 1_000, late.as_nanos())).collect();
        row.sort_by_key(|(due, _)| *due);
        for (due, late) in row {
            let slot = (due / SLOT_US) as usize;
            if slots.len() <= slot {
                slots.resize(slot + 1, Vec::new());
            }
            let us = (late + 500) / 1_000;
            let steps = (late + STEP_US * 500) / (STEP_US * 1_000);
            slots[slot].push(if steps < DIGITS.len() as u64 { steps * STEP_US } else { us });
        }
        Self(slots)
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For a simulation: those of 10 ms evenly over them, and nothing late where there was none.
    /// They count from when each was due, or so much later.
    #[must_use]
    pub fn arrivals(&self, later: Span) -> LateArrivals {
        let us = |us: u64| Time::ZERO + later + Span::from_micros(us);
        let row = self.0.iter().enumerate().flat_map(|(number, slot)| {
            let count = slot.len() as u64;
            let from = number as u64 * SLOT_US;
            let place = move |nth: u64| us(from + (2 * nth + 1) * SLOT_US / (2 * count));
            let none = slot.is_empty().then_some((us(from), Span::ZERO));
            (0..).zip(slot).map(move |(nth, late)| (place(nth), Span::from_micros(*late))).chain(none)
        });
        LateArrivals::new(row.collect())
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, slot) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str(" ")?;
            }
            if slot.is_empty() {
                f.write_str("-")?;
            }
            for late in slot {
                match DIGITS.get((late / STEP_US) as usize).filter(|_| late % STEP_US == 0) {
                    Some(digit) => write!(f, "{}", char::from(*digit))?,
                    None => write!(f, "({late})")?,
                }
            }
        }
        Ok(())
    }
}

impl FromStr for Lateness {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split_whitespace().map(slot).collect::<Result<_, _>>().map(Self)
    }
}

/// Most that anything is late by, in us: an hour.
const MOST_US: u64 = 3_600_000_000;

/// Reads a word.
fn slot(word: &str) -> Result<Vec<u64>, String> {
    let wrong = || {
        format!(
            "\"{word}\" does not say how late things were; each has a digit or letter, or (MICROSECONDS), and - stands for none"
        )
    };
    if word == "-" {
        return Ok(Vec::new());
    }
    let (mut list, mut rest) = (Vec::new(), word);
    while let Some(first) = rest.bytes().next() {
        if let Some(digit) = DIGITS.iter().position(|digit| *digit == first) {
            list.push(digit as u64 * STEP_US);
            rest = &rest[1..];
        } else {
            let (number, behind) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(wrong)?;
            list.push(number.parse().ok().filter(|late| *late <= MOST_US).ok_or_else(wrong)?);
            rest = behind;
        }
    }
    Ok(list)
}

impl From<Lateness> for String {
    fn from(row: Lateness) -> Self {
        row.to_string()
    }
}

impl TryFrom<String> for Lateness {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    #[test]
    fn what_is_written_is_read_and_is_late_in_its_time() {
        let row = [(100, 0), (400, 3), (9_000, 122), (9_500, 124), (29_999, 1_500), (25_000, 61)];
        let row = row.map(|(due, late)| (at(due), Span::from_micros(late)));
        let acks = Lateness::new(&row);
        assert_eq!(acks.to_string(), "02Z(124) - v(1500)");
        assert_eq!(acks.to_string().parse(), Ok(acks.clone()));
        assert_eq!(
            ("".parse(), Lateness::default().is_empty(), acks.is_empty()),
            (Ok(Lateness::default()), true, false)
        );
        // The four of the first 10 ms lie at 1.25, 3.75, 6.25 and 8.75 ms.
        let there = acks.arrivals(Span::ZERO);
        let late = [1_249, 1_250, 3_750, 7_000, 8_750, 19_000, 22_499, 22_500, 30_000];
        let late = late.map(|due| there.after(at(due)).since(at(due)).as_micros());
        assert_eq!(late, [0, 0, 4, 122, 124, 0, 0, 62, 1_500]);
        // Or an hour later.
        let there = acks.arrivals(Span::from_secs(3_600));
        let hour = |us: u64| at(3_600_000_000 + us);
        assert_eq!(there.after(hour(7_000)), hour(7_122));
        for wrong in ["+", "(", "(5", "5)", "(x)", "(-5)", "--", "0-", "é", "(99999999999999)"] {
            assert!(wrong.parse::<Lateness>().unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
