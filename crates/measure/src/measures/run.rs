//! What the measures of a race are computed from: one run, and what several of them need of it.

use std::cell::{OnceCell, RefCell};

use flowstart_congestion::ExitReason;
use flowstart_simulator::{FlowOutcome, Outcome};
use flowstart_units::{Bytes, Rate, Span, Time};

use crate::delay::{DelaySummary, Overshoot, overshoot, quantile};
use crate::egress::{Cumulative, Reference};
use crate::exit::Exit;
use crate::others::{max_min_part, waits_of};
use crate::recording::{FlowRecord, LinkRecord, Newcomers, Recording, TransferWaits};
use crate::wait::Wait;

/// What a race's measures are relative to.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Fair share, RTT0 and horizon of the first newcomer.
    pub reference: Reference,
    /// The same of each newcomer: on ways in parallel their fair shares differ.
    pub own: Vec<Reference>,
    /// Rate that the bottleneck carries in the long run.
    pub capacity: Rate,
    /// Bytes of a full packet on the wire.
    pub packet: u32,
    /// Transmission time of a full packet at the bottleneck.
    pub service: Span,
    /// TCP flows that were there before; the flows of lowest numbers.
    pub others: usize,
    /// Newcomers; the flows after these.
    pub newcomers: usize,
    /// Numbers of the others' TCP flows whose way leads through the bottleneck.
    pub passing: Vec<usize>,
    /// How many of the newcomers go through it.
    pub newcomers_passing: usize,
    /// Numbers of the others' datagram flows whose way leads through it.
    pub datagrams: Vec<usize>,
    /// From this number on flows are transfers that arrive, and others' second connections, all
    /// through the bottleneck; `None` over ways in parallel, where they are left out.
    pub arriving: Option<usize>,
    /// Most that a newcomer's own link carries; unlimited if it has none.
    pub access: Rate,
    /// Who shares it, newcomers included, as the fair share counts them.
    pub sharing: Vec<Sharing>,
}

/// One of those who share the bottleneck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The numbers of all its connections, its own first.
    pub connections: Vec<usize>,
    /// Most that it wants; unlimited for a greedy flow.
    pub wants: Rate,
}

impl Sharing {
    /// Bytes that it wants within some time; infinite for a greedy flow.
    #[must_use]
    pub fn wants_in(&self, time: Span) -> f64 {
        bytes_in(self.wants, time)
    }
}

/// Bytes of a rate within some time; infinite if the rate is unlimited.
fn bytes_in(rate: Rate, time: Span) -> f64 {
    if rate.is_unlimited() { f64::INFINITY } else { rate.as_bps() as f64 / 8.0 * time.as_secs_f64() }
}

/// A run in which newcomers start, finished.
#[derive(Debug)]
pub struct StartRun<'a> {
    /// What its measures are relative to.
    pub setting: Setting,
    /// t = 0.
    pub origin: Time,
    /// What was recorded.
    pub with: &'a Recording<Newcomers>,
    /// What was recorded without the newcomers (same seed), if others were there.
    pub without: Option<&'a Recording<Newcomers>>,
    newcomers: Vec<Newcomer<'a>>,
    start_phase: Span,
    delay: OnceCell<Option<DelaySummary>>,
    overshoot: OnceCell<Overshoot>,
    added: OnceCell<AddedWaits>,
    added_in_start: OnceCell<AddedWaits>,
}

/// One newcomer in a run.
#[derive(Debug)]
pub struct Newcomer<'a> {
    /// What its measures are relative to.
    pub reference: Reference,
    /// How much later than the first newcomer's its first data left.
    pub late: Span,
    /// What became of it.
    pub flow: &'a FlowOutcome,
    /// What was recorded of it.
    pub record: &'a FlowRecord,
    /// What left the bottleneck.
    pub egress: Cumulative,
    /// What the receiving application read.
    pub delivered: Cumulative,
    /// How its start ended, if it did.
    pub exit: Option<Exit>,
}

/// The transfer of one size in a run of its own, finished.
#[derive(Debug)]
pub struct TransferRun<'a> {
    /// Its size.
    pub size: Bytes,
    /// The shortest completion time that is possible (M7).
    pub ideal: Span,
    /// What became of it; `None` if it never began.
    pub flow: Option<&'a FlowOutcome>,
    /// How long its packets waited at the bottleneck.
    pub waits: &'a Recording<TransferWaits>,
}

impl<'a> StartRun<'a> {
    /// From what was recorded; `origin` is t = 0.
    #[must_use]
    pub fn new(
        setting: Setting,
        origin: Time,
        outcome: &'a Outcome,
        with: &'a Recording<Newcomers>,
        without: Option<&'a Recording<Newcomers>>,
    ) -> Self {
        let flows = outcome.flows.iter().zip(with.flows()).skip(setting.others).take(setting.newcomers);
        let first = outcome.flows.get(setting.others).map_or(Time::NEVER, |first| first.first_data);
        let newcomers = flows.enumerate().map(|(number, (flow, record))| {
            let reference = setting.own.get(number).unwrap_or(&setting.reference);
            let late = flow.first_data.checked_since(first).filter(|_| flow.first_data != Time::NEVER);
            Newcomer::new((&setting, reference), origin, late.unwrap_or(Span::ZERO), flow, record)
        });
        let newcomers = newcomers.collect();
        let reference = &setting.reference;
        let flows = outcome.flows.iter().skip(setting.others).take(setting.newcomers);
        let ends = flows.map(|flow| flow.start_exit.map(|exit| exit.now.since(origin) + reference.base_rtt));
        let last = ends.map(|end| end.unwrap_or(Span::MAX)).max();
        let start_phase = last.unwrap_or(Span::MAX).min(reference.horizon);
        Self {
            setting,
            origin,
            with,
            without,
            newcomers,
            start_phase,
            delay: OnceCell::new(),
            overshoot: OnceCell::new(),
            added: OnceCell::new(),
            added_in_start: OnceCell::new(),
        }
    }

    /// H.
    #[must_use]
    pub fn horizon(&self) -> Span {
        self.setting.reference.horizon
    }

    /// The newcomers that did anything.
    #[must_use]
    pub fn newcomers(&self) -> &[Newcomer<'a>] {
        &self.newcomers
    }

    /// Waits of all data packets within the horizon; `None` if there were none.
    #[must_use]
    pub fn delay(&self) -> Option<DelaySummary> {
        let (from, to) = (self.origin, self.origin + self.horizon());
        *self.delay.get_or_init(|| DelaySummary::of(self.with.waits(), from, to, |_| true))
    }

    /// M4.
    #[must_use]
    pub fn overshoot(&self) -> Overshoot {
        let (waits, reference) = (self.with.waits(), &self.setting.reference);
        let stride = self.with.bottleneck().map_or(1, LinkRecord::stride);
        *self.overshoot.get_or_init(|| {
            let (rtt, service) = (reference.base_rtt, self.setting.service);
            overshoot(waits, self.origin, rtt, reference.horizon, service, stride)
        })
    }

    /// How long after t = 0 the start of the newcomers lasts, the last of them counting: until one
    /// RTT0 after its end, in which the window that it handed over is sent once; the horizon at
    /// most.
    #[must_use]
    pub fn start_phase(&self) -> Span {
        self.start_phase
    }

    /// Waits of the packets that arrive within the horizon.
    #[must_use]
    pub fn added(&self) -> &AddedWaits {
        self.added.get_or_init(|| AddedWaits::new(self, self.horizon()))
    }

    /// Waits of the packets that arrive while the start lasts.
    #[must_use]
    pub fn added_in_start(&self) -> &AddedWaits {
        self.added_in_start.get_or_init(|| AddedWaits::new(self, self.start_phase()))
    }

    /// Bytes that the bottleneck can carry between two times after t = 0.
    #[must_use]
    pub fn possible(&self, from: Span, to: Span) -> f64 {
        let mean = bytes_in(self.setting.capacity, to - from);
        self.setting.reference.of_mean(from, to).map_or(mean, |of_mean| mean * of_mean)
    }

    /// Bytes that the others' TCP flows would carry together within the horizon if those beside the
    /// newcomers shared it max-min fairly: greedy and paced ones as the fair share counts them,
    /// datagrams taken off. Whoever that does not count (transfers, flows that come or go,
    /// arrivals) wants what it carried without the newcomers.
    #[must_use]
    pub fn fair_for_others(&self, without: &Recording<Newcomers>) -> f64 {
        let (setting, horizon) = (&self.setting, self.horizon());
        let carried =
            |number: usize| without.flows().get(number).map_or(0.0, |flow| flow.egress.cumulative().at(horizon));
        let datagrams: f64 = setting.datagrams.iter().map(|number| carried(*number)).sum();
        let left = self.possible(Span::ZERO, horizon) - datagrams - without.carried_beyond() as f64;
        let wants = |number: &usize| {
            let sharing = setting.sharing.iter().find(|one| one.connections.first() == Some(number));
            sharing.map_or_else(|| carried(*number), |one| one.wants_in(horizon))
        };
        let others: Vec<f64> = setting.passing.iter().map(wants).collect();
        let arriving = setting.arriving.map_or(0..0, |first| first..without.flows().len());
        let newcomers = std::iter::repeat_n(bytes_in(setting.access, horizon), setting.newcomers_passing);
        max_min_part(left, &others, &arriving.map(carried).chain(newcomers).collect::<Vec<_>>())
    }

    /// Bytes of the others' TCP flows through the bottleneck within the horizon.
    #[must_use]
    pub fn carried_by_others(&self, recording: &Recording<Newcomers>) -> f64 {
        let flows = self.setting.passing.iter().filter_map(|number| recording.flows().get(*number));
        flows.map(|flow| flow.egress.cumulative().at(self.horizon())).sum()
    }
}

impl<'a> Newcomer<'a> {
    fn new(
        (setting, reference): (&Setting, &Reference),
        origin: Time,
        late: Span,
        flow: &'a FlowOutcome,
        record: &'a FlowRecord,
    ) -> Self {
        let reference = reference.clone();
        let exit = flow.start_exit.map(|exit| {
            let without_loss = !matches!(exit.reason, ExitReason::Loss | ExitReason::Timeout);
            let (after, rtt) = (exit.now.since(origin), reference.base_rtt);
            // Of a capacity that changes that of the RTT0 before, a packet at least.
            let least = if reference.moments.is_some() { f64::from(setting.packet) } else { 0.0 };
            let bdp = reference.possible_before(after).max(least);
            Exit::new(after, rtt, exit.cwnd, exit.in_flight, setting.packet, bdp, without_loss)
        });
        let (egress, delivered) = (record.egress.cumulative(), record.delivered.cumulative());
        Self { reference, late, flow, record, egress, delivered, exit }
    }
}

/// Waits of the packets that arrive until some time after t = 0, in whatever order the last
/// percentile left them.
#[derive(Debug)]
pub struct AddedWaits {
    own: RefCell<Vec<Span>>,
    others: RefCell<Vec<Span>>,
    /// The others' without the newcomers.
    before: RefCell<Vec<Span>>,
}

impl AddedWaits {
    fn new(run: &StartRun<'_>, until: Span) -> Self {
        let of = |recording: &Recording<Newcomers>, own| {
            let wanted = |wait: &Wait| recording.is_new(wait.flow) == own;
            RefCell::new(waits_of(recording.waits(), wanted, run.origin, until))
        };
        let before = run.without.map_or_else(RefCell::default, |without| of(without, false));
        Self { own: of(run.with, true), others: of(run.with, false), before }
    }

    /// A percentile for the others minus that without the newcomers, in ms; `None` if there are
    /// none.
    #[must_use]
    pub fn others(&self, percentile: u8) -> Option<f64> {
        Some(rank(&self.others, percentile)? - rank(&self.before, percentile)?)
    }

    /// A percentile for the newcomers, in ms: more than the others wait without them, or more than
    /// nothing.
    #[must_use]
    pub fn own(&self, percentile: u8) -> Option<f64> {
        Some(rank(&self.own, percentile)? - rank(&self.before, percentile).unwrap_or(0.0))
    }
}

/// A percentile of waits in ms.
fn rank(waits: &RefCell<Vec<Span>>, percentile: u8) -> Option<f64> {
    Some(quantile(&mut waits.borrow_mut(), f64::from(percentile) / 100.0)?.as_millis_f64())
}
