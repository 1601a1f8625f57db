//! A pacing rate derived from the window, as Linux does with `sk_pacing_rate`.

use flowstart_units::{Bytes, Rate, Span};

use crate::{InvalidConfig, Window};

/// Pacing rate in percent of a window per smoothed RTT while the window is below half its threshold
/// (`tcp_pacing_ss_ratio`).
const START_PERCENT: u32 = 200;
/// The same otherwise (`tcp_pacing_ca_ratio`).
const AVOIDANCE_PERCENT: u32 = 120;
/// Share of its gap in percent that a late packet gets back at most (`tcp_update_skb_after_send`).
const CATCH_UP_PERCENT: u32 = 50;
/// Packets at the start of a connection that are not paced (`tcp_update_skb_after_send`).
const UNPACED_PACKETS: u64 = 10;

/// Whether packets leave as the window opens or spaced in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Packets leave as soon as the window allows (the ACK clock). What Linux does with CUBIC and
    /// Reno unless the fq queue or `SO_MAX_PACING_RATE` asks for pacing.
    #[default]
    Off,
    /// rate = percent * MSS * max(cwnd, packets out) / srtt (Linux `tcp_update_pacing_rate`).
    Window {
        /// Percentage below half the threshold; default 200 (`tcp_pacing_ss_ratio`).
        start_percent: u32,
        /// Percentage otherwise; default 120 (`tcp_pacing_ca_ratio`).
        avoidance_percent: u32,
        /// Packets at the start of a connection that are not paced; default 10
        /// (`tcp_update_skb_after_send`).
        unpaced_packets: u64,
        /// Share of the next gap in percent that is left out at most if a packet left late, 0 ..=
        /// 100; default 50 (`tcp_update_skb_after_send`).
        catch_up_percent: u32,
    },
}

impl Pacing {
    /// Pacing with Linux's constants.
    pub const LINUX: Self = Self::Window {
        start_percent: START_PERCENT,
        avoidance_percent: AVOIDANCE_PERCENT,
        unpaced_packets: UNPACED_PACKETS,
        catch_up_percent: CATCH_UP_PERCENT,
    };

    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        match self {
            Self::Off => Ok(()),
            Self::Window { start_percent, avoidance_percent, catch_up_percent, .. } => {
                InvalidConfig::unless(*catch_up_percent <= 100, "catch_up_percent", "at most 100")?;
                InvalidConfig::unless(*start_percent >= 1, "start_percent", "at least 1")?;
                InvalidConfig::unless(*avoidance_percent >= 1, "avoidance_percent", "at least 1")
            }
        }
    }

    /// The part of `gap` that a late packet may get back.
    #[inline]
    #[must_use]
    pub fn catch_up(&self, gap: Span) -> Span {
        match *self {
            Self::Window { catch_up_percent, .. } if catch_up_percent != CATCH_UP_PERCENT => {
                gap.mul_ratio(u64::from(catch_up_percent.min(100)), 100)
            }
            _ => gap / 2,
        }
    }
}

/// The pacing rate as Linux computes it after every ACK, also for flows it does not pace; `None`
/// while no RTT is known.
#[must_use]
pub fn stack_pacing_rate(mss: u32, window: &Window, packets_out: u32, srtt: Span) -> Option<Rate> {
    let percent = [START_PERCENT, AVOIDANCE_PERCENT];
    (!srtt.is_zero()).then(|| WindowRate::new(percent, window, packets_out, srtt).rate(mss))
}

/// A rate as the quotient it comes from; dividing is left to whoever needs the result.
#[derive(Clone, Copy, Debug)]
pub struct WindowRate {
    percent: u32,
    packets: u32,
    srtt: Span,
}

impl WindowRate {
    /// The first percentage of a window per `srtt` while the window is below half its threshold,
    /// then the second. More packets out than the window has count as the window.
    #[inline]
    #[must_use]
    pub fn new(percent: [u32; 2], window: &Window, packets_out: u32, srtt: Span) -> Self {
        let early = window.cwnd < window.ssthresh / 2;
        Self { percent: percent[usize::from(!early)], packets: window.cwnd.max(packets_out), srtt }
    }

    /// In payload, with segments of `mss` bytes.
    #[must_use]
    pub fn rate(&self, mss: u32) -> Rate {
        let bytes = Bytes::new(u64::from(mss) * u64::from(self.packets));
        Rate::of(bytes, self.srtt).mul_ratio(u64::from(self.percent), 100)
    }

    /// Time that `bytes` take at this rate; [`Span::MAX`] at rate zero.
    #[inline]
    #[must_use]
    pub fn gap(&self, mss: u32, bytes: u32) -> Span {
        let window = u64::from(mss) * u64::from(self.packets);
        match (window.checked_mul(u64::from(self.percent)), u64::from(bytes).checked_mul(100)) {
            (Some(per_srtt), Some(part)) => match self.srtt.as_nanos().checked_mul(part) {
                Some(product) => Span::from_nanos(product.checked_div(per_srtt).unwrap_or(u64::MAX)),
                None => self.srtt.mul_ratio(part, per_srtt),
            },
            _ => Span::ZERO,
        }
    }
}

#[cfg(feature = "serde")]
mod serialize {
    use alloc::borrow::Cow;
    use core::fmt;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::de::value::MapAccessDeserializer;
    use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
    use serde::ser::{Serialize, Serializer};

    use super::{AVOIDANCE_PERCENT, CATCH_UP_PERCENT, Pacing, START_PERCENT, UNPACED_PACKETS};

    /// The table that stands for [`Pacing::Window`].
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Table {
        /// Pacing rate in percent of a window per smoothed RTT while cwnd is below half of
        /// ssthresh; default 200.
        start_percent: u32,
        /// The same otherwise; default 120.
        avoidance_percent: u32,
        /// Packets at the start of a connection that are not paced; default 10.
        unpaced_packets: u64,
        /// Share of the next gap in percent that is left out at most if a packet left late; default
        /// 50.
        catch_up_percent: u32,
    }

    impl Default for Table {
        fn default() -> Self {
            Self {
                start_percent: START_PERCENT,
                avoidance_percent: AVOIDANCE_PERCENT,
                unpaced_packets: UNPACED_PACKETS,
                catch_up_percent: CATCH_UP_PERCENT,
            }
        }
    }

    struct PacingVisitor;

    impl<'de> Visitor<'de> for PacingVisitor {
        type Value = Pacing;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(
                "\"off\", \"on\" or a table with start_percent, avoidance_percent, unpaced_packets, catch_up_percent",
            )
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Pacing, E> {
            match text {
                "off" => Ok(Pacing::Off),
                "on" => Ok(Pacing::LINUX),
                other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
            }
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pacing, A::Error> {
            let table = Table::deserialize(MapAccessDeserializer::new(map))?;
            let Table { start_percent, avoidance_percent, unpaced_packets, catch_up_percent } = table;
            Ok(Pacing::Window { start_percent, avoidance_percent, unpaced_packets, catch_up_percent })
        }
    }

    impl<'de> Deserialize<'de> for Pacing {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(PacingVisitor)
        }
    }

    impl Serialize for Pacing {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match *self {
                Self::Off => serializer.serialize_str("off"),
                Self::Window { start_percent, avoidance_percent, unpaced_packets, catch_up_percent } => {
                    Table { start_percent, avoidance_percent, unpaced_packets, catch_up_percent }.serialize(serializer)
                }
            }
        }
    }

    impl JsonSchema for Pacing {
        fn schema_name() -> Cow<'static, str> {
            "Pacing".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let table = Table::json_schema(generator);
            json_schema!({ "anyOf": [{ "type": "string", "enum": ["off", "on"] }, table] })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_ten_at_50_ms_is_paced_at_twice_a_window_per_rtt() {
        let rate = stack_pacing_rate(1448, &Window::new(10), 0, Span::from_millis(50));
        assert_eq!(rate, Some(Rate::from_bps(579_200 * 8)));
        let rate = stack_pacing_rate(1448, &Window::new(10), 0, Span::from_millis(100));
        assert_eq!(rate, Some(Rate::from_bps(289_600 * 8)));
        assert_eq!(stack_pacing_rate(1448, &Window::new(10), 0, Span::ZERO), None);
    }

    #[test]
    fn from_half_the_threshold_on_the_rate_is_120_percent() {
        let rate = |cwnd| stack_pacing_rate(1000, &Window { cwnd, ssthresh: 100 }, 0, Span::from_secs(1)).unwrap();
        assert_eq!(rate(49), Rate::from_bps(49 * 8000 * 2));
        assert_eq!(rate(50), Rate::from_bps(50 * 8000 * 12 / 10));
    }

    fn pacing(start_percent: u32, avoidance_percent: u32, catch_up_percent: u32) -> Pacing {
        Pacing::Window { start_percent, avoidance_percent, unpaced_packets: 10, catch_up_percent }
    }

    #[test]
    fn a_late_packet_gets_back_half_of_its_gap_or_the_share_that_is_configured() {
        let of = |percent| pacing(200, 120, percent).catch_up(Span::from_micros(1000));
        assert_eq!([0, 20, 50, 100, 300].map(of), [0, 200, 500, 1000, 1000].map(Span::from_micros));
        assert_eq!(Pacing::LINUX.catch_up(Span::from_nanos(7)), Span::from_nanos(3));
    }

    #[test]
    fn percentages_of_nothing_are_refused_and_named() {
        let wrong = |pacing: Pacing| pacing.validate().map_err(|error| error.field);
        for right in [Pacing::Off, Pacing::LINUX, pacing(1, 1, 100)] {
            assert_eq!(wrong(right), Ok(()));
        }
        assert_eq!(wrong(pacing(0, 1, 0)), Err("start_percent"));
        assert_eq!(wrong(pacing(1, 0, 0)), Err("avoidance_percent"));
        assert_eq!(wrong(pacing(1, 1, 101)), Err("catch_up_percent"));
    }

    #[test]
    fn gaps_are_those_of_the_rate_and_never_overflow() {
        for (packets, srtt) in
            [(10, Span::from_millis(20)), (80_000, Span::from_millis(100)), (100, Span::from_secs(10))]
        {
            let window = WindowRate { percent: 120, packets, srtt };
            let by_rate = window.rate(1448).transmission_time(Bytes::new(1448));
            let gap = window.gap(1448, 1448);
            assert!(gap.as_nanos().abs_diff(by_rate.as_nanos()) <= 1 + gap.as_nanos() / 1000, "{gap:?} {by_rate:?}");
        }
        let extreme = WindowRate { percent: u32::MAX, packets: u32::MAX, srtt: Span::MAX };
        assert_eq!(extreme.gap(u32::MAX, u32::MAX), Span::ZERO);
        assert_eq!(WindowRate { percent: 0, packets: 1, srtt: Span::MAX }.gap(1, 1), Span::MAX);
    }
}
