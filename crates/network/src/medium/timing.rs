//! What holds packets back, and what carries them together: grants, slots, handovers, detours. All
//! of it depends on the time and the seed alone, not on the traffic before, so that different
//! senders meet the same path.

use flowstart_random::{Rng as _, stream};
use flowstart_units::{Span, Time};

/// Requests and grants of an upstream channel (DOCSIS, GPON): a packet leaves in the first turn
/// that comes at least `delay` after its arrival, when its request has been granted; what was
/// granted meanwhile leaves with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct GrantsConfig {
    /// Time between turns (DOCSIS: between MAPs), above 0.
    pub every: Span,
    /// From a packet's arrival, and so its request, to the earliest turn in which it may leave.
    #[cfg_attr(feature = "serde", serde(default))]
    pub delay: Span,
}

impl GrantsConfig {
    /// When a packet that arrived then may leave.
    pub(super) fn admit(&self, arrived: Time) -> Time {
        let every = self.every.as_nanos().max(1);
        let ready = (arrived + self.delay).as_nanos();
        Time::from_nanos(ready.checked_next_multiple_of(every).unwrap_or(u64::MAX))
    }
}

/// A radio link's slots: what is sent within one is there at its end, together. A slot that
/// arrives damaged is sent again and holds all behind it, since the receiver keeps the order (LTE,
/// 5G: transmission time intervals and hybrid ARQ). The capacity is what remains beside that.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SlotsConfig {
    /// Length of a slot, above 0.
    pub every: Span,
    /// Share of the slots, and of those sent again, that arrive damaged, 0 and more, below 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub errors: f64,
    /// How much later a damaged slot is there again; LTE: 8 ms. Only with `errors`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub again_after: Span,
    /// Most repetitions of a slot; the last one always arrives. Default 3 (LTE sends a block four
    /// times at most). Only with `errors`.
    #[cfg_attr(feature = "serde", serde(default = "repetitions"))]
    pub repetitions: u32,
}

#[cfg(feature = "serde")]
fn repetitions() -> u32 {
    SlotsConfig::REPETITIONS
}

/// As it would be derived, but what becomes of damaged slots is refused where none are: it would be
/// without effect. An `errors = 0` is what somebody varies.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for SlotsConfig {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields, rename = "SlotsConfig")]
        struct Read {
            every: Span,
            errors: Option<f64>,
            again_after: Option<Span>,
            repetitions: Option<u32>,
        }
        let Read { every, errors, again_after, repetitions } = Read::deserialize(deserializer)?;
        let useless = [("again_after", again_after.is_some()), ("repetitions", repetitions.is_some())];
        if let Some((name, _)) = useless.into_iter().find(|(_, given)| *given && errors.is_none()) {
            return Err(serde::de::Error::custom(format_args!(
                "slots: {name} is about slots that arrive damaged, and none do without errors; add their share, such \
                 as errors = 0.1"
            )));
        }
        let without = Self::new(every);
        Ok(Self {
            every,
            errors: errors.unwrap_or(without.errors),
            again_after: again_after.unwrap_or(without.again_after),
            repetitions: repetitions.unwrap_or(without.repetitions),
        })
    }
}

impl SlotsConfig {
    const REPETITIONS: u32 = 3;

    /// Slots of this length without errors.
    #[must_use]
    pub fn new(every: Span) -> Self {
        Self { every, errors: 0.0, again_after: Span::ZERO, repetitions: Self::REPETITIONS }
    }
}

/// Slots of a packet that are looked at one by one: the last of a packet that takes longer.
const MOST_SLOTS: u64 = 1024;

/// A random number of this seed and time, 0 ..= 1 without 1.
fn chance(seed: u64, number: u64) -> f64 {
    (flowstart_random::SplitMix64::nth(seed, number) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Slots in operation.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    config: SlotsConfig,
    seed: u64,
    /// The next slot that has not been looked at, and when all before it have arrived.
    next: u64,
    latest: Time,
}

impl Slots {
    pub(super) fn new(config: &SlotsConfig, seed: u64) -> Self {
        Self { config: *config, seed, next: 0, latest: Time::ZERO }
    }

    /// How often a slot is sent again.
    fn repetitions(&self, slot: u64) -> u32 {
        if self.config.errors <= 0.0 {
            return 0;
        }
        let (luck, mut bound, mut again) = (chance(self.seed, slot), self.config.errors, 0);
        while again < self.config.repetitions && luck < bound {
            again += 1;
            bound *= self.config.errors;
        }
        again
    }

    /// When what was sent from `begun` to `done` is at the receiver.
    pub(super) fn release(&mut self, begun: Time, done: Time) -> Time {
        if done == Time::NEVER {
            return done;
        }
        let every = self.config.every.as_nanos().max(1);
        let last = done.as_nanos().saturating_sub(1).max(begun.as_nanos()) / every;
        let first = (begun.as_nanos() / every).max(self.next).max(last.saturating_sub(MOST_SLOTS));
        for slot in first..=last {
            let end = Time::from_nanos(slot.saturating_add(1).saturating_mul(every));
            let late = self.config.again_after * u64::from(self.repetitions(slot));
            self.latest = self.latest.max(end + late);
        }
        self.next = self.next.max(last + 1);
        self.latest
    }
}

/// A path over satellites that changes every so often: its delay jumps, and what is sent during an
/// outage after that is lost. What was sent before arrives over the old path. Each direction has
/// handovers at moments, and to paths, of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct HandoverConfig {
    /// Time between handovers, above 0; the first comes at a random moment. Starlink: 15 s.
    pub every: Span,
    /// Extra delay of each of the paths: uniform from nothing to this.
    pub spread: Span,
    /// For so long after a handover all packets are lost.
    #[cfg_attr(feature = "serde", serde(default))]
    pub outage: Span,
}

/// Handovers in operation.
#[derive(Clone, Debug)]
pub(super) struct Handover {
    config: HandoverConfig,
    seed: u64,
    phase: u64,
}

impl Handover {
    pub(super) fn new(config: &HandoverConfig, seed: u64) -> Self {
        let phase = stream(seed).next_u64() % config.every.as_nanos().max(1);
        Self { config: *config, seed, phase }
    }

    /// When a packet that was sent at `time` is at the other end; `None` if it is lost.
    pub(super) fn release(&self, time: Time) -> Option<Time> {
        let every = self.config.every.as_nanos().max(1);
        let since = time.as_nanos().saturating_add(self.phase);
        let path = since / every;
        // No handover comes before the first, whatever the phase.
        if path > 0 && since % every < self.config.outage.as_nanos() {
            return None;
        }
        let extra = chance(self.seed, path) * self.config.spread.as_nanos() as f64;
        Some(time + Span::from_nanos(extra as u64))
    }
}

/// A change of route: from a time on packets take so much longer than the link's own delay. After
/// a change to a shorter way packets overtake others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Detour {
    /// Since the start of the run.
    pub at: Span,
    /// Extra delay from then on; 0 is the link's own way.
    pub extra: Span,
}

/// When a packet that was sent at `time` is at the other end; `detours` are in order of time.
pub(super) fn detour(detours: &[Detour], time: Time) -> Time {
    let since = time.since(Time::ZERO);
    let current = detours.iter().take_while(|detour| detour.at <= since).last();
    time + current.map_or(Span::ZERO, |detour| detour.extra)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * MS)
    }

    #[test]
    fn a_grant_comes_at_the_first_turn_after_the_requests_delay() {
        let grants = GrantsConfig { every: Span::from_millis(2), delay: Span::from_millis(5) };
        let granted: Vec<u64> = [0, 1, 2, 3].map(|time| grants.admit(at(time)).as_nanos() / MS).to_vec();
        assert_eq!(granted, [6, 6, 8, 8]);
    }

    #[test]
    fn what_is_sent_in_a_slot_is_there_at_its_end() {
        let mut slots = Slots::new(&SlotsConfig::new(Span::from_millis(1)), 1);
        let micros = |time: u64| Time::from_nanos(time * 1_000);
        let there: Vec<u64> = [(0, 100), (100, 900), (900, 1_000), (1_000, 1_001), (1_500, 3_500)]
            .map(|(begun, done)| slots.release(micros(begun), micros(done)).as_nanos() / MS)
            .to_vec();
        assert_eq!(there, [1, 1, 1, 2, 4]);
    }

    #[test]
    fn a_damaged_slot_holds_all_behind_it_and_their_share_is_as_configured() {
        let config =
            SlotsConfig { errors: 0.1, again_after: Span::from_millis(8), ..SlotsConfig::new(Span::from_millis(1)) };
        let mut slots = Slots::new(&config, 7);
        let (mut before, mut late) = (Time::ZERO, 0_u32);
        for slot in 0..100_000 {
            late += slots.repetitions(slot);
            let there = slots.release(at(slot), at(slot + 1));
            assert!(there >= before && there >= at(slot + 1) && there <= at(slot + 1 + 24));
            before = there;
        }
        // 0.1 + 0.01 + 0.001 per slot; five standard deviations of about 0.35 / sqrt(n).
        assert!((f64::from(late) / 1e5 - 0.111).abs() < 5.6e-3, "{late}");
    }

    #[test]
    fn errors_of_slots_do_not_depend_on_the_traffic_before() {
        let config =
            SlotsConfig { errors: 0.3, again_after: Span::from_millis(8), ..SlotsConfig::new(Span::from_millis(1)) };
        let (mut busy, mut idle) = (Slots::new(&config, 3), Slots::new(&config, 3));
        for slot in 0..1_000 {
            busy.release(at(slot), at(slot + 1));
        }
        // After a pause longer than all repetitions both are the same.
        for slot in (1_100..2_000).step_by(50) {
            assert_eq!(busy.release(at(slot), at(slot + 1)), idle.release(at(slot), at(slot + 1)));
        }
    }

    #[test]
    fn every_path_over_a_satellite_has_a_delay_of_its_own_and_begins_with_an_outage() {
        let (spread, outage) = (Span::from_millis(20), Span::from_millis(50));
        let handover = Handover::new(&HandoverConfig { every: Span::from_secs(15), spread, outage }, 1);
        let delays: Vec<Option<Span>> =
            (0..600_000).map(|time| handover.release(at(time)).map(|there| there.since(at(time)))).collect();
        let lost = delays.iter().filter(|delay| delay.is_none()).count();
        // 600 s are 39 or 40 handovers of 50 ms each.
        assert!((39 * 50..=40 * 50).contains(&lost), "{lost}");
        assert!(delays.iter().flatten().all(|delay| *delay <= spread));
        let mut different: Vec<Span> = delays.into_iter().flatten().collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 41);
    }

    #[test]
    fn an_outage_begins_with_the_handover_and_its_end_is_no_part_of_it() {
        let (every, outage) = (Span::from_secs(15), Span::from_millis(50));
        let handover = Handover::new(&HandoverConfig { every, spread: Span::ZERO, outage }, 1);
        let first = Time::from_nanos(every.as_nanos() - handover.phase);
        let one = Span::from_nanos(1);
        for (time, lost) in [(first + outage, false), (first, true)] {
            assert_eq!(handover.release(time).is_none(), lost);
            let before = Time::from_nanos(time.as_nanos() - one.as_nanos());
            assert_eq!(handover.release(before).is_none(), !lost);
        }
    }

    #[test]
    fn a_detour_holds_from_its_time_to_the_next() {
        let ms = Span::from_millis;
        let detours = [Detour { at: ms(10), extra: ms(5) }, Detour { at: ms(20), extra: ms(0) }];
        let there: Vec<u64> = [9, 10, 19, 20].map(|time| detour(&detours, at(time)).as_nanos() / MS).to_vec();
        assert_eq!(there, [9, 15, 24, 20]);
        assert_eq!(detour(&[], at(3)), at(3));
    }
}
