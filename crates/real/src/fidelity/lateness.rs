//! What a run of the kernel had, for the simulated path.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use flowstart_network::Standstills;
use flowstart_units::{Span, Time};

use super::Lateness;

/// Stretches of time in which a host waited for packets that were due, in microseconds, as records
/// have them that were made before [`Lateness`]. In a file they are a text: pairs of the time since
/// the beginning of the stretch before and the length, such as `1500+300 320+45`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Waits(Vec<(u64, u64)>);

impl Waits {
    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stretches.
    #[must_use]
    pub fn standstills(&self) -> Standstills {
        let mut from = Time::ZERO;
        let stretches = self.0.iter().map(|(gap, length)| {
            from += Span::from_micros(*gap);
            (from, from + Span::from_micros(*length))
        });
        Standstills::new(stretches.collect())
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (gap, length)) in self.0.iter().enumerate() {
            write!(f, "{}{gap}+{length}", if number == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl FromStr for Waits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = |word: &str| {
            let (gap, length) = word.split_once('+')?;
            Some((gap.parse().ok()?, length.parse().ok()?))
        };
        let read = |word: &str| {
            pair(word).ok_or_else(|| format!("\"{word}\" is no stretch of waiting; one is GAP+LENGTH in microseconds"))
        };
        text.split_whitespace().map(read).collect::<Result<_, _>>().map(Self)
    }
}

impl From<Waits> for String {
    fn from(waits: Waits) -> Self {
        waits.to_string()
    }
}

impl TryFrom<String> for Waits {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// What a run of the kernel over the emulator had that the path does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disturbance {
    /// Which run it was, counted from 0: what it drew at random its simulation draws, too. `None`
    /// stands for its place among the runs that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// By how much the smallest round-trip time was longer than the simulator's, in us: what hosts
    /// and emulator always take.
    pub excess_us: f64,
    /// How late ACKs were with the sender.
    #[serde(default, skip_serializing_if = "Lateness::is_empty")]
    pub acks: Lateness,
    /// How late the sender's timers were.
    #[serde(default, skip_serializing_if = "Lateness::is_empty")]
    pub timers: Lateness,
    /// When the receiver waited for data that was due; in older records.
    #[serde(default, skip_serializing_if = "Waits::is_empty")]
    pub receiver: Waits,
    /// When the sender waited for ACKs that were due; in older records.
    #[serde(default, skip_serializing_if = "Waits::is_empty")]
    pub sender: Waits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_waiting_are_read_as_they_are_written() {
        let us = |us: u64| Time::ZERO + Span::from_micros(us);
        let still = Standstills::new(vec![(us(1_500), us(1_800)), (us(1_820), us(1_865))]);
        let waits: Waits = "1500+300 320+45".parse().unwrap();
        assert_eq!(waits.to_string(), "1500+300 320+45");
        assert_eq!((waits.standstills(), waits.is_empty()), (still, false));
        assert_eq!("".parse(), Ok(Waits::default()));
        for wrong in ["5", "5+", "+5", "-1+5", "a+b", "1.5+2"] {
            assert!(wrong.parse::<Waits>().unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
