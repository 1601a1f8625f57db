//! Running a benchmark on all cores.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flowstart_service_curve::{
    BurstCurve, Estimate, MessageTrain, ProbeVerdict, RateProbe, StartupCurve, Video, VideoConfig, last_wanted,
    probe_rate,
};
use flowstart_simulator::Simulation;
use flowstart_units::{Bytes, Rate, Span, Time};

use super::path::Prepared;
use super::work::Work;
use super::{Attained, Benchmark, BenchmarkResult, MESSAGE, VIDEO_FRAMES, VIDEO_SEED, VideoBound};
use flowstart_parallel::{Cancel, in_parallel};
use flowstart_probing::{Deliveries, Train, TrainConfig};
use flowstart_race::{RaceError, RunOptions, labels};

/// One simulation to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// A contestant at the rate of this index.
    Probe(usize, usize),
    /// A contestant's new connection.
    Startup(usize, u32),
    /// A contestant's bursts.
    Bursts(usize),
}

/// What a job brings.
enum JobResult {
    Probe(Box<RateProbe>, Option<MessageTrain>, f64),
    Startup(Vec<u64>, f64),
    Bursts(Option<BurstCurve>, f64),
    /// Lower rates were too high, so this one does not count; or the work was cancelled.
    Nothing,
}

/// What is known of a contestant's rates so far.
#[derive(Default)]
pub(super) struct Known(Mutex<Vec<(Rate, ProbeVerdict)>>);

impl Known {
    pub(super) fn verdicts(&self) -> MutexGuard<'_, Vec<(Rate, ProbeVerdict)>> {
        // A vector that somebody failed to push to is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this rate counts hangs on one that is lower: it ends the curve if it is too high,
    /// too.
    pub(super) fn one_below_is_too_high(&self, rate: Rate) -> bool {
        self.verdicts().iter().any(|(below, verdict)| *below < rate && *verdict == ProbeVerdict::NonStationary)
    }
}

/// The jobs that nobody has begun, by number.
pub(super) struct Waiting(Mutex<Vec<usize>>);

impl Waiting {
    /// So many.
    pub(super) fn new(jobs: usize) -> Self {
        Self(Mutex::new((0..jobs).collect()))
    }

    /// The first that cannot wait, or else the first, which is begun now; `None` after the last.
    pub(super) fn next(&self, can_wait: impl Fn(usize) -> bool) -> Option<usize> {
        // Nothing fails between what is found and what is taken.
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = waiting.iter().position(|job| !can_wait(*job)).unwrap_or(0);
        (place < waiting.len()).then(|| waiting.remove(place))
    }
}

impl Benchmark {
    /// Runs the benchmark. The result does not depend on the number of threads. Progress is told in
    /// simulated seconds, of those that are expected to be needed.
    ///
    /// # Errors
    /// If the benchmark is not [valid](Benchmark::validate) or no threads can be started.
    pub fn run(&self, options: &RunOptions<'_>) -> Result<BenchmarkResult, RaceError> {
        self.validate()?;
        let contestants = self.race.contestants.len();
        let (jobs, rates) = (self.jobs(), self.rates());
        let never = Cancel::default();
        let cancel = options.cancel.unwrap_or(&never);
        let known: Vec<Known> = (0..contestants).map(|_| Known::default()).collect();
        let work = Work::new(jobs.iter().map(|job| self.expected(*job)));
        let progress = |_| {
            if let Some(progress) = options.progress {
                let (done, of) = work.seconds();
                progress(done, of);
            }
        };
        let waiting = Waiting::new(jobs.len());
        let can_wait = |number: usize| match jobs[number] {
            Job::Probe(contestant, rate) => known[contestant].one_below_is_too_high(rates[rate]),
            Job::Startup(..) | Job::Bursts(_) => false,
        };
        let begun = in_parallel(jobs.len(), options.threads, cancel, progress, |_| {
            let number = waiting.next(can_wait)?;
            let watch = |simulated| work.is_at(number, simulated);
            let result = match jobs[number] {
                Job::Probe(contestant, rate) => {
                    self.probe(contestant, rates[rate], &known[contestant], (&watch, cancel))
                }
                Job::Startup(contestant, connection) => self.connection(contestant, connection, cancel),
                Job::Bursts(_) if cancel.is_cancelled() => Ok(JobResult::Nothing),
                Job::Bursts(contestant) => self
                    .handed_over(&self.race.contestants[contestant])
                    .map(|(bursts, seconds)| JobResult::Bursts(bursts, seconds)),
            };
            work.is_done(number);
            Some((number, result))
        })
        .map_err(RaceError::new)?;
        let mut results: Vec<_> = jobs.iter().map(|_| None).collect();
        for (number, result) in begun.into_iter().flatten().flatten() {
            results[number] = Some(result);
        }
        let mut simulated_seconds = 0.0;
        let mut probes: Vec<Vec<RateProbe>> = vec![Vec::new(); contestants];
        let mut messages: Vec<Vec<MessageTrain>> = vec![Vec::new(); contestants];
        let mut delivered: Vec<Vec<Vec<u64>>> = vec![Vec::new(); contestants];
        let mut handed_over: Vec<Option<BurstCurve>> = vec![None; contestants];
        for (job, result) in jobs.iter().zip(results) {
            match (job, result.unwrap_or(Ok(JobResult::Nothing))?) {
                (Job::Probe(contestant, _), JobResult::Probe(probe, train, seconds)) => {
                    messages[*contestant].extend(train);
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
        for rate in self.rates_beyond() {
            for (contestant, result) in self.beyond(rate, &probes, options, cancel)? {
                let JobResult::Probe(probe, train, seconds) = result else { continue };
                simulated_seconds += seconds;
                // Only for what it was served: the curve is one of the rates that were asked for.
                if probe.verdict == ProbeVerdict::NonStationary {
                    messages[contestant].extend(train);
                    probes[contestant].push(*probe);
                }
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
                self.attained(label, conditions, self.estimate(probes), startup)
            })
            .collect::<Result<_, _>>()?;
        for ((one, bursts), mut messages) in attained.iter_mut().zip(handed_over).zip(messages) {
            one.bursts = bursts;
            // Those of rates that do not count were made or not, as the work fell.
            messages.retain(|train| one.estimate.probes.iter().any(|probe| probe.rate == train.rate));
            messages.sort_by_key(|train| train.rate);
            one.messages = messages;
        }
        simulated_seconds += self.calibrate(&mut attained, options, cancel)?;
        let complete = !cancel.is_cancelled();
        Ok(BenchmarkResult { benchmark: self.clone(), attained, complete, simulated_seconds })
    }

    /// How much simulated time a job is expected to need. Near the fair share rates are watched for
    /// about as long as growth needs to be seen, below its half for the least time.
    fn expected(&self, job: Job) -> Span {
        let any = self.race.contestants.first();
        let before = any.map_or(Span::ZERO, |one| self.with_peers(one).effective_warm_up());
        before
            + match job {
                Job::Probe(_, rate) => {
                    let near = self.rates()[rate] > self.half();
                    let samples = self.probe.sampling_gap * self.probe.samples as u64;
                    let short = self.probe.least_time.max(samples);
                    let watched = if near { short.max(self.probe.overload_after) } else { short };
                    self.probe.warm_up + watched.min(self.lasting)
                }
                Job::Startup(..) => self.startup,
                Job::Bursts(_) => self.burst_gap * u64::from(self.bursts),
            }
    }

    /// Half of the fair share.
    fn half(&self) -> Rate {
        self.fair_share().mul_ratio(1, 2)
    }

    /// All that is to be done, as it is begun unless something can wait. Rates from the lowest on:
    /// those that are too high end the curve, and it takes them long to show it, so that few should
    /// be begun that turn out not to count. What is short comes last, so that no thread waits long
    /// for another.
    pub(super) fn jobs(&self) -> Vec<Job> {
        let contestants = self.race.contestants.len();
        let probes = (0..self.rates().len()).flat_map(|rate| (0..contestants).map(move |c| Job::Probe(c, rate)));
        let bursts = (0..contestants).filter(|_| self.bursts > 0).map(Job::Bursts);
        let connections =
            (0..self.effective_connections()).flat_map(|n| (0..contestants).map(move |c| Job::Startup(c, n)));
        probes.chain(bursts).chain(connections).collect()
    }

    /// What follows from an estimate.
    ///
    /// # Errors
    /// If its configuration makes no sense.
    pub fn attained(
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
        let (mut frames, mut backlogs) = (Vec::new(), Vec::new());
        if stable {
            let arrivals = film.arrivals();
            (frames, backlogs) = (estimate.curve.delay_bounds(&arrivals), estimate.curve.backlog_bounds(&arrivals));
        }
        let burst_bound = self.burst.map(|burst| estimate.curve.inverse(burst.bits() as f64));
        Ok(Attained {
            label,
            conditions,
            estimate,
            band,
            video: VideoBound { frames, backlogs },
            burst_bound: burst_bound.filter(|bound| *bound < Span::MAX),
            messages: Vec::new(),
            records: Vec::new(),
            parts: Vec::new(),
            startup,
            bursts: None,
            joint: None,
        })
    }

    /// Probes contestants of whom no rate was too high at this one: if it is, what they are served
    /// there says what they attain in the long run.
    fn beyond(
        &self,
        rate: Rate,
        probes: &[Vec<RateProbe>],
        options: &RunOptions<'_>,
        cancel: &Cancel,
    ) -> Result<Vec<(usize, JobResult)>, RaceError> {
        let too_high = |probe: &RateProbe| probe.verdict == ProbeVerdict::NonStationary;
        let of = |contestant: &usize| !self.probe.first_ends && !probes[*contestant].iter().any(too_high);
        let jobs: Vec<usize> = (0..probes.len()).filter(of).collect();
        let probe = |number: usize| self.probe(jobs[number], rate, &Known::default(), (&|_| (), cancel));
        let results = in_parallel(jobs.len(), options.threads, cancel, |_| (), probe).map_err(RaceError::new)?;
        let done = jobs.iter().zip(results).filter_map(|(contestant, result)| Some((*contestant, result?)));
        done.map(|(contestant, result)| result.map(|result| (contestant, result))).collect()
    }

    /// Probes a contestant at a rate; `watch` hears how much was simulated.
    fn probe(
        &self,
        contestant: usize,
        rate: Rate,
        known: &Known,
        (watch, cancel): (&dyn Fn(Span), &Cancel),
    ) -> Result<JobResult, RaceError> {
        /// Messages from one time that is told to the next.
        const EVERY: u64 = 1_000;
        // The end only ever comes nearer: whoever is skipped is above it in the end, too.
        let beyond = || last_wanted(known.verdicts().iter().copied(), &self.probe).is_some_and(|last| last < rate);
        let unwanted = || cancel.is_cancelled() || beyond();
        if unwanted() {
            return Ok(JobResult::Nothing);
        }
        let contestant = &self.race.contestants[contestant];
        let Prepared { simulation, flow, start } = self.prepare(contestant, &self.scenario(contestant, rate), 0)?;
        let config = TrainConfig { flow, start, rate, message: MESSAGE };
        let mut train = Train::new(&simulation, config, None, &unwanted).map_err(RaceError::new)?;
        let wrong = |error: flowstart_service_curve::Error| RaceError::new(error.to_string());
        let gap = rate.transmission_time(Bytes::new(MESSAGE));
        let mut kept = self.keep_messages.then(|| MessageTrain { rate, start, gap, delays: Vec::new() });
        let mut messages = 0_u64;
        let watched = train.by_ref().inspect(|delay| {
            kept.iter_mut().for_each(|kept| kept.delays.push(*delay));
            messages += 1;
            if messages.is_multiple_of(EVERY) {
                watch(start.since(Time::ZERO) + gap * messages);
            }
        });
        let probe = probe_rate(rate, watched, &self.simulated_procedure()).map_err(wrong)?;
        if unwanted() {
            return Ok(JobResult::Nothing);
        }
        known.verdicts().push((rate, probe.verdict));
        Ok(JobResult::Probe(Box::new(probe), kept, train.now().since(Time::ZERO).as_secs_f64()))
    }

    /// The estimate of these probes; what is missing was interrupted, and is undecided.
    #[must_use]
    pub fn estimate(&self, probes: Vec<RateProbe>) -> Estimate {
        self.made_of(self.wanted(probes))
    }

    /// The estimate of these probes, all of which count.
    pub(super) fn made_of(&self, probes: Vec<RateProbe>) -> Estimate {
        let rates = self.rates();
        let estimate = Estimate::new(probes, &self.probe).unfinished(&rates);
        match rates.last() {
            Some(last) => estimate.asked_up_to(*last),
            None => estimate,
        }
    }

    /// Probes up to the last that is wanted, from the lowest rate on. Whether those above it were
    /// made depends on the order of work.
    fn wanted(&self, mut probes: Vec<RateProbe>) -> Vec<RateProbe> {
        let last = last_wanted(probes.iter().map(|probe| (probe.rate, probe.verdict)), &self.probe);
        probes.retain(|probe| last.is_none_or(|last| probe.rate <= last));
        probes.sort_by_key(|probe| probe.rate);
        probes
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
