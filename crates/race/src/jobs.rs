//! All simulations of a race, and the result put together from them.

use std::rc::Rc;

use flowstart_measure::measures::Function;
use flowstart_parallel::{Cancel, in_parallel};
use flowstart_units::Bytes;

use super::part::JobResult;
use super::record::labels;
use super::stage::{OnStage, Runner, Simulator, Stage};
use super::{Contestant, ContestantResult, Race, RaceError, RaceResult, RunRecord, Series};

/// How a race is run; nothing in here changes its result.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Threads; `None` for one per core.
    pub threads: Option<usize>,
    /// Asks to stop: simulations in progress are given up, finished ones kept.
    pub cancel: Option<&'a Cancel>,
    /// Told now and then how many simulations are done, of how many.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
    /// Events after which a simulation of an own algorithm is an error; `None` for any number.
    pub most_events: Option<u64>,
}

/// One simulation (or pair of them) to do.
#[derive(Clone, Copy, Debug)]
struct Job {
    contestant: usize,
    run: u64,
    transfer: Option<Bytes>,
}

/// M9: whose harm others' are related to.
const REFERENCE_CONTESTANT: &str = "hystart+cubic";

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
        let simulator = Simulator { cancel, most_events: options.most_events };
        let progress = |done| {
            if let Some(progress) = options.progress {
                progress(done, jobs.len());
            }
        };
        let results =
            in_parallel(jobs.len(), options.threads, cancel, progress, |number| self.job(&jobs[number], &simulator))
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
    pub fn run_on<S: Stage>(
        &self,
        stage: &mut S,
        cancel: &Cancel,
        progress: impl Fn(usize, usize),
    ) -> Result<RaceResult, S::Error> {
        self.validate()?;
        let jobs = self.jobs();
        let runner = OnStage::new(stage);
        let mut results = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            results.push(if cancel.is_cancelled() { None } else { self.job(job, &runner)? });
            progress(number + 1, jobs.len());
        }
        Ok(self.assemble(&jobs, results))
    }

    /// Run by run, so that an interrupted race has whole runs; within a run the longest first, so
    /// that no core is left alone with one.
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

    fn job<R: Runner>(&self, job: &Job, runner: &R) -> Result<Option<JobResult>, R::Error> {
        let contestant = &self.contestants[job.contestant];
        match job.transfer {
            Some(size) => self.transfer(contestant, job.run, size, runner),
            None => self.start(contestant, job.run, runner, |origin| {
                Ok(self.baseline(contestant, job.run, origin, runner)?.map(Rc::new))
            }),
        }
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
        let mut series: Vec<Vec<Series>> = self.contestants.iter().map(|_| Vec::new()).collect();
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
            series[job.contestant].extend(result.series);
        }
        for (contestant, series) in contestants.iter_mut().zip(series) {
            contestant.series = Series::over_runs(series);
        }
        self.derive(&mut contestants);
        RaceResult {
            race: self.clone(),
            contestants,
            complete: finished == jobs.len(),
            simulations: (finished, jobs.len()),
            data_packets,
            simulated_seconds,
        }
    }

    /// The values that are computed from values of other measures.
    fn derive(&self, contestants: &mut [ContestantResult]) {
        let reference = REFERENCE_CONTESTANT.parse::<Contestant>().map(|reference| reference.name());
        for measure in self.measures() {
            match measure.item().function {
                Function::OverSizes(of, value) => {
                    for record in contestants.iter_mut().flat_map(|contestant| &mut contestant.runs) {
                        let sizes: Option<Vec<f64>> = self.sizes.iter().map(|size| record.get(of.of(*size))).collect();
                        let value = sizes.and_then(|sizes| value(&sizes));
                        record.values.extend(value.map(|value| (measure, value)));
                    }
                }
                Function::ToReference(of, value) => {
                    let is_reference = |c: &&ContestantResult| reference.as_ref() == Ok(&c.contestant.name());
                    let theirs: Vec<(u64, f64)> = contestants
                        .iter()
                        .find(is_reference)
                        .map(|c| c.runs.iter().filter_map(|run| Some((run.run, run.get(of.measure())?))).collect())
                        .unwrap_or_default();
                    // A mean over those runs alone in which there is one says nothing of the
                    // others.
                    if theirs.iter().any(|(_, theirs)| value(*theirs, *theirs).is_none()) {
                        continue;
                    }
                    for record in contestants.iter_mut().flat_map(|contestant| &mut contestant.runs) {
                        let theirs = theirs.iter().find(|(run, _)| *run == record.run).map(|(_, theirs)| *theirs);
                        let value = record.get(of.measure()).zip(theirs).and_then(|(own, theirs)| value(own, theirs));
                        record.values.extend(value.map(|value| (measure, value)));
                    }
                }
                _ => {}
            }
        }
    }
}
