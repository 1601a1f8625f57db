//! Spacing packets at a rate derived from the window, as Linux does with `sk_pacing_rate`.

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::names::InvalidConfig;
use crate::{Departure, Next, Sent, Window};

/// Pacing rate in percent of a window per smoothed RTT while the window is below half its threshold (`tcp_pacing_ss_ratio`).
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
    /// Packets leave as soon as the window allows (the ACK clock). What Linux does with CUBIC and Reno unless the fq queue or
    /// `SO_MAX_PACING_RATE` asks for pacing.
    #[default]
    Off,
    /// rate = percent * MSS * max(cwnd, packets out) / srtt (Linux `tcp_update_pacing_rate`).
    Window {
        /// Percentage below half the threshold; default 200 (`tcp_pacing_ss_ratio`).
        start_percent: u32,
        /// Percentage otherwise; default 120 (`tcp_pacing_ca_ratio`).
        avoidance_percent: u32,
        /// Packets at the start of a connection that are not paced; default 10 (`tcp_update_skb_after_send`).
        unpaced_packets: u64,
        /// Share of the next gap in percent that is left out at most if a packet left late, 0 ..= 100; default 50
        /// (`tcp_update_skb_after_send`).
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

    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        match self {
            Self::Off => Ok(()),
            Self::Window { start_percent, avoidance_percent, catch_up_percent, .. } => {
                InvalidConfig::unless(*catch_up_percent <= 100, "catch_up_percent", "at most 100")?;
                InvalidConfig::unless(*start_percent >= 1, "start_percent", "at least 1")?;
                InvalidConfig::unless(*avoidance_percent >= 1, "avoidance_percent", "at least 1")
            }
        }
    }
}

/// The pacing rate as Linux computes it after every ACK, also for flows it does not pace; `None` while no RTT is known.
pub(crate) fn stack_pacing_rate(mss: u32, window: &Window, packets_out: u32, srtt: Span) -> Option<Rate> {
    let percent = if is_early(window) { START_PERCENT } else { AVOIDANCE_PERCENT };
    (!srtt.is_zero()).then(|| WindowRate { percent, packets: window.cwnd.max(packets_out), srtt }.rate(mss))
}

fn is_early(window: &Window) -> bool {
    window.cwnd < window.ssthresh / 2
}

/// A rate as the quotient it comes from; dividing is left to whoever needs the result.
#[derive(Clone, Copy, Debug)]
struct WindowRate {
    percent: u32,
    packets: u32,
    srtt: Span,
}

impl WindowRate {
    fn rate(&self, mss: u32) -> Rate {
        let bytes = Bytes::new(u64::from(mss) * u64::from(self.packets));
        Rate::of(bytes, self.srtt).mul_ratio(u64::from(self.percent), 100)
    }

    /// Time that `bytes` take at this rate; [`Span::MAX`] at rate zero.
    #[inline]
    fn gap(&self, mss: u32, bytes: u32) -> Span {
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

/// What packets are spaced by now.
#[derive(Clone, Copy, Debug)]
enum Spacing {
    None,
    Rate(Rate),
    Window(WindowRate),
}

/// Books departures one gap after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    pacing: Pacing,
    mss: u32,
    spacing: Spacing,
    /// The rate a start left behind, until pacing or the ACK clock takes its place, at the latest at this time.
    left_behind: Option<(Rate, Time)>,
    /// Earliest departure of the next packet; zero before the first.
    next: Time,
}

impl Pacer {
    pub(super) fn new(pacing: Pacing, mss: u32) -> Self {
        Self { pacing, mss: mss.max(1), spacing: Spacing::None, left_behind: None, next: Time::ZERO }
    }

    pub(super) fn rate(&self) -> Option<Rate> {
        match self.spacing {
            Spacing::None => self.left_behind.map(|(rate, _)| rate),
            Spacing::Rate(rate) => Some(rate),
            Spacing::Window(window) => Some(window.rate(self.mss)),
        }
    }

    /// A start hands over and wants packets to leave at this rate for now, at most until `until`.
    pub(super) fn set_rate(&mut self, rate: Rate, until: Time) {
        self.left_behind = Some((rate, until));
    }

    #[inline]
    pub(super) fn departure(&mut self, now: Time, next: &Next, window: &Window, own: Option<Rate>) -> Departure {
        if own.is_none() && self.left_behind.is_none() && self.pacing == Pacing::Off {
            self.spacing = Spacing::None;
            return Departure::Now;
        }
        self.paced_departure(now, next, window, own)
    }

    fn paced_departure(&mut self, now: Time, next: &Next, window: &Window, own: Option<Rate>) -> Departure {
        self.spacing = match (own, self.pacing) {
            (Some(rate), _) => Spacing::Rate(rate),
            (None, Pacing::Off) => match self.left_behind {
                None => return Departure::Now,
                // Without pacing, the rate the start left behind holds until the window is full: from then on ACKs are the clock. Otherwise
                // what the window has left would leave in one burst.
                Some((rate, until)) if next.in_flight.saturating_add(1) < window.cwnd && now < until => {
                    Spacing::Rate(rate)
                }
                Some(_) => {
                    self.left_behind = None;
                    self.spacing = Spacing::None;
                    return Departure::Now;
                }
            },
            (None, Pacing::Window { start_percent, avoidance_percent, unpaced_packets, .. }) => {
                self.left_behind = None;
                // The last of the unpaced packets is the first whose gap counts.
                if next.srtt.is_zero() || next.number.saturating_add(1) < unpaced_packets {
                    Spacing::None
                } else {
                    let percent = if is_early(window) { start_percent } else { avoidance_percent };
                    Spacing::Window(WindowRate { percent, packets: window.cwnd.max(next.packets_out), srtt: next.srtt })
                }
            }
        };
        if self.next <= now { Departure::Now } else { Departure::At(self.next) }
    }

    /// The part of `gap` that a late packet may get back.
    fn catch_up(&self, gap: Span) -> Span {
        match self.pacing {
            Pacing::Window { catch_up_percent, .. } if catch_up_percent != CATCH_UP_PERCENT => {
                gap.mul_ratio(u64::from(catch_up_percent.min(100)), 100)
            }
            _ => gap / 2,
        }
    }

    #[inline]
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        match self.spacing {
            Spacing::None => self.next = self.next.max(sent.now),
            spacing => self.book(spacing, sent),
        }
    }

    fn book(&mut self, spacing: Spacing, sent: &Sent) {
        let gap = match spacing {
            Spacing::None => Span::ZERO,
            Spacing::Rate(rate) => rate.transmission_time(Bytes::new(u64::from(sent.bytes))),
            Spacing::Window(window) => window.gap(self.mss, sent.bytes),
        };
        // A late packet gets back only part of a gap, so that lateness does not turn into bursts.
        let late = sent.now.since(self.next);
        let credit = if self.next == Time::ZERO { Span::ZERO } else { late.min(self.catch_up(gap)) };
        self.next = self.next.max(sent.now) + (gap - credit);
    }
}

#[cfg(feature = "serde")]
mod serialize {
    use std::borrow::Cow;
    use std::fmt;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::de::value::MapAccessDeserializer;
    use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
    use serde::ser::{Serialize, Serializer};

    use super::{AVOIDANCE_PERCENT, CATCH_UP_PERCENT, Pacing, START_PERCENT, UNPACED_PACKETS};

    /// The table that stands for [`Pacing::Window`].
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Table {
        /// Pacing rate in percent of a window per smoothed RTT while cwnd is below half of ssthresh; default 200.
        start_percent: u32,
        /// The same otherwise; default 120.
        avoidance_percent: u32,
        /// Packets at the start of a connection that are not paced; default 10.
        unpaced_packets: u64,
        /// Share of the next gap in percent that is left out at most if a packet left late; default 50.
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
    use crate::testing::{next, sent};

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    #[test]
    fn v1_6_a_window_of_ten_at_50_ms_is_paced_at_twice_a_window_per_rtt() {
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

    #[test]
    fn the_first_ten_packets_leave_at_once_and_the_others_one_gap_apart() {
        let mut pacer = Pacer::new(Pacing::LINUX, 1000);
        let window = Window::new(100);
        let srtt = Span::from_millis(100);
        let start = ms(7);
        for number in 0..10 {
            assert_eq!(pacer.departure(start, &Next { srtt, ..next(number) }, &window, None), Departure::Now);
            pacer.on_sent(&Sent { bytes: 1000, ..sent(start, number) });
        }
        // 200 % of 100 packets in 100 ms: a gap of 0.5 ms.
        let mut at = start;
        for number in 10..15 {
            at += Span::from_micros(500);
            let departure = pacer.departure(start, &Next { srtt, ..next(number) }, &window, None);
            assert_eq!(departure, Departure::At(at), "packet {number}");
            pacer.on_sent(&Sent { bytes: 1000, ..sent(at, number) });
        }
    }

    #[test]
    fn a_late_packet_gets_back_at_most_half_a_gap() {
        let mut pacer = Pacer::new(Pacing::LINUX, 1000);
        let (window, srtt) = (Window::new(100), Span::from_millis(100));
        let mut book = |at: Time| {
            pacer.departure(at, &Next { srtt, ..next(20) }, &window, None);
            pacer.on_sent(&Sent { bytes: 1000, ..sent(at, 20) });
            pacer.next.since(at).as_micros()
        };
        assert_eq!(book(ms(10)), 500);
        assert_eq!(book(ms(10) + Span::from_micros(600)), 400, "0.1 ms late");
        assert_eq!(book(ms(20)), 250, "very late");
    }

    #[test]
    fn without_pacing_the_rate_a_start_left_behind_holds_until_the_window_is_full() {
        let mut pacer = Pacer::new(Pacing::Off, 1000);
        let window = Window::new(10);
        pacer.set_rate(Rate::from_bps(8_000_000), Time::ZERO + Span::from_secs(1));
        let ask = |pacer: &mut Pacer, in_flight| pacer.departure(ms(1), &Next { in_flight, ..next(50) }, &window, None);
        assert_eq!(ask(&mut pacer, 5), Departure::Now);
        pacer.on_sent(&Sent { bytes: 1000, ..sent(ms(1), 50) });
        assert_eq!(ask(&mut pacer, 6), Departure::At(ms(2)));
        assert_eq!(ask(&mut pacer, 9), Departure::Now, "this packet fills the window");
        assert_eq!(ask(&mut pacer, 5), Departure::Now);
        assert_eq!(pacer.rate(), None);
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
