//! Printing quantities in the largest unit that keeps them exact and short.

use alloc::format;

use core::fmt;

use crate::{Bytes, Rate, Span, Time};

/// Writes `value` in the largest of `units` (size, name; ascending) that is not larger than it,
/// exactly, without trailing zeros.
fn write(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let (size, name) = units.iter().rev().find(|(size, _)| value >= *size).unwrap_or(&units[0]);
    let whole = value / size;
    let rest = value % size;
    let text = if rest == 0 {
        format!("{whole} {name}")
    } else {
        let width = size.ilog10() as usize;
        let decimals = format!("{rest:0width$}");
        format!("{whole}.{} {name}", decimals.trim_end_matches('0'))
    };
    f.pad(&text)
}

const TIME_UNITS: [(u64, &str); 4] = [(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")];

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.as_nanos(), &TIME_UNITS)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.as_nanos(), &TIME_UNITS)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.pad("unlimited");
        }
        write(f, self.as_bps(), &[(1, "bit/s"), (1_000, "kbit/s"), (1_000_000, "Mbit/s"), (1_000_000_000, "Gbit/s")])
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.get(), &[(1, "B"), (1_000, "kB"), (1_000_000, "MB"), (1_000_000_000, "GB")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_exactly_and_short() {
        assert_eq!(Span::from_micros(1500).to_string(), "1.5 ms");
        assert_eq!(Span::from_nanos(1_000_000_001).to_string(), "1.000000001 s");
        assert_eq!(Span::ZERO.to_string(), "0 ns");
        assert_eq!(Rate::from_mbps(100).to_string(), "100 Mbit/s");
        assert_eq!(Rate::UNLIMITED.to_string(), "unlimited");
        assert_eq!(Bytes::new(14_480).to_string(), "14.48 kB");
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::NEVER + Span::from_nanos(1), Time::NEVER);
        assert_eq!(Time::ZERO - Span::from_nanos(1), Time::ZERO);
        assert_eq!(Time::ZERO.since(Time::NEVER), Span::ZERO);
        assert_eq!(Span::MAX * 2, Span::MAX);
        assert_eq!(Span::from_nanos(1) - Span::from_nanos(2), Span::ZERO);
        assert_eq!(Span::from_nanos(1) / 0, Span::MAX);
        assert_eq!(Bytes::MAX + Bytes::new(1), Bytes::MAX);
        assert_eq!(Bytes::ZERO - Bytes::new(1), Bytes::ZERO);
        assert_eq!(Rate::from_bps(1).transmission_time(Bytes::MAX), Span::MAX);
        assert_eq!(Rate::ZERO.transmission_time(Bytes::new(1)), Span::MAX);
    }

    #[test]
    fn transmission_time_of_a_1502_byte_packet_at_100_mbit_is_120160_ns() {
        assert_eq!(Rate::from_mbps(100).transmission_time(Bytes::new(1502)), Span::from_nanos(120_160));
        assert_eq!(Rate::from_mbps(100).bytes_in(Span::from_nanos(120_160)), Bytes::new(1502));
        assert_eq!(Rate::of(Bytes::new(1502), Span::from_nanos(120_160)), Rate::from_mbps(100));
    }
}
