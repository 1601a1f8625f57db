//! Running a benchmark on all cores.

use std::sync::atomic::{AtomicU64, Ordering};

use flowstart_service_curve::{BurstCurve, Estimate, RateProbe, StartupCurve, Verdict, Video, VideoConfig, probe_rate};
use flowstart_simulator::Simulation;
use flowstart_units::Time;

use super::path::Prepared;
use super::{Attained, Benchmark, BenchmarkResult, MESSAGE, VIDEO_FRAMES, VIDEO_SEED, VideoBound};
use flowstart_parallel::{Cancel, in_parallel};
use flowstart_probing::{Deliveries, Train, TrainConfig};
use flowstart_race::{RaceError, RunOptions, labels};

/// One simulation to do.
#[derive(Clone, Copy)]
enum Job {
    /// A contestant at the rate of this index.
    Probe(usize, usize),
    /// A contestant's new connection.
    Startup(usize, u32),
    /// A contestant's bursts.
    Bursts(usize),
}

/// What a job brings.
enum JobResult {
    Probe(Box<RateProbe>, f64),
    Startup(Vec<u64>, f64),
    Bursts(Option<BurstCurve>, f64),
    /// A lower rate was not accepted, so this one does not count; or the work was cancelled.
    Nothing,
}

/// No rate of the contestant has been refused so far.
const NONE_REFUSED: u64 = u64::MAX;

impl Benchmark {
    /// Runs the benchmark. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// If the benchmark is not [valid](Benchmark::validate) or no threads can be started.
    pub fn run(&self, options: &RunOptions<'_>) -> Result<BenchmarkResult, RaceError> {
        self.validate()?;
        let contestants = self.race.contestants.len();
        // Low rates first: the first that is refused saves those above it.
        let probes = (0..self.rates().len()).flat_map(|rate| (0..contestants).map(move |c| Job::Probe(c, rate)));
        let connections =
            (0..self.effective_connections()).flat_map(|n| (0..contestants).map(move |c| Job::Startup(c, n)));
        let bursts = (0..contestants).filter(|_| self.bursts > 0).map(Job::Bursts);
        let jobs: Vec<Job> = probes.chain(connections).chain(bursts).collect();
        let never = Cancel::default();
        let cancel = options.cancel.unwrap_or(&never);
        let refused: Vec<AtomicU64> = (0..contestants).map(|_| AtomicU64::new(NONE_REFUSED)).collect();
        let progress = |done| {
            if let Some(progress) = options.progress {
                progress(done, jobs.len());
            }
        };
        let results = in_parallel(jobs.len(), options.threads, cancel, progress, |number| match jobs[number] {
            Job::Probe(contestant, rate) => self.probe(contestant, rate, &refused[contestant], cancel),
            Job::Startup(contestant, connection) => self.connection(contestant, connection, cancel),
            Job::Bursts(_) if cancel.is_cancelled() => Ok(JobResult::Nothing),
            Job::Bursts(contestant) => self
                .handed_over(&self.race.contestants[contestant])
                .map(|(bursts, seconds)| JobResult::Bursts(bursts, seconds)),
        })
        .map_err(RaceError::new)?;
        let mut simulated_seconds = 0.0;
        let mut probes: Vec<Vec<RateProbe>> = vec![Vec::new(); contestants];
        let mut delivered: Vec<Vec<Vec<u64>>> = vec![Vec::new(); contestants];
        let mut handed_over: Vec<Option<BurstCurve>> = vec![None; contestants];
        for (job, result) in jobs.iter().zip(results) {
            match (job, result.unwrap_or(Ok(JobResult::Nothing))?) {
                (Job::Probe(contestant, _), JobResult::Probe(probe, seconds)) => {
                    probes[*contestant].push(*probe);
                    simulated_seconds += seconds;
                }
                (Job::Startup(contestant, _), JobResult::Startup(bits, seconds)) => {
                    delivered[*contestant].push(bits);
                    simulated_seconds += seconds;
                }
                (Job::Bursts(contestant), JobResult::Bursts(bursts, seconds)) => {
                    handed_over[*contestant] = bursts;
                    simulated_seconds += seconds;
                }
                _ => {}
            }
        }
        let mut attained: Vec<Attained> = self
            .race
            .contestants
            .iter()
            .zip(labels(&self.race.contestants))
            .zip(probes.into_iter().zip(delivered))
            .map(|((contestant, label), (probes, delivered))| {
                let startup = StartupCurve::new(&self.startup_times(), &delivered, self.startup_epsilon).ok();
                let conditions = format!("{}, {}", contestant.conditions(), self.race.queue_name(contestant));
                self.attained(label, conditions, Estimate::new(until_refused(probes), &self.probe), startup)
            })
            .collect::<Result<_, _>>()?;
        for (one, bursts) in attained.iter_mut().zip(handed_over) {
            one.bursts = bursts;
        }
        simulated_seconds += self.calibrate(&mut attained, options, cancel)?;
        let complete = !cancel.is_cancelled();
        Ok(BenchmarkResult { benchmark: self.clone(), attained, complete, simulated_seconds })
    }

    /// What follows from an estimate.
    pub(super) fn attained(
        &self,
        label: String,
        conditions: String,
        estimate: Estimate,
        startup: Option<StartupCurve>,
    ) -> Result<Attained, RaceError> {
        let wrong = |error: flowstart_service_curve::Error| RaceError::new(error.to_string());
        let band = estimate.band(&Self::times(), &self.band).map_err(wrong)?;
        let synthetic = VideoConfig { mean: self.video_rate(), ..VideoConfig::default() };
        let film = match &self.film {
            Some(film) => film.clone(),
            None => Video::generate(&synthetic, VIDEO_FRAMES, VIDEO_SEED).map_err(wrong)?,
        };
        let stable = self.video_rate() < estimate.curve.long_term_rate();
        let frames = if stable { estimate.curve.delay_bounds(&film.arrivals()) } else { Vec::new() };
        Ok(Attained {
            label,
            conditions,
            estimate,
            band,
            video: VideoBound { frames },
            startup,
            bursts: None,
            joint: None,
        })
    }

    fn probe(
        &self,
        contestant: usize,
        rate: usize,
        refused: &AtomicU64,
        cancel: &Cancel,
    ) -> Result<JobResult, RaceError> {
        let rate = self.rates()[rate];
        // A refusal only ever comes nearer: whoever is skipped is above the lowest one in the end,
        // too.
        let unwanted = || cancel.is_cancelled() || refused.load(Ordering::Relaxed) < rate.as_bps();
        if unwanted() {
            return Ok(JobResult::Nothing);
        }
        let contestant = &self.race.contestants[contestant];
        let Prepared { simulation, flow, start } = self.prepare(contestant, &self.scenario(contestant, rate), 0)?;
        let config = TrainConfig { flow, start, rate, message: MESSAGE };
        let mut train = Train::new(&simulation, config, None, &unwanted).map_err(RaceError::new)?;
        let wrong = |error: flowstart_service_curve::Error| RaceError::new(error.to_string());
        let probe = probe_rate(rate, train.by_ref(), &self.probe).map_err(wrong)?;
        if unwanted() {
            return Ok(JobResult::Nothing);
        }
        if !matches!(probe.verdict, Verdict::Accepted(_)) {
            refused.fetch_min(rate.as_bps(), Ordering::Relaxed);
        }
        Ok(JobResult::Probe(Box::new(probe), train.now().since(Time::ZERO).as_secs_f64()))
    }

    fn connection(&self, contestant: usize, number: u32, cancel: &Cancel) -> Result<JobResult, RaceError> {
        if cancel.is_cancelled() {
            return Ok(JobResult::Nothing);
        }
        let contestant = &self.race.contestants[contestant];
        let scenario = self.startup_scenario(contestant, u64::from(number));
        let Prepared { simulation, flow, start } = self.prepare(contestant, &scenario, u64::from(number))?;
        let watch = Deliveries::new(flow, start, self.startup_times());
        let simulation = Simulation::new(&simulation, watch).map_err(|error| RaceError::new(error.to_string()))?;
        let (outcome, watch) = simulation.run();
        Ok(JobResult::Startup(watch.finish(), outcome.ended.since(Time::ZERO).as_secs_f64()))
    }
}

/// Probes up to the first that was not accepted. Whether those above it were made depends on the
/// order of work.
fn until_refused(mut probes: Vec<RateProbe>) -> Vec<RateProbe> {
    probes.sort_by_key(|probe| probe.rate);
    let accepted = probes.iter().take_while(|probe| matches!(probe.verdict, Verdict::Accepted(_))).count();
    probes.truncate(accepted + 1);
    probes
}
