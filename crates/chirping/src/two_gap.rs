//! The authors' later design, from their public kernel code for TCP Prague: no rounds, but two
//! gaps. The probe gap follows what the chirps say; the load gap holds the average rate and comes
//! down towards the probe gap. The start is over when they meet.

use alloc::vec;
use alloc::vec::Vec;

use flowstart_units::{Span, Time};

use super::analysis::{ExcursionRule, estimate};
use super::flight::Measured;
use super::geometry::{Geometry, ratio_from_f64};
use super::reading::Point;
use super::schedule::{Before, Plan, Pull, Schedule, exit, packets_in};
use flowstart_control::InvalidConfig;
use flowstart_control::{Ack, Exit, ExitReason, INFINITE_SSTHRESH, NewMss, Next, Window};

/// Constants of the schedule with two gaps. All defaults are from the authors' public kernel code
/// (2020-21).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct TwoGapChirpingConfig {
    /// Packets of the first chirps, each 2 ..= 256; default 5, 5, 8, 8.
    pub first_packets: Vec<u32>,
    /// Packets of later chirps on a path that does not aggregate ACKs, 2 ..= 256; default 16. With
    /// aggregation up to 256.
    pub packets: u32,
    /// Packets of a chirp for each ACK of those that come at once, where that is more than
    /// `packets`, 0 ..= 256; default 4.
    pub per_burst: f64,
    /// The first probe gap is the handshake's RTT divided by this, at least 1; default 64.
    pub probe_divisor: u32,
    /// Longest first probe gap; default 1 ms.
    pub max_probe_gap: Span,
    /// The first load gap is the handshake's RTT divided by this, at least 1; default 16.
    pub load_divisor: u32,
    /// First probe gap without an RTT; default 120 µs.
    pub unknown_probe_gap: Span,
    /// First load gap without an RTT; default 2.4 ms.
    pub unknown_load_gap: Span,
    /// Largest first gap of a chirp divided by its average, 1 ..= 2; default 2.
    pub geometry: f64,
    /// The range of a chirp narrows as the load approaches the estimate, but its gaps keep
    /// shrinking by at least about this; default 1.024 µs.
    pub min_step: Span,
    /// Chirps after which the start ends in any case; default 200.
    pub max_chirps: u32,
    /// If the smallest delay of a chirp is above this share of the smallest RTT, the queue does not
    /// go away and the delivery rate replaces the estimate, above 0; default 0.2.
    pub persistent_queue: f64,
    /// The start ends if the smoothed RTT is this much above the smallest; default 30 ms.
    pub overload: Span,
    /// Below this load gap timers cannot pace, and the start hands over to slow start; default 40
    /// µs.
    pub min_load_gap: Span,
    /// A path on which more ACKs than this come at once sends in bursts; chirps are then faster by
    /// a quarter and less steep. Default 2.
    pub discontinuous: f64,
    /// Largest `geometry` on a path that sends in bursts (`discontinuous`), 1 ..= 2; default 1.5.
    pub discontinuous_geometry: f64,
    /// Packets an excursion of the delay needs to count if it ends within the chirp; default 5.
    pub excursion_packets: u32,
    /// Share of its peak above which an excursion lives on, 0 ..= 1; default 0.625.
    pub excursion_survival: f64,
    /// A chirp in which two packets left further apart than this many planned gaps says nothing, at
    /// least 1; default 2.
    pub stall: f64,
}

impl Default for TwoGapChirpingConfig {
    fn default() -> Self {
        Self {
            first_packets: vec![5, 5, 8, 8],
            packets: 16,
            per_burst: 4.0,
            probe_divisor: 64,
            max_probe_gap: Span::from_millis(1),
            load_divisor: 16,
            unknown_probe_gap: Span::from_micros(120),
            unknown_load_gap: Span::from_micros(2400),
            geometry: 2.0,
            min_step: Span::from_nanos(1024),
            max_chirps: 200,
            persistent_queue: 0.2,
            overload: Span::from_millis(30),
            min_load_gap: Span::from_micros(40),
            discontinuous: 2.0,
            discontinuous_geometry: 1.5,
            excursion_packets: 5,
            excursion_survival: 0.625,
            stall: 2.0,
        }
    }
}

/// Most packets of a chirp, on a path that aggregates.
const MOST_PACKETS: u32 = super::flight::MAX_CHIRP as u32;

impl TwoGapChirpingConfig {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let sizes = 2..=MOST_PACKETS;
        check(
            self.first_packets.iter().all(|n| sizes.contains(n)),
            "first_packets",
            "a list of numbers from 2 to 256",
        )?;
        check(sizes.contains(&self.packets), "packets", "between 2 and 256")?;
        check((0.0..=f64::from(MOST_PACKETS)).contains(&self.per_burst), "per_burst", "between 0 and 256")?;
        check(self.probe_divisor >= 1, "probe_divisor", "at least 1")?;
        check(self.load_divisor >= 1, "load_divisor", "at least 1")?;
        check(!self.max_probe_gap.is_zero(), "max_probe_gap", "longer than zero")?;
        check(!self.unknown_probe_gap.is_zero(), "unknown_probe_gap", "longer than zero")?;
        check(!self.unknown_load_gap.is_zero(), "unknown_load_gap", "longer than zero")?;
        check((1.0..=2.0).contains(&self.geometry), "geometry", "between 1 and 2")?;
        check(self.max_chirps >= 1, "max_chirps", "at least 1")?;
        check(self.persistent_queue > 0.0, "persistent_queue", "above 0")?;
        check(self.discontinuous > 0.0, "discontinuous", "above 0")?;
        let flatter = (1.0..=2.0).contains(&self.discontinuous_geometry);
        check(flatter, "discontinuous_geometry", "between 1 and 2")?;
        check((0.0..=1.0).contains(&self.excursion_survival), "excursion_survival", "between 0 and 1")?;
        check(self.stall >= 1.0, "stall", "at least 1")
    }
}

/// The schedule with two gaps in operation.
#[derive(Clone, Debug)]
pub struct TwoGap {
    config: TwoGapChirpingConfig,
    rule: ExcursionRule,
    mss: u32,
    /// Zero until the first chirp.
    probe: u64,
    load: u64,
    /// ACKs that come at once, smoothed.
    aggregation: f64,
    /// Time between ACKs, smoothed, in ns.
    ack_gap: u64,
    last_ack: Option<Time>,
    /// Time per delivered packet of the last round trip, in ns.
    delivery_gap: Option<u64>,
    min_rtt: Span,
    completed: u32,
    planned: u32,
}

impl TwoGap {
    pub(super) fn new(config: &TwoGapChirpingConfig, mss: u32) -> Self {
        Self {
            rule: ExcursionRule {
                min_packets: config.excursion_packets as usize,
                survival: ratio_from_f64(config.excursion_survival),
            },
            mss: mss.max(1),
            probe: 0,
            load: 0,
            aggregation: 1.0,
            ack_gap: 0,
            last_ack: None,
            delivery_gap: None,
            min_rtt: Span::MAX,
            completed: 0,
            planned: 0,
            config: config.clone(),
        }
    }

    /// The gap chirps are centred on; zero before the first.
    #[must_use]
    pub fn probe_gap(&self) -> Span {
        Span::from_nanos(self.probe)
    }

    /// The gap that holds the average load; zero before the first chirp.
    #[must_use]
    pub fn load_gap(&self) -> Span {
        Span::from_nanos(self.load)
    }

    fn packets_of(&self, number: u32) -> u32 {
        let later = || ((self.aggregation * self.config.per_burst) as u32).max(self.config.packets);
        self.config.first_packets.get(number as usize).copied().unwrap_or_else(later).clamp(2, MOST_PACKETS)
    }

    fn begin(&mut self, srtt: Span) {
        if self.probe > 0 {
            return;
        }
        let config = &self.config;
        (self.probe, self.load) = if srtt.is_zero() {
            (config.unknown_probe_gap.as_nanos(), config.unknown_load_gap.as_nanos())
        } else {
            let share = |divisor: u32| (srtt / u64::from(divisor.max(1))).as_nanos().max(1);
            (share(config.probe_divisor).min(config.max_probe_gap.as_nanos()), share(config.load_divisor))
        };
        self.load = self.load.max(self.probe);
    }

    fn is_discontinuous(&self) -> bool {
        self.aggregation > self.config.discontinuous
    }

    /// How steep the next chirp is: less so as the load approaches the estimate, but never flat.
    fn geometry(&self, packets: u32) -> u64 {
        let most = if self.is_discontinuous() {
            self.config.geometry.min(self.config.discontinuous_geometry)
        } else {
            self.config.geometry
        };
        let probe = self.probe.max(1) as f64;
        let least = 1.0 + f64::from(packets - 1) * self.config.min_step.as_nanos() as f64 / probe;
        ratio_from_f64((self.load as f64 / probe).max(least).min(most))
    }

    /// Counts ACKs that came together and those that came late, against the gaps with which their
    /// packets left.
    fn observe(&mut self, points: &[Point]) {
        let (mut together, mut jumps) = (0_u32, 0_u32);
        for pair in points.windows(2) {
            let sent = pair[1].gaps / u64::from(pair[1].packets.max(1));
            let came = pair[1].gaps.saturating_add(pair[1].delay).saturating_sub(pair[0].delay);
            if came < self.probe / 2 {
                together += 1;
            } else if came > self.probe.saturating_mul(2) && came > sent {
                jumps += 1;
            }
            // One ACK for several packets is aggregation too.
            together += pair[1].packets.saturating_sub(1);
            jumps += u32::from(pair[1].packets > 1);
        }
        if jumps > 0 {
            let seen = f64::from(together + jumps) / f64::from(jumps);
            self.aggregation += (seen - self.aggregation) / 2.0;
        } else {
            self.aggregation += (1.0 - self.aggregation) / 2.0;
        }
    }
}

impl Schedule for TwoGap {
    const PLANS_ANEW: bool = false;

    fn pull(&mut self, now: Time, number: u32, next: &Next, _window: &Window, before: Option<&Before>) -> Pull {
        self.begin(next.srtt);
        let packets = self.packets_of(number);
        if next.queued < u64::from(packets) {
            return Pull::Unchirped;
        }
        let room = packets_in(next.srtt, self.load);
        if next.in_flight >= room && next.in_flight > 0 && !next.srtt.is_zero() {
            return Pull::Hold;
        }
        let mut average = self.probe.min(self.load);
        if self.is_discontinuous() {
            average -= average / 4;
        }
        let shape = Geometry::with_wide_steps(packets, average, self.geometry(packets));
        let mean = shape.length() / u64::from(packets - 1);
        let left = self.load.saturating_sub(mean).saturating_mul(u64::from(packets - 1));
        let guard = if self.load > mean { self.load.saturating_add(left) } else { average };
        self.planned = number.saturating_add(1);
        let at = before.map_or(now, |before| before.after.max(now));
        Pull::Chirp(Plan { geometry: shape, guard, at, load: self.load })
    }

    fn completed(&mut self, _number: u32, measured: Option<&Measured>, in_flight: u32) {
        self.completed = self.completed.saturating_add(1);
        let Some(chirp) = measured else { return };
        self.observe(chirp.points());
        let Some(mut raw) = estimate(chirp.gaps(), chirp.delays(), self.rule) else { return };
        let packets = chirp.gaps().len() as u32;
        let log2 = |n: u32| n.saturating_add(1).ilog2();
        let mut shift = log2(in_flight).saturating_sub(log2(packets)).max(1);
        let queue = chirp.min_rtt().as_nanos().saturating_sub(self.min_rtt.as_nanos());
        if self.min_rtt != Span::MAX && queue as f64 > self.min_rtt.as_nanos() as f64 * self.config.persistent_queue {
            raw = self.delivery_gap.unwrap_or(u64::MAX).min(self.ack_gap.max(1));
            shift = 1;
        }
        let towards = |from: u64, to: u64, shift: u32| {
            let step = (i128::from(to) - i128::from(from)) >> shift.min(64);
            u64::try_from(i128::from(from) + step).unwrap_or(u64::MAX).max(1)
        };
        self.probe = towards(self.probe, raw, shift);
        if self.probe < self.load {
            self.load = towards(self.load, self.probe, shift + 1);
        }
    }

    fn verdict(&mut self, ack: &Ack, completed: bool) -> Option<Exit> {
        self.min_rtt = ack.min_rtt;
        if let Some(last) = self.last_ack {
            let gap = ack.now.since(last).as_nanos();
            self.ack_gap = if self.ack_gap == 0 { gap } else { self.ack_gap.midpoint(gap) };
        }
        self.last_ack = Some(ack.now);
        self.delivery_gap = ack.rate.map(|rate| rate.gap().as_nanos());
        if !completed || self.probe == 0 {
            return None;
        }
        // A path that sends in bursts holds more than it seems to.
        let pipe = packets_in(ack.min_rtt, self.probe);
        let most = if self.is_discontinuous() { INFINITE_SSTHRESH } else { pipe.max(2) };
        let cwnd = ack.in_flight.clamp(2, most);
        let overload = ack.min_rtt != Span::MAX && ack.srtt >= ack.min_rtt + self.config.overload;
        if self.load <= self.probe || overload {
            return Some(exit(ExitReason::PipeFull, cwnd, self.probe, self.mss));
        }
        if self.completed >= self.config.max_chirps || self.load < self.config.min_load_gap.as_nanos() {
            let exit = exit(ExitReason::Limit, cwnd, self.load, self.mss);
            return Some(Exit { ssthresh: INFINITE_SSTHRESH, ..exit });
        }
        None
    }

    fn permission(&self, number: u32, leaving: u32) -> u32 {
        leaving.saturating_add(2 * self.packets_of(number.max(self.planned)))
    }

    fn on_loss(&mut self, _now: Time, in_flight: u32) -> Option<(u32, u32)> {
        let pipe = if self.min_rtt == Span::MAX { in_flight } else { packets_in(self.min_rtt, self.probe) };
        let cwnd = in_flight.clamp(2, pipe.max(2));
        Some((cwnd, (cwnd / 2).max(2)))
    }

    fn stall(&self, _host: bool) -> f64 {
        self.config.stall
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = mss.bytes();
        self.probe = mss.gap(self.probe);
        self.load = mss.gap(self.load);
        self.delivery_gap = self.delivery_gap.map(|gap| mss.gap(gap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chirps_have_at_most_as_many_packets_as_is_said() {
        let most = TwoGapChirpingConfig { packets: 256, first_packets: vec![256], ..TwoGapChirpingConfig::default() };
        assert_eq!(most.validate(), Ok(()));
        let more = TwoGapChirpingConfig { packets: 257, ..TwoGapChirpingConfig::default() };
        assert_eq!(more.validate().unwrap_err().to_string(), "packets must be between 2 and 256");
        // Out of range they are moved into it.
        let packets = |packets| TwoGap::new(&TwoGapChirpingConfig { packets, ..more.clone() }, 1448).packets_of(9);
        assert_eq!([0, 16, 256, u32::MAX].map(packets), [4, 16, 256, 256]);
    }

    #[test]
    fn where_acks_come_at_once_chirps_are_longer_and_flatter_by_constants() {
        let of = |per_burst, discontinuous_geometry| {
            let config = TwoGapChirpingConfig { per_burst, discontinuous_geometry, ..TwoGapChirpingConfig::default() };
            let gaps = TwoGap { aggregation: 5.0, probe: 100_000, load: 1_000_000, ..TwoGap::new(&config, 1448) };
            (gaps.packets_of(9), gaps.geometry(16))
        };
        assert_eq!(of(4.0, 1.5), (20, ratio_from_f64(1.5)));
        assert_eq!(of(8.0, 1.25), (40, ratio_from_f64(1.25)));
        let refused = |config: TwoGapChirpingConfig| config.validate().err().map(|error| error.field);
        let default = TwoGapChirpingConfig::default;
        for (per_burst, field) in [(0.0, None), (256.0, None), (-0.1, Some("per_burst")), (f64::NAN, Some("per_burst"))]
        {
            assert_eq!(refused(TwoGapChirpingConfig { per_burst, ..default() }), field, "{per_burst}");
        }
        let flatter = Some("discontinuous_geometry");
        for (discontinuous_geometry, field) in [(1.0, None), (2.0, None), (0.9, flatter), (f64::NAN, flatter)] {
            let config = TwoGapChirpingConfig { discontinuous_geometry, ..default() };
            assert_eq!(refused(config), field, "{discontinuous_geometry}");
        }
    }
}
