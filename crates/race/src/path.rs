//! The queues of a race in words: marking thresholds and queues as people write them.

use std::fmt;
use std::str::FromStr;

use flowstart_network::{DropTailConfig, QueueConfig, StepMarkConfig, Threshold};
use flowstart_units::{Bytes, Rate, Span};

use super::RaceError;
use flowstart_scenario::{Buffer, QueueSpec};

/// Above what a queue marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkThreshold {
    /// Packets that waited longer, at dequeue.
    Sojourn(Span),
    /// Arrivals that make the queue longer than this many packets.
    Packets(u64),
    /// Arrivals that make the queue longer than this.
    Bytes(Bytes),
}

impl MarkThreshold {
    fn threshold(self) -> Threshold {
        match self {
            Self::Sojourn(span) => Threshold::Sojourn(span),
            Self::Packets(packets) => Threshold::Packets(packets),
            Self::Bytes(bytes) => Threshold::Bytes(bytes.get()),
        }
    }
}

impl FromStr for MarkThreshold {
    type Err = RaceError;

    /// Reads "1 ms", "20 packets" or "30 kB".
    fn from_str(text: &str) -> Result<Self, RaceError> {
        let trimmed = text.trim();
        let wrong = |why: &str| {
            RaceError::new(format!(
                "marking threshold \"{trimmed}\" {why}; a threshold looks like \"1 ms\", \"20 packets\" or \"30 kB\""
            ))
        };
        if trimmed.starts_with('-') {
            Err(wrong("is negative"))
        } else if let Some(number) = without_unit(trimmed, &["packets", "packet", "pkts", "pkt"]) {
            number.parse().map(Self::Packets).map_err(|_| wrong("is not a whole number of packets"))
        } else if trimmed.parse::<f64>().is_ok_and(|number| number != 0.0) {
            Err(wrong("has no unit"))
        } else if let Ok(span) = trimmed.parse() {
            Ok(Self::Sojourn(span))
        } else {
            trimmed.parse().map(Self::Bytes).map_err(|_| wrong("is neither a time nor a length"))
        }
    }
}

impl fmt::Display for MarkThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sojourn(span) => write!(f, "{span}"),
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}

/// `text` without a trailing unit (of any case), if it has one of these.
fn without_unit<'a>(text: &'a str, units: &[&str]) -> Option<&'a str> {
    units.iter().find_map(|unit| {
        let split = text.len().checked_sub(unit.len())?;
        let tail = text.get(split..)?;
        tail.eq_ignore_ascii_case(unit).then(|| text[..split].trim_end())
    })
}

/// A queue as a contestant names it; what it leaves open comes from the race.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueChoice {
    /// Drop-tail with this buffer, or the race's.
    DropTail(Option<Buffer>),
    /// Step marking at this threshold, or the race's.
    StepMark(Option<MarkThreshold>),
    /// Any other discipline, as a scenario file names it, with its own limit or with this one.
    Other(QueueSpec, Option<Buffer>),
}

/// What a marking queue holds at least, in packets: the usual length of a Linux device queue.
/// Packets beyond are dropped.
const MARKING_QUEUE_PACKETS: u64 = 1000;

impl QueueChoice {
    /// The choice with everything it leaves open filled in.
    #[must_use]
    pub fn resolved(self, buffer: Buffer, mark: MarkThreshold) -> Self {
        match self {
            Self::DropTail(own) => Self::DropTail(Some(own.unwrap_or(buffer))),
            Self::StepMark(own) => Self::StepMark(Some(own.unwrap_or(mark))),
            other => other,
        }
    }

    /// The queue. A step-marking queue holds 1000 packets, or the race's buffer if that is larger.
    #[must_use]
    pub fn config(self, buffer: Buffer, mark: MarkThreshold, capacity: Rate, rtt: Span, packet: u64) -> QueueConfig {
        let limit = |buffer: Buffer| {
            let (packets, bytes) = buffer.limits(capacity, rtt, packet);
            DropTailConfig { packets, bytes }
        };
        match self {
            Self::DropTail(own) => QueueConfig::DropTail(limit(own.unwrap_or(buffer))),
            Self::StepMark(own) => {
                let mut limit = limit(buffer);
                if let Some(packets) = &mut limit.packets {
                    *packets = (*packets).max(MARKING_QUEUE_PACKETS);
                }
                if let Some(bytes) = &mut limit.bytes {
                    *bytes = (*bytes).max(MARKING_QUEUE_PACKETS.saturating_mul(packet));
                }
                let threshold = own.unwrap_or(mark).threshold();
                QueueConfig::StepMark(StepMarkConfig { threshold, limit, ..StepMarkConfig::default() })
            }
            Self::Other(spec, None) => {
                let limit = limit(buffer);
                spec.with_buffer(limit.packets, limit.bytes)
            }
            Self::Other(spec, Some(own)) => {
                let limit = limit(own);
                spec.0.with_limit(limit.packets, limit.bytes, packet)
            }
        }
    }
}

/// A discipline by its name, perhaps with its limit behind it.
fn other(text: &str) -> Result<QueueChoice, RaceError> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let spec: QueueSpec = name.parse().map_err(RaceError::new)?;
    let limit = match rest.trim() {
        "" => None,
        rest => Some(rest.parse::<Buffer>().map_err(RaceError::new)?),
    };
    if limit == Some(Buffer::Unlimited) {
        let name = spec.0.name();
        return Err(RaceError::new(format!("{name} always has a limit; it looks like \"{name} 1000 packets\"")));
    }
    Ok(QueueChoice::Other(spec, limit))
}

impl FromStr for QueueChoice {
    type Err = RaceError;

    /// Reads "drop_tail", "drop_tail 1 BDP", "step_mark", "step_mark 1 ms", and the name of any
    /// other discipline with or without its limit, such as "fair_queuing" or "codel 500 packets".
    fn from_str(text: &str) -> Result<Self, RaceError> {
        let trimmed = text.trim();
        let (name, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
        let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
        match name.to_lowercase().replace('-', "_").as_str() {
            "drop_tail" | "droptail" | "fifo" | "pfifo" | "bfifo" => {
                rest.map(|rest| rest.parse().map_err(RaceError::new)).transpose().map(Self::DropTail)
            }
            "step_mark" | "step" | "stepmark" | "mark" => rest.map(str::parse).transpose().map(Self::StepMark),
            "fair_queueing" => other(&format!("fair_queuing {}", rest.unwrap_or_default())),
            _ => other(trimmed),
        }
    }
}

impl fmt::Display for QueueChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropTail(Some(buffer)) => write!(f, "drop_tail {buffer}"),
            Self::DropTail(None) => f.write_str("drop_tail"),
            Self::StepMark(Some(mark)) => write!(f, "step_mark {mark}"),
            Self::StepMark(None) => f.write_str("step_mark"),
            Self::Other(spec, Some(limit)) => write!(f, "{} {limit}", spec.0.name()),
            Self::Other(spec, None) => f.write_str(spec.0.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_network::Limit;

    use super::*;

    #[test]
    fn queues_read_with_and_without_their_argument() {
        assert_eq!("drop_tail".parse(), Ok(QueueChoice::DropTail(None)));
        assert_eq!("droptail 2 BDP".parse(), Ok(QueueChoice::DropTail(Some(Buffer::Bdp(2.0)))));
        let ms = MarkThreshold::Sojourn(Span::from_millis(1));
        assert_eq!("step_mark 1ms".parse(), Ok(QueueChoice::StepMark(Some(ms))));
        assert_eq!("step-mark 20 packets".parse(), Ok(QueueChoice::StepMark(Some(MarkThreshold::Packets(20)))));
        assert_eq!("fair_queuing".parse::<QueueChoice>().unwrap().to_string(), "fair_queuing");
    }

    #[test]
    fn a_contestant_may_have_any_queue_and_say_how_much_it_holds() {
        let limit_of = |text: &str| {
            let choice: QueueChoice = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(choice.to_string(), text);
            let (buffer, mark) = (Buffer::Bdp(1.0), MarkThreshold::Packets(20));
            let mut config = choice.config(buffer, mark, Rate::from_mbps(12), Span::from_millis(100), 1500);
            assert_eq!(config.validate(), Ok(()), "{text}");
            match config.limit() {
                Limit::Packets(packets) => *packets,
                Limit::Bytes(bytes) => *bytes,
                Limit::Either(limit) => limit.packets.unwrap_or(0),
            }
        };
        for name in QueueConfig::NAMES {
            let usual = limit_of(name);
            assert_ne!(usual, 0, "{name}");
            if name != "step_mark" {
                // 1.2 Mbit of buffer.
                let unit = if ["sch_red", "host_fairness"].contains(&name) { 1500 } else { 1 };
                for text in ["300 packets", "3 BDP"] {
                    assert_eq!(limit_of(&format!("{name} {text}")), 300 * unit, "{name} {text}");
                }
            }
        }
        assert_eq!(limit_of("codel 450 kB"), 300, "in whole packets");
        assert_eq!(limit_of("sch_red 450 kB"), 450_000);
        let unlimited = "codel unlimited".parse::<QueueChoice>().unwrap_err().to_string();
        assert!(unlimited.contains("always has a limit"), "{unlimited}");
    }

    #[test]
    fn an_unknown_queue_is_answered_with_the_nearest_one() {
        let message = "step_mrak 1 ms".parse::<QueueChoice>().unwrap_err().to_string();
        assert!(message.contains("did you mean \"step_mark\"?"), "{message}");
        assert!("fair_queuing 3".parse::<QueueChoice>().unwrap_err().to_string().contains("has no unit"));
        assert!("step_mark 1".parse::<QueueChoice>().unwrap_err().to_string().contains("has no unit"));
    }

    proptest::proptest! {
        #[test]
        fn parsing_is_total(text in "\\PC{0,24}") {
            let _ = text.parse::<MarkThreshold>();
            let _ = text.parse::<QueueChoice>();
        }
    }
}
