//! One part of a race: a simulation (or a pair of them), and what is measured of it.

use std::rc::Rc;

use flowstart_simulator::Outcome;
use flowstart_units::{Bytes, Span, Time};

use super::build::Purpose;
use super::measures::{ADDED_PERCENTILES, DELIVERED_RTTS, START_PERCENTILES, TIME_TO_LEVELS};
use super::record::without_loss;
use super::stage::Runner;
use super::{Contestant, Measure, Race, Series};
use flowstart_measure::{
    DelaySummary, Exit, FlowRecord, Origin, OwnWaits, Probe, ProbeConfig, busy_time, convergence, deficit, duplicates,
    harm, jain, least_utilisation, overhead, overshoot, quantile, slowdown, time_to, waits,
};

/// What a job brings.
#[derive(Default)]
pub(crate) struct JobResult {
    pub(crate) values: Vec<(Measure, f64)>,
    pub(crate) exits: Vec<Option<flowstart_congestion::ExitReason>>,
    pub(crate) series: Option<Series>,
    pub(crate) data_packets: u64,
    pub(crate) simulated: f64,
}

/// What the others did without the newcomers, from the moment on that they would have come.
#[derive(Debug)]
pub(crate) struct Baseline {
    probe: Probe,
    data_packets: u64,
    simulated: f64,
}

/// Slices of virtual time between which cancellation is looked for.
const SLICES: u64 = 256;

impl Race {
    /// M7 of one transfer.
    pub(crate) fn transfer<R: Runner>(
        &self,
        contestant: &Contestant,
        run: u64,
        size: Bytes,
        runner: &R,
    ) -> Result<Option<JobResult>, R::Error> {
        let config = self.simulation(contestant, Purpose::Transfer(size), run)?;
        let slice = (self.effective_warm_up() + self.ideal(size) * 4) / SLICES + Span::from_millis(1);
        let first = self.others.tcp_flows();
        let watched = OwnWaits::new(0, [first..first + 1, self.companions(contestant, &config, 1)]);
        let Some((outcome, waits)) =
            runner.run(self, (contestant, Purpose::Transfer(size), run), &config, watched, slice)?
        else {
            return Ok(None);
        };
        let mut result = JobResult {
            data_packets: outcome.data_packets,
            simulated: outcome.ended.as_secs_f64(),
            ..JobResult::default()
        };
        if let Some(wait) = waits.quantile(TRANSFER_QUANTILE) {
            result.values.push((Measure::TransferDelay(size), wait.as_millis_f64()));
        }
        if let Some(flow) = outcome.flows.get(first as usize)
            && let Some(completed) = flow.completed
        {
            let completion = completed.since(flow.first_data);
            result.values.push((Measure::Completion(size), completion.as_millis_f64()));
            result.values.push((Measure::Slowdown(size), slowdown(completion, self.ideal(size))));
        }
        Ok(Some(result))
    }

    /// All other measures, with the queue and the others as they are `without` the newcomers from
    /// the given moment on.
    pub(crate) fn start<R: Runner>(
        &self,
        contestant: &Contestant,
        run: u64,
        runner: &R,
        without: impl FnOnce(Time) -> Result<Option<Rc<Baseline>>, R::Error>,
    ) -> Result<Option<JobResult>, R::Error> {
        let config = self.simulation(contestant, Purpose::Start, run)?;
        let companions = self.companions(contestant, &config, self.flows);
        let probe = Probe::new(ProbeConfig { companions, ..self.probe(run, Origin::FirstData) });
        let Some((outcome, probe)) =
            runner.run(self, (contestant, Purpose::Start, run), &config, probe, self.slice())?
        else {
            return Ok(None);
        };
        let mut result = JobResult {
            data_packets: outcome.data_packets,
            simulated: outcome.ended.as_secs_f64(),
            ..JobResult::default()
        };
        let Some(origin) = probe.origin() else { return Ok(Some(result)) };
        self.measure_newcomers(&outcome, &probe, origin, &mut result);
        self.measure_queue(&probe, origin, &mut result);
        if self.has_others() {
            let Some(without) = without(origin)? else { return Ok(None) };
            result.data_packets += without.data_packets;
            result.simulated += without.simulated;
            self.measure_harm(&probe, &without.probe, origin, &mut result);
            self.measure_start(&outcome, &probe, Some(&without.probe), origin, &mut result);
        } else {
            self.measure_start(&outcome, &probe, None, origin, &mut result);
        }
        if run == 0
            && let Some(first) = probe.flows().get(self.others.tcp_flows() as usize)
        {
            result.series = Some(Series::new(self, &probe, first));
        }
        Ok(Some(result))
    }

    /// The others alone, over the queue that `contestant` meets. `None` after a cancellation.
    pub(crate) fn baseline<R: Runner>(
        &self,
        contestant: &Contestant,
        run: u64,
        origin: Time,
        runner: &R,
    ) -> Result<Option<Baseline>, R::Error> {
        let config = self.simulation(contestant, Purpose::Without, run)?;
        let companions = self.companions(contestant, &config, self.flows);
        let probe = Probe::new(ProbeConfig { companions, ..self.probe(run, Origin::At(origin)) });
        let Some((outcome, probe)) =
            runner.run(self, (contestant, Purpose::Without, run), &config, probe, self.slice())?
        else {
            return Ok(None);
        };
        Ok(Some(Baseline { probe, data_packets: outcome.data_packets, simulated: outcome.ended.as_secs_f64() }))
    }

    fn slice(&self) -> Span {
        (self.effective_warm_up() + self.horizon()) / SLICES + Span::from_millis(1)
    }

    /// Bytes of the others' TCP flows through the bottleneck within the horizon.
    fn carried_by_others(&self, probe: &Probe) -> f64 {
        let others = probe.flows().iter().take(self.others.tcp_flows() as usize);
        others.map(|flow| flow.egress.cumulative().at(self.horizon())).sum()
    }

    /// What is measured of each newcomer, averaged over them.
    fn measure_newcomers(&self, outcome: &Outcome, probe: &Probe, origin: Time, result: &mut JobResult) {
        let first = self.others.tcp_flows() as usize;
        let mut means = Means::default();
        for (flow, record) in outcome.flows.iter().zip(probe.flows()).skip(first).take(self.flows as usize) {
            self.measure_speed(record, &mut means);
            means.add(Measure::LostBefore, record.dropped_in_start as f64);
            means.add(Measure::LostAfter, record.dropped_later as f64);
            means.add(Measure::Retransmitted, record.retransmitted as f64);
            means.add(Measure::Timeouts, flow.timeouts as f64);
            means.add(Measure::Marked, record.marked as f64);
            let once = record.payload_sent - record.payload_retransmitted;
            means.add_some(
                Measure::Overhead,
                overhead(Bytes::new(record.payload_sent), Bytes::new(once)).map(|x| x * 100.0),
            );
            result.exits.push(flow.start_exit.map(|exit| exit.reason));
            if let Some(start_exit) = flow.start_exit {
                let reference = self.reference();
                let after = start_exit.now.since(origin);
                let exit = Exit::new(
                    after,
                    reference.base_rtt,
                    start_exit.cwnd,
                    start_exit.in_flight,
                    self.packet(),
                    reference.bdp(),
                    without_loss(start_exit.reason),
                );
                means.add(Measure::ExitMs, after.as_millis_f64());
                means.add(Measure::ExitRtts, exit.after_rtts);
                means.add(Measure::ExitWindow, exit.window_per_bdp);
                means.add(Measure::ExitQuality, exit.quality);
                means.add(Measure::ExitInFlight, exit.in_flight_per_window);
                let watched = after + reference.base_rtt * WATCHED_AFTER_EXIT_RTTS;
                means.add_some(Measure::Undershoot, least_utilisation(&record.egress, &reference, after, watched));
            }
        }
        means.finish(&mut result.values);
        let own = first..first + self.flows as usize;
        let others: u64 =
            probe.flows().iter().enumerate().filter(|(i, _)| !own.contains(i)).map(|(_, flow)| flow.dropped()).sum();
        result.values.push((Measure::LostOthers, others as f64));
    }

    fn measure_speed(&self, record: &FlowRecord, means: &mut Means) {
        let reference = self.reference();
        let egress = record.egress.cumulative();
        for percent in TIME_TO_LEVELS {
            let time = time_to(f64::from(percent) / 100.0, &egress, &reference);
            means.add(Measure::TimeTo(percent), time.unwrap_or(reference.horizon_rtts()));
        }
        means.add(Measure::Deficit, deficit(&egress, &reference));
        means.add(Measure::Duplicates, duplicates(Bytes::new(record.duplicate_bytes), &reference));
        let delivered = record.delivered.cumulative();
        for rtts in DELIVERED_RTTS {
            let by = reference.base_rtt * u64::from(rtts);
            if by <= reference.horizon {
                means.add(Measure::Delivered(rtts), delivered.at(by) / 1e6);
            }
        }
        if self.has_others() {
            means.add_some(Measure::Convergence, convergence(&egress, &reference));
        }
    }

    fn measure_queue(&self, probe: &Probe, origin: Time, result: &mut JobResult) {
        let samples = probe.samples();
        let (rtt, horizon) = (self.base_rtt(), self.horizon());
        let mut put = |measure, value: f64| result.values.push((measure, value));
        if let Some(delay) = DelaySummary::of(samples.samples(), origin, origin + horizon, |_| true) {
            put(Measure::DelayMax, delay.max.as_millis_f64());
            put(Measure::DelayP99, delay.p99.as_millis_f64());
            put(Measure::DelayMean, delay.mean.as_millis_f64());
        }
        let over = overshoot(samples.samples(), origin, rtt, horizon, self.service(), samples.stride());
        put(Measure::OvershootPeak, over.peak.as_millis_f64());
        put(Measure::OvershootArea, over.area);
        if self.has_others() {
            let busy = busy_time(samples.samples(), origin, horizon, over.before + BUSY_MARGIN);
            put(Measure::BusyTime, busy.as_millis_f64());
        }
        let last = horizon - (rtt * JAIN_RTTS).min(horizon);
        let shares: Vec<f64> = probe.flows().iter().map(|f| f.egress.cumulative().between(last, horizon)).collect();
        if let Some(index) = jain(&shares) {
            put(Measure::Jain, index);
        }
    }

    fn measure_harm(&self, with: &Probe, without: &Probe, origin: Time, result: &mut JobResult) {
        let horizon = self.horizon();
        let others = self.others.tcp_flows() as usize;
        let capacity = self.capacity().as_bps() as f64 / 8.0 * horizon.as_secs_f64();
        let carried = self.carried_by_others(with);
        if let Some(harm) = harm(self.carried_by_others(without), carried, capacity, others, self.flows as usize) {
            result.values.push((Measure::Harm, harm * 100.0));
        }
        let mut added = AddedWaits::new(with, Some(without), origin, horizon);
        for percentile in ADDED_PERCENTILES {
            if let Some(added) = added.others(percentile) {
                result.values.push((Measure::AddedDelay(percentile), added));
            }
        }
    }

    /// How long after t = 0 the start of the newcomers lasts, the last of them counting: until one
    /// RTT0 after its end, in which the window that it handed over is sent once; the horizon at
    /// most.
    fn start_phase(&self, outcome: &Outcome, origin: Time) -> Span {
        let newcomers = outcome.flows.iter().skip(self.others.tcp_flows() as usize).take(self.flows as usize);
        let ends = newcomers.map(|flow| flow.start_exit.map(|exit| exit.now.since(origin) + self.base_rtt()));
        ends.map(|end| end.unwrap_or(Span::MAX)).max().unwrap_or(Span::MAX).min(self.horizon())
    }

    /// Delay and losses that the newcomers cause while they start.
    fn measure_start(
        &self,
        outcome: &Outcome,
        with: &Probe,
        without: Option<&Probe>,
        origin: Time,
        result: &mut JobResult,
    ) {
        let until = self.start_phase(outcome, origin);
        let mut added = AddedWaits::new(with, without, origin, until);
        for percentile in START_PERCENTILES {
            if let Some(own) = added.own(percentile) {
                result.values.push((Measure::StartOwnDelay(percentile), own));
            }
            if let Some(others) = added.others(percentile) {
                result.values.push((Measure::StartOthersDelay(percentile), others));
            }
        }
        let lost = |probe: &Probe| probe.queue_drops().by(until) as f64;
        result.values.push((Measure::StartLost, lost(with) - without.map_or(0.0, lost)));
    }
}

/// Waits of the packets that arrive until some time after t = 0.
struct AddedWaits {
    own: Vec<Span>,
    others: Vec<Span>,
    /// The others' without the newcomers.
    before: Vec<Span>,
}

impl AddedWaits {
    fn new(with: &Probe, without: Option<&Probe>, origin: Time, until: Span) -> Self {
        let of = |probe: &Probe, own| waits(probe.samples().samples(), own, origin, until);
        let before = without.map_or(Vec::new(), |without| of(without, false));
        Self { own: of(with, true), others: of(with, false), before }
    }

    /// For the others, in ms; `None` if there are none.
    fn others(&mut self, percentile: u8) -> Option<f64> {
        Some(rank(&mut self.others, percentile)? - rank(&mut self.before, percentile)?)
    }

    /// For the newcomers, in ms: more than the others wait without them, or more than nothing.
    fn own(&mut self, percentile: u8) -> Option<f64> {
        Some(rank(&mut self.own, percentile)? - rank(&mut self.before, percentile).unwrap_or(0.0))
    }
}

/// A percentile in ms.
fn rank(waits: &mut [Span], percentile: u8) -> Option<f64> {
    Some(quantile(waits, f64::from(percentile) / 100.0)?.as_millis_f64())
}

/// How long after the exit M6 watches for undershoot.
const WATCHED_AFTER_EXIT_RTTS: u64 = 10;
/// Over how many RTT0 at the end of the horizon Jain's index is taken (M10).
const JAIN_RTTS: u64 = 10;
/// M8: the queue counts as busy this much above its mean before t = 0.
const BUSY_MARGIN: Span = Span::from_millis(1);
/// Which quantile of a transfer's queueing delays is told.
const TRANSFER_QUANTILE: f64 = 0.99;
/// Sums over newcomers.
#[derive(Default)]
struct Means(Vec<(Measure, f64, u32)>);

impl Means {
    fn add(&mut self, measure: Measure, value: f64) {
        match self.0.iter_mut().find(|(m, ..)| *m == measure) {
            Some((_, sum, count)) => {
                *sum += value;
                *count += 1;
            }
            None => self.0.push((measure, value, 1)),
        }
    }

    fn add_some(&mut self, measure: Measure, value: Option<f64>) {
        if let Some(value) = value {
            self.add(measure, value);
        }
    }

    fn finish(self, values: &mut Vec<(Measure, f64)>) {
        values.extend(self.0.into_iter().map(|(measure, sum, count)| (measure, sum / f64::from(count))));
    }
}
