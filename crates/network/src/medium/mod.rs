//! What kind of link it is: how it serves if it does not simply send one packet after the other.
//!
//! Starting values: Linux `tbf` and `act_police` for token buckets, IEEE 802.11 for Wi-Fi, 3GPP for
//! slots and their repetitions. What the profiles (`docs/rough-paths.md`) choose says where each
//! number comes from.

mod bucket;
mod timing;
mod wifi;

use std::fmt;

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::{Frame, LinkConfig, RateSchedule, Sending, Transmitter};

pub use bucket::{PolicerConfig, ShaperConfig};
pub use timing::{Detour, GrantsConfig, HandoverConfig, SlotsConfig};
pub use wifi::{Served, Wifi, WifiConfig};

use bucket::{Policer, Shaper};
use timing::{Handover, Slots, detour};

/// What kind of link it is; without any of this it sends one packet after the other.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct MediumConfig {
    /// A token bucket behind the queue: the capacity is its rate.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub shaper: Option<ShaperConfig>,
    /// A token bucket before the queue: what exceeds is lost.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub policer: Option<PolicerConfig>,
    /// Aggregates, contention and retries, as Wi-Fi has them. Excludes `shaper`, `grants` and
    /// `slots`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub wifi: Option<WifiConfig>,
    /// Packets leave when a request has been granted, as upstream of a cable modem.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub grants: Option<GrantsConfig>,
    /// Packets arrive slot by slot, as over LTE and 5G.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub slots: Option<SlotsConfig>,
    /// Every so often another way, as over satellites in low orbits.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub handover: Option<HandoverConfig>,
    /// Changes of route at given times, in order.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub detours: Vec<Detour>,
}

/// Bytes of the packet that every bucket must have room for: a full one without what a link adds,
/// which buckets count too.
const FULL_PACKET: Bytes = Bytes::new(1500);

/// Why a medium cannot be used. Its `Display` is one sentence that begins with what is wrong of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediumError(String);

impl fmt::Display for MediumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MediumError {}

impl MediumConfig {
    /// True if it is a plain link.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// True if random numbers are drawn.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.wifi.is_some() || self.handover.is_some() || self.slots.is_some_and(|slots| slots.errors > 0.0)
    }

    /// Checks the ranges, for a link of this rate.
    ///
    /// # Errors
    /// The first value that is out of range, and what would be right.
    pub fn validate(&self, rate: &RateSchedule) -> Result<(), MediumError> {
        let wrong = |message: &str| MediumError(message.to_owned());
        let unless = |right: bool, message: &str| if right { Ok(()) } else { Err(wrong(message)) };
        let constant = matches!(rate, RateSchedule::Constant(_));
        if let Some(shaper) = &self.shaper {
            unless(constant, "shaper: a token bucket needs a constant capacity, which is its rate")?;
            unless(
                shaper.burst >= FULL_PACKET && shaper.peak_burst >= FULL_PACKET,
                "shaper: a bucket has room for at least one packet, 1500 B; burst is usually some \"32 kB\"",
            )?;
            unless(
                shaper.peak.is_some() || shaper.peak_burst == ShaperConfig::PEAK_BURST,
                "shaper: peak_burst is the bucket of the peak rate; give a peak, or leave it out",
            )?;
            unless(
                shaper.peak.is_none_or(|peak| shaper.line.is_none_or(|line| peak <= line)),
                "shaper: a peak above the line would have no influence; lower it, or leave it out",
            )?;
            let faster = |other: Option<Rate>| other.is_none_or(|other| other >= rate.peak());
            unless(faster(shaper.peak) && faster(shaper.line), "shaper: peak and line must not be below the capacity")?;
        }
        if let Some(policer) = &self.policer {
            unless(policer.rate.as_bps() > 0, "policer: a rate of 0 lets nothing through")?;
            unless(policer.burst >= FULL_PACKET, "policer: burst has room for at least one packet, 1500 B")?;
        }
        if let Some(wifi) = &self.wifi {
            wifi.validate().map_err(wrong)?;
            unless(
                self.shaper.is_none() && self.grants.is_none() && self.slots.is_none(),
                "wifi: cannot be combined with shaper, grants or slots; make two [[link]] of them",
            )?;
            unless(constant, "wifi: needs a constant capacity, what the link carries in the long run")?;
            if wifi.air_rate(rate.peak()).is_none() {
                return Err(MediumError(format!(
                    "wifi: aggregates of these limits carry at most {} whatever the rate on the air; allow more \
                     frames or fewer others, or give it less capacity",
                    wifi.most()
                )));
            }
        }
        if let Some(grants) = &self.grants {
            unless(!grants.every.is_zero(), "grants: every must be above 0, for instance \"2 ms\"")?;
        }
        if let Some(slots) = &self.slots {
            unless(!slots.every.is_zero(), "slots: every must be above 0, for instance \"1 ms\"")?;
            unless(
                (0.0..1.0).contains(&slots.errors),
                "slots: errors is a share of the slots, at least 0 and below 1, such as 0.1",
            )?;
            unless(slots.repetitions <= 1000, "slots: repetitions must be at most 1000; the usual are 3")?;
        }
        if let Some(handover) = &self.handover {
            unless(!handover.every.is_zero(), "handover: every must be above 0, for instance \"15 s\"")?;
            unless(handover.outage < handover.every, "handover: the outage must be shorter than every")?;
        }
        unless(self.detours.is_sorted_by(|a, b| a.at < b.at), "detours: must be in order of time")
    }
}

/// A packet's way through the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When its transmission begins: when it is its turn, there are tokens for it, and there is no
    /// outage.
    pub begun: Time,
    /// For how long the transmitter then sends: without outages in the middle.
    pub busy: Span,
    /// When the transmitter is free for the next one.
    pub done: Time,
    /// When the packet is at the far end of a link without propagation delay; `None` if it is lost.
    pub there: Option<Time>,
}

/// A medium in operation.
#[derive(Debug)]
pub struct Medium<P> {
    policer: Option<Policer>,
    shaper: Option<Shaper>,
    grants: Option<GrantsConfig>,
    slots: Option<Slots>,
    handover: Option<Handover>,
    detours: Vec<Detour>,
    /// Takes packets out of the queue by itself; see [`Wifi::serve`].
    pub wifi: Option<Wifi<P>>,
}

impl<P: Frame> Medium<P> {
    /// That of a link; `None` if it is a plain one.
    #[must_use]
    pub fn new(link: &LinkConfig, seed: u64) -> Option<Self> {
        let config = &link.medium;
        (!config.is_plain()).then(|| Self {
            policer: config.policer.as_ref().map(Policer::new),
            shaper: config.shaper.as_ref().map(|shaper| Shaper::new(shaper, link.rate.peak())),
            grants: config.grants,
            slots: config.slots.as_ref().map(|slots| Slots::new(slots, seed)),
            handover: config.handover.as_ref().map(|handover| Handover::new(handover, seed.wrapping_add(1))),
            detours: config.detours.clone(),
            wifi: config.wifi.as_ref().map(|wifi| Wifi::new(wifi, link.rate.peak(), seed)),
        })
    }

    /// True if an arriving packet passes the policer, if there is one.
    pub fn admits(&mut self, now: Time, bytes: u32) -> bool {
        self.policer.as_mut().is_none_or(|policer| policer.passes(now, bytes))
    }

    /// A packet of `bytes` on the wire that arrived at `arrived` is taken from the queue at `now`.
    pub fn pass(&mut self, transmitter: &mut Transmitter, now: Time, arrived: Time, bytes: u32) -> Passage {
        let mut begun = now;
        if let Some(grants) = &self.grants {
            begun = begun.max(grants.admit(arrived));
        }
        if let Some(shaper) = &mut self.shaper {
            begun = shaper.admit(begun, bytes);
        }
        let Sending { begun: first_bit, busy, done } = transmitter.send(begun, bytes);
        let arrived = match &mut self.slots {
            Some(slots) => slots.release(begun, done),
            None => done,
        };
        Passage { begun: first_bit, busy, done, there: self.beyond(arrived) }
    }

    /// When what has left the transmitter at `time` is there; `None` if it is lost.
    pub fn beyond(&self, time: Time) -> Option<Time> {
        let time = detour(&self.detours, time);
        match &self.handover {
            Some(handover) => handover.release(time),
            None => Some(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Packet, QueueConfig};

    fn link(medium: MediumConfig) -> LinkConfig {
        let rate = RateSchedule::Constant(Rate::from_mbps(12));
        LinkConfig { medium, ..LinkConfig::new(rate, Span::ZERO, QueueConfig::drop_tail(10)) }
    }

    fn passages(medium: MediumConfig, packets: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let link = link(medium);
        assert_eq!(link.validate(), Ok(()));
        let mut transmitter = Transmitter::new(&link.wire_rate());
        let mut medium = Medium::<Packet>::new(&link, 1).unwrap();
        let micros = |time: Time| time.as_nanos() / 1_000;
        let at = |time: u64| Time::from_nanos(time * 1_000);
        let passage = |&(now, arrived): &(u64, u64)| {
            let passage = medium.pass(&mut transmitter, at(now), at(arrived), 1500);
            // At 12 Mbit/s, or at a tenth of it.
            let sending = passage.done.since(passage.begun);
            let right = if link.medium.shaper.is_some() { 100 } else { 1_000 };
            assert_eq!((sending, passage.busy), (Span::from_micros(right), Span::from_micros(right)));
            (micros(passage.done), micros(passage.there.unwrap()))
        };
        packets.iter().map(passage).collect()
    }

    #[test]
    fn a_shaper_sends_bursts_at_the_rate_of_its_line() {
        let line = Some(Rate::from_mbps(120));
        let shaper = Some(ShaperConfig { line, ..ShaperConfig::new(Bytes::new(3_000)) });
        let config = MediumConfig { shaper, ..MediumConfig::default() };
        assert_eq!(passages(config, &[(0, 0), (100, 0), (200, 0)]), [(100, 100), (200, 200), (1_100, 1_100)]);
    }

    #[test]
    fn a_granted_link_sends_what_was_requested_in_time_together() {
        let (every, delay) = (Span::from_millis(2), Span::from_millis(4));
        let config = MediumConfig { grants: Some(GrantsConfig { every, delay }), ..MediumConfig::default() };
        // 1500 B take 1 ms; the third arrived after the request for the others.
        assert_eq!(
            passages(config, &[(500, 500), (7_000, 600), (8_000, 2_500)]),
            [(7_000, 7_000), (8_000, 8_000), (9_000, 9_000)]
        );
    }

    #[test]
    fn slots_round_up_and_detours_add() {
        let config = MediumConfig {
            slots: Some(SlotsConfig::new(Span::from_millis(5))),
            detours: vec![Detour { at: Span::from_millis(10), extra: Span::from_millis(7) }],
            ..MediumConfig::default()
        };
        assert_eq!(
            passages(config, &[(0, 0), (1_000, 0), (7_500, 0)]),
            [(1_000, 5_000), (2_000, 5_000), (8_500, 17_000)]
        );
    }

    #[test]
    fn a_policer_lets_its_burst_through_and_then_what_its_rate_has_earned() {
        let policer = Some(PolicerConfig { rate: Rate::from_mbps(6), burst: Bytes::new(3_000) });
        let mut medium = Medium::<Packet>::new(&link(MediumConfig { policer, ..MediumConfig::default() }), 1).unwrap();
        // At 6 Mbit/s 1500 B take 2 ms.
        let passes = [0, 0, 0, 1_999, 2_000, 2_000, 6_000, 6_000, 6_000]
            .map(|micros| medium.admits(Time::from_nanos(micros * 1_000), 1500));
        assert_eq!(passes, [true, true, false, false, true, false, true, true, false]);
        let plain = MediumConfig { detours: vec![Detour { at: Span::ZERO, extra: Span::ZERO }], ..Default::default() };
        assert!(Medium::<Packet>::new(&link(plain), 1).unwrap().admits(Time::ZERO, 9_000));
    }

    #[test]
    fn only_what_draws_is_random() {
        let of = |medium: MediumConfig| medium.is_random();
        let slots = |errors| SlotsConfig { errors, ..SlotsConfig::new(Span::from_millis(1)) };
        assert!(!of(MediumConfig::default()));
        assert!(!of(MediumConfig { slots: Some(slots(0.0)), ..MediumConfig::default() }));
        assert!(of(MediumConfig { slots: Some(slots(0.001)), ..MediumConfig::default() }));
        assert!(of(MediumConfig { wifi: Some(WifiConfig::default()), ..MediumConfig::default() }));
        let handover =
            Some(HandoverConfig { every: Span::from_secs(15), spread: Span::ZERO, outage: Span::from_millis(1) });
        assert!(of(MediumConfig { handover, ..MediumConfig::default() }));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_sentence() {
        let says = |medium: MediumConfig| link(medium).validate().unwrap_err().to_string();
        let shaper = |shaper| says(MediumConfig { shaper: Some(shaper), ..MediumConfig::default() });
        assert!(shaper(ShaperConfig::new(Bytes::new(1499))).contains("medium: shaper: a bucket has room"));
        let bucket = ShaperConfig { peak_burst: Bytes::new(3_000), ..ShaperConfig::new(Bytes::new(2_000)) };
        assert!(shaper(bucket).contains("give a peak"));
        let slow = Some(Rate::from_mbps(1));
        assert!(shaper(ShaperConfig { peak: slow, ..ShaperConfig::new(Bytes::new(2_000)) }).contains("below the cap"));
        let (peak, line) = (Some(Rate::from_mbps(200)), Some(Rate::from_mbps(199)));
        assert!(shaper(ShaperConfig { peak, line, ..ShaperConfig::new(Bytes::new(2_000)) }).contains("peak above the"));
        let wifi = WifiConfig { others: 90, ..WifiConfig::default() };
        assert!(says(MediumConfig { wifi: Some(wifi), ..MediumConfig::default() }).contains("carry at most"));
        let grants = Some(GrantsConfig { every: Span::ZERO, delay: Span::ZERO });
        assert!(says(MediumConfig { grants, ..MediumConfig::default() }).contains("above 0"));
        let wifi = Some(WifiConfig::default());
        let slots = Some(SlotsConfig { errors: f64::NAN, ..SlotsConfig::new(Span::from_millis(1)) });
        assert!(says(MediumConfig { slots, ..MediumConfig::default() }).contains("share of the slots"));
        assert!(says(MediumConfig { slots, wifi, ..MediumConfig::default() }).contains("cannot be combined"));
        let detour = |millis| Detour { at: Span::from_millis(millis), extra: Span::ZERO };
        assert!(
            says(MediumConfig { detours: vec![detour(2), detour(1)], ..MediumConfig::default() }).contains("order")
        );
        assert!(
            says(MediumConfig { detours: vec![detour(2), detour(2)], ..MediumConfig::default() }).contains("order")
        );
        let policer = |rate, burst| {
            let policer = Some(PolicerConfig { rate: Rate::from_bps(rate), burst: Bytes::new(burst) });
            link(MediumConfig { policer, ..MediumConfig::default() }).validate().map_err(|error| error.to_string())
        };
        assert_eq!(policer(1, 1500), Ok(()));
        assert!(policer(0, 1500).unwrap_err().contains("lets nothing through"));
        assert!(policer(1, 1499).unwrap_err().contains("at least one packet, 1500 B"));
        let outage = |millis| {
            let (every, spread) = (Span::from_millis(10), Span::ZERO);
            let handover = Some(HandoverConfig { every, spread, outage: Span::from_millis(millis) });
            link(MediumConfig { handover, ..MediumConfig::default() }).validate().is_ok()
        };
        assert!(outage(9) && !outage(10));
    }
}
