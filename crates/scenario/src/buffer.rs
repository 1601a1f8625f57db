//! Buffer sizes as people think of them: in bandwidth-delay products, packets, bytes or time.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use flowstart_units::{Bytes, Number, ParseUnitError, Rate, Span};

use super::SpecError;

/// Size of a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// In bandwidth-delay products of the path, counted in packets and rounded up.
    Bdp(f64),
    /// In packets.
    Packets(u64),
    /// In bytes of IP packets.
    Bytes(Bytes),
    /// As the time it takes to send a full buffer; becomes bytes.
    Time(Span),
    /// Without limit.
    Unlimited,
}

const EXAMPLES: &str = "a buffer looks like \"1 BDP\", \"166 packets\", \"250 kB\", \"20 ms\" or \"unlimited\"";

impl FromStr for Buffer {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let not_a_buffer = || SpecError::new(format!("\"{text}\" is not a buffer; {EXAMPLES}"));
        let too_large =
            || SpecError::new(format!("\"{text}\" is larger than any buffer that can be simulated; {EXAMPLES}"));
        let zero = || {
            Err(SpecError::new(
                "a buffer of 0 has room for no packet, so the link would send nothing; the smallest is \"1 packet\"",
            ))
        };
        let (number, unit) = Number::split(text).ok_or_else(not_a_buffer)?;
        let buffer = match unit.trim() {
            // More than a million BDP is a slip of the pen.
            "BDP" | "bdp" | "Bdp" if number.to_f64() > 1e6 => return Err(too_large()),
            "BDP" | "bdp" | "Bdp" => Self::Bdp(number.to_f64()),
            "packets" | "packet" | "pkts" | "pkt" | "p" => Self::Packets(match number.to_whole() {
                Some(packets) => packets,
                None if number.to_f64() >= u64::MAX as f64 => return Err(too_large()),
                None => {
                    return Err(SpecError::new(format!("\"{text}\" is not a whole number of packets; {EXAMPLES}")));
                }
            }),
            "ns" | "us" | "µs" | "ms" | "s" => Self::Time(text.parse()?),
            "" if number.to_f64() == 0.0 => return zero(),
            "" => {
                return Err(SpecError::new(format!(
                    "\"{text}\" has no unit; did you mean \"{text} packets\"? {EXAMPLES}"
                )));
            }
            unit => Self::Bytes(text.parse().map_err(|error: ParseUnitError| {
                // Where it is not the unit, it is the number that cannot be.
                let is_size = format!("1 {unit}").parse::<Bytes>().is_ok();
                if is_size { error.into() } else { not_a_buffer() }
            })?),
        };
        match buffer {
            Self::Bdp(n) if n <= 0.0 => zero(),
            Self::Packets(0) | Self::Bytes(Bytes::ZERO) | Self::Time(Span::ZERO) => zero(),
            _ => Ok(buffer),
        }
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bdp(products) => write!(f, "{products} BDP"),
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Time(span) => span.fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl Buffer {
    /// The limits in packets and bytes for a link of this rate and a path of this RTT whose full
    /// packets have `packet_bytes` on the wire. A BDP is rounded up to whole packets; a time is at
    /// least one packet.
    #[must_use]
    pub fn limits(&self, rate: Rate, rtt: Span, packet_bytes: u64) -> (Option<u64>, Option<u64>) {
        match self {
            Self::Bdp(products) => {
                let bytes = rate.bytes_in(rtt).get() as f64 * products;
                // A hair below the next integer is rounding, not another packet.
                let packets = (bytes / packet_bytes.max(1) as f64 - 1e-9).ceil().max(1.0);
                (Some(packets as u64), None)
            }
            Self::Packets(packets) => (Some(*packets), None),
            Self::Bytes(bytes) => (None, Some(bytes.get())),
            Self::Time(span) => (None, Some(rate.bytes_in(*span).get().max(packet_bytes))),
            Self::Unlimited => (None, None),
        }
    }

    /// The same for a way back, whose packets are mostly ACKs: a BDP is of bytes, at least one full
    /// packet. As many ACKs as there are full packets in it would be a thirtieth of one.
    #[must_use]
    pub fn limits_back(&self, rate: Rate, rtt: Span, packet_bytes: u64) -> (Option<u64>, Option<u64>) {
        match self {
            Self::Bdp(products) => {
                let bytes = (rate.bytes_in(rtt).get() as f64 * products - 1e-6).ceil() as u64;
                (None, Some(bytes.max(packet_bytes)))
            }
            _ => self.limits(rate, rtt, packet_bytes),
        }
    }
}

impl<'de> Deserialize<'de> for Buffer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::short::text(deserializer, "a buffer such as \"1 BDP\" or \"166 packets\"")
    }
}

impl Serialize for Buffer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Buffer {
    fn schema_name() -> Cow<'static, str> {
        "Buffer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": EXAMPLES, "examples": ["1 BDP", "166 packets", "250 kB", "20 ms"] })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_read_in_every_unit_and_print_what_reads_back() {
        for text in ["1 BDP", "0.25 BDP", "166 packets", "250 kB", "20 ms", "unlimited"] {
            let buffer: Buffer = text.parse().unwrap();
            assert_eq!(buffer.to_string().parse(), Ok(buffer), "{text}");
        }
        assert_eq!("1packet".parse(), Ok(Buffer::Packets(1)));
    }

    /// "1e0 BDP" was no buffer, though "1e0 kB" was one.
    #[test]
    fn numbers_read_as_those_of_every_quantity() {
        for (text, buffer) in [
            ("1e0 BDP", Buffer::Bdp(1.0)),
            ("2.5e-1 BDP", Buffer::Bdp(0.25)),
            ("1_000 BDP", Buffer::Bdp(1000.0)),
            ("1e2 packets", Buffer::Packets(100)),
            ("1.5e1 packets", Buffer::Packets(15)),
            ("1e0 kB", Buffer::Bytes(Bytes::new(1000))),
            ("1e1 ms", Buffer::Time(Span::from_millis(10))),
        ] {
            assert_eq!(text.parse(), Ok(buffer), "{text}");
        }
        for (text, part) in [
            ("0.5 packets", "is not a whole number of packets"),
            ("1e-1 packets", "is not a whole number of packets"),
            ("1e30 packets", "is larger than any buffer"),
            ("1e18 BDP", "is larger than any buffer"),
            ("1e999 BDP", "is larger than any buffer"),
            ("0.5 B", "is less than a byte"),
            ("1500.5 B", "is no whole number of bytes; did you mean \"1501 B\"?"),
            ("1e0", "has no unit; did you mean \"1e0 packets\"?"),
            ("1e1 elephants", "is not a buffer"),
            ("BDP", "is not a buffer"),
        ] {
            let message = text.parse::<Buffer>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn nothing_zero_and_nonsense_are_refused_with_what_would_be_right() {
        for text in ["0", "0e0", "0 packets", "0 BDP", "0 B", "0 ms"] {
            assert!(text.parse::<Buffer>().unwrap_err().to_string().contains("smallest is \"1 packet\""), "{text}");
        }
        assert!("100".parse::<Buffer>().unwrap_err().to_string().contains("did you mean \"100 packets\"?"));
        assert!("-3 packets".parse::<Buffer>().is_err());
        assert!("1e18 BDP".parse::<Buffer>().is_err());
        assert!("9999999999 BDP".parse::<Buffer>().is_err());
    }

    #[test]
    fn a_bdp_of_100_mbit_and_20_ms_is_167_packets_of_1500_bytes_and_never_less_than_one() {
        let (rate, rtt) = (Rate::from_mbps(100), Span::from_millis(20));
        assert_eq!(Buffer::Bdp(1.0).limits(rate, rtt, 1500), (Some(167), None));
        assert_eq!(Buffer::Bdp(0.000_1).limits(rate, rtt, 1500), (Some(1), None));
        assert_eq!(Buffer::Bdp(0.5).limits_back(rate, rtt, 1500), (None, Some(125_000)));
        assert_eq!(Buffer::Bdp(0.000_1).limits_back(rate, rtt, 1500), (None, Some(1500)));
        assert_eq!(Buffer::Packets(7).limits_back(rate, rtt, 1500), (Some(7), None));
        assert_eq!(Buffer::Time(Span::from_millis(20)).limits(rate, rtt, 1500), (None, Some(250_000)));
    }
}
