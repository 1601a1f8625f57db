//! Running a race on all cores, and measuring.

use std::rc::Rc;

use flowstart_simulator::{Observer, Outcome, Simulation, SimulationConfig};
use flowstart_units::{Bytes, Span, Time};

use super::build::Purpose;
use super::measures::{ADDED_PERCENTILES, DELIVERED_RTTS, START_PERCENTILES, TIME_TO_LEVELS};
use super::record::{labels, without_loss};
use super::{Contestant, ContestantResult, Measure, Race, RaceError, RaceResult, RunRecord, Series};
use flowstart_measure::{
    DelaySummary, Exit, FlowRecord, Origin, OwnWaits, Probe, ProbeConfig, busy_time, convergence, deficit, duplicates,
    geometric_mean, harm, jain, least_utilisation, overhead, overshoot, quantile, slowdown, time_to, waits,
};
use flowstart_parallel::{Cancel, in_parallel};
use flowstart_scenario::Scenario;

/// How a race is run; nothing in here changes its result.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Threads; `None` for one per core.
    pub threads: Option<usize>,
    /// Asks to stop: simulations in progress are given up, finished ones kept.
    pub cancel: Option<&'a Cancel>,
    /// Told now and then how many simulations are done, of how many.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

/// One simulation (or pair of them) to do.
#[derive(Clone, Copy, Debug)]
struct Job {
    contestant: usize,
    run: u64,
    transfer: Option<Bytes>,
}

/// What a job brings.
#[derive(Default)]
pub(crate) struct JobResult {
    pub(crate) values: Vec<(Measure, f64)>,
    pub(crate) exits: Vec<Option<flowstart_congestion::ExitReason>>,
    series: Option<Series>,
    pub(crate) data_packets: u64,
    simulated: f64,
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

/// What one simulation of a race is: whose, for what, and in which run.
type Part<'a> = (&'a Contestant, Purpose, u64);

/// Who runs the simulations of a race.
pub(crate) trait Runner {
    /// Runs one. `None` if it was given up.
    fn run<O: Observer>(
        &self,
        race: &Race,
        part: Part<'_>,
        config: &SimulationConfig,
        observer: O,
        slice: Span,
    ) -> Result<Option<(Outcome, O)>, RaceError>;
}

/// The simulator, looking up now and then whether it should give up.
impl Runner for Cancel {
    fn run<O: Observer>(
        &self,
        _race: &Race,
        _part: Part<'_>,
        config: &SimulationConfig,
        observer: O,
        slice: Span,
    ) -> Result<Option<(Outcome, O)>, RaceError> {
        let mut simulation = Simulation::new(config, observer)
            .map_err(|error| RaceError::new(format!("cannot be simulated: {error}")))?;
        let mut until = Time::ZERO + slice;
        while !simulation.run_until(until) {
            if self.is_cancelled() {
                return Ok(None);
            }
            until += slice;
        }
        Ok(Some(simulation.finish()))
    }
}

/// A place to run scenarios that is not the simulator: the emulator, with a kernel's TCP.
pub trait Stage {
    /// Runs the scenario of one part of a race (its run number `run`) and shows the observer what happened, in order of time. `None` if it was given up.
    ///
    /// # Errors
    /// One sentence on why it cannot be run there.
    fn run(&self, scenario: &Scenario, run: u64, observer: &mut dyn Observer) -> Result<Option<Outcome>, String>;
}

/// A stage as a runner.
struct OnStage<'a>(&'a dyn Stage);

impl Runner for OnStage<'_> {
    fn run<O: Observer>(
        &self,
        race: &Race,
        (contestant, purpose, run): Part<'_>,
        _config: &SimulationConfig,
        mut observer: O,
        _slice: Span,
    ) -> Result<Option<(Outcome, O)>, RaceError> {
        let scenario = race.scenario(contestant, purpose, run);
        let outcome = self.0.run(&scenario, run, &mut observer);
        Ok(outcome
            .map_err(|error| RaceError::new(format!("{contestant}: {error}")))?
            .map(|outcome| (outcome, observer)))
    }
}

impl Race {
    /// Runs the race. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// If the race is not [valid](Race::validate) or no threads can be started.
    pub fn run(&self, options: &RunOptions<'_>) -> Result<RaceResult, RaceError> {
        self.validate()?;
        let jobs = self.jobs();
        let never = Cancel::default();
        let cancel = options.cancel.unwrap_or(&never);
        let progress = |done| {
            if let Some(progress) = options.progress {
                progress(done, jobs.len());
            }
        };
        let results =
            in_parallel(jobs.len(), options.threads, cancel, progress, |number| self.job(&jobs[number], cancel))
                .map_err(RaceError::new)?
                .into_iter()
                .map(|result| result.unwrap_or(Ok(None)))
                .collect::<Result<_, _>>()?;
        Ok(self.assemble(&jobs, results))
    }

    /// Runs the race somewhere else than in the simulator, one part after the other.
    ///
    /// # Errors
    /// If the race is not [valid](Race::validate), or the stage cannot run it.
    pub fn run_on(
        &self,
        stage: &dyn Stage,
        cancel: &Cancel,
        progress: impl Fn(usize, usize),
    ) -> Result<RaceResult, RaceError> {
        self.validate()?;
        let jobs = self.jobs();
        let mut results = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            results.push(if cancel.is_cancelled() { None } else { self.job(job, &OnStage(stage))? });
            progress(number + 1, jobs.len());
        }
        Ok(self.assemble(&jobs, results))
    }

    /// Run by run, so that an interrupted race has whole runs; within a run the longest first, so that no core is left alone with one.
    fn jobs(&self) -> Vec<Job> {
        let mut sizes: Vec<Bytes> = self.sizes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        let transfers: Vec<Option<Bytes>> = sizes.into_iter().rev().map(Some).chain([None]).collect();
        let mut jobs = Vec::new();
        for run in 0..u64::from(self.effective_runs()) {
            for transfer in &transfers {
                let of = |contestant| Job { contestant, run, transfer: *transfer };
                jobs.extend((0..self.contestants.len()).map(of));
            }
        }
        jobs
    }

    fn job(&self, job: &Job, runner: &impl Runner) -> Result<Option<JobResult>, RaceError> {
        let contestant = &self.contestants[job.contestant];
        match job.transfer {
            Some(size) => self.transfer(contestant, job.run, size, runner),
            None => self.start(contestant, job.run, runner, |origin| {
                Ok(self.baseline(contestant, job.run, origin, runner)?.map(Rc::new))
            }),
        }
    }

    /// M7 of one transfer.
    pub(crate) fn transfer(
        &self,
        contestant: &Contestant,
        run: u64,
        size: Bytes,
        runner: &impl Runner,
    ) -> Result<Option<JobResult>, RaceError> {
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

    /// All other measures, with the queue and the others as they are `without` the newcomers from the given moment on.
    pub(crate) fn start(
        &self,
        contestant: &Contestant,
        run: u64,
        runner: &impl Runner,
        without: impl FnOnce(Time) -> Result<Option<Rc<Baseline>>, RaceError>,
    ) -> Result<Option<JobResult>, RaceError> {
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
    pub(crate) fn baseline(
        &self,
        contestant: &Contestant,
        run: u64,
        origin: Time,
        runner: &impl Runner,
    ) -> Result<Option<Baseline>, RaceError> {
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

    /// How long after t = 0 the start of the newcomers lasts, the last of them counting: until one RTT0 after its end, in which the window
    /// that it handed over is sent once; the horizon at most.
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

    fn assemble(&self, jobs: &[Job], results: Vec<Option<JobResult>>) -> RaceResult {
        let mut contestants: Vec<ContestantResult> = self
            .contestants
            .iter()
            .zip(labels(&self.contestants))
            .map(|(contestant, label)| ContestantResult {
                contestant: contestant.clone(),
                label,
                runs: Vec::new(),
                series: None,
            })
            .collect();
        let finished = results.iter().flatten().count();
        let per_run = jobs.len() / (self.contestants.len() * self.effective_runs() as usize).max(1);
        let (mut data_packets, mut simulated_seconds) = (0, 0.0);
        let mut parts: Vec<Vec<usize>> =
            self.contestants.iter().map(|_| vec![0; self.effective_runs() as usize]).collect();
        for (job, result) in jobs.iter().zip(results) {
            let Some(mut result) = result else { continue };
            data_packets += result.data_packets;
            simulated_seconds += result.simulated;
            parts[job.contestant][job.run as usize] += 1;
            let contestant = &mut contestants[job.contestant];
            let index = match contestant.runs.binary_search_by_key(&job.run, |record| record.run) {
                Ok(index) => index,
                Err(index) => {
                    contestant.runs.insert(index, RunRecord { run: job.run, ..RunRecord::default() });
                    index
                }
            };
            let record = &mut contestant.runs[index];
            record.values.append(&mut result.values);
            record.exits.append(&mut result.exits);
            record.complete = parts[job.contestant][job.run as usize] == per_run;
            contestant.series = contestant.series.take().or(result.series);
        }
        for contestant in &mut contestants {
            for record in &mut contestant.runs {
                let ratios: Vec<f64> =
                    self.sizes.iter().filter_map(|size| record.get(Measure::Slowdown(*size))).collect();
                if ratios.len() == self.sizes.len()
                    && let Some(mean) = geometric_mean(&ratios)
                {
                    record.values.push((Measure::SlowdownMean, mean));
                }
            }
        }
        self.relate_harm(&mut contestants);
        RaceResult {
            race: self.clone(),
            contestants,
            complete: finished == jobs.len(),
            simulations: (finished, jobs.len()),
            data_packets,
            simulated_seconds,
        }
    }

    /// M9's ratio: harm of each contestant over that of the reference in the same run.
    fn relate_harm(&self, contestants: &mut [ContestantResult]) {
        let Ok(reference) = REFERENCE_CONTESTANT.parse::<super::Contestant>() else { return };
        let harms: Vec<(u64, f64)> = contestants
            .iter()
            .find(|c| c.contestant.name() == reference.name())
            .map(|c| c.runs.iter().filter_map(|run| Some((run.run, run.get(Measure::Harm)?))).collect())
            .unwrap_or_default();
        for record in contestants.iter_mut().flat_map(|contestant| &mut contestant.runs) {
            let reference = harms.iter().find(|(run, _)| *run == record.run).map(|(_, harm)| *harm);
            if let (Some(harm), Some(reference)) = (record.get(Measure::Harm), reference)
                && let Some(ratio) = flowstart_measure::harm_ratio(harm, reference)
            {
                record.values.push((Measure::HarmRatio, ratio));
            }
        }
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
/// M9: whose harm others' are related to.
const REFERENCE_CONTESTANT: &str = "hystart+cubic";

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
