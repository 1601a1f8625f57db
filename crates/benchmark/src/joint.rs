//! All rates together: what the union bound over them gives away.

use flowstart_service_curve::calibrate_jointly;
use flowstart_units::{Rate, Span, Time};

use super::path::Prepared;
use super::{Attained, Benchmark, MESSAGE};
use flowstart_parallel::{Cancel, in_parallel};
use flowstart_probing::{Train, TrainConfig};
use flowstart_race::{RaceError, RunOptions};

/// The delay of one message in one replica.
#[derive(Clone, Copy)]
struct Job {
    contestant: usize,
    rate: Rate,
    replica: u32,
}

impl Benchmark {
    /// Calibrates the accepted rates of every contestant jointly to the probability that its curve
    /// has by the union bound. Returns the virtual time that was simulated.
    pub(super) fn calibrate(
        &self,
        attained: &mut [Attained],
        options: &RunOptions<'_>,
        cancel: &Cancel,
    ) -> Result<f64, RaceError> {
        let rates: Vec<Vec<Rate>> =
            attained.iter().map(|one| one.estimate.accepted().iter().map(|probe| probe.rate).collect()).collect();
        let of_replica = |replica: u32| {
            let of_contestant = move |(contestant, rates): (usize, &Vec<Rate>)| {
                rates.iter().map(|rate| Job { contestant, rate: *rate, replica }).collect::<Vec<_>>()
            };
            rates.iter().enumerate().flat_map(of_contestant).collect::<Vec<_>>()
        };
        let jobs: Vec<Job> = (0..self.replicas).flat_map(of_replica).collect();
        let results = in_parallel(jobs.len(), options.threads, cancel, |_| (), |number| self.delay(jobs[number]))
            .map_err(RaceError::new)?;
        let mut seconds = 0.0;
        let mut delays: Vec<Vec<Vec<Span>>> =
            attained.iter().map(|_| vec![Vec::new(); self.replicas as usize]).collect();
        for (job, result) in jobs.iter().zip(results) {
            // After a cancellation there is no calibration.
            let Some(result) = result else { return Ok(seconds) };
            let (delay, took) = result?;
            delays[job.contestant][job.replica as usize].push(delay);
            seconds += took;
        }
        for ((one, rates), delays) in attained.iter_mut().zip(&rates).zip(delays) {
            if !rates.is_empty() && self.replicas > 0 {
                let epsilon = one.estimate.curve.epsilon();
                let joint = calibrate_jointly(rates, &delays, epsilon);
                one.joint = Some(joint.map_err(|error| RaceError::new(error.to_string()))?);
            }
        }
        Ok(seconds)
    }

    /// The delay of the first message after the warm-up, and how long was simulated. Longer than
    /// the measurement may last if it never came.
    fn delay(&self, job: Job) -> Result<(Span, f64), RaceError> {
        let contestant = &self.race.contestants[job.contestant];
        let scenario = self.scenario(contestant, job.rate);
        let Prepared { simulation, flow, start } = self.prepare(contestant, &scenario, u64::from(job.replica) + 1)?;
        let config = TrainConfig { flow, start, rate: job.rate, message: MESSAGE };
        let mut train = Train::new(&simulation, config, None, &|| false).map_err(RaceError::new)?;
        let before = self.probe.warm_up.whole(job.rate.transmission_time(flowstart_units::Bytes::new(MESSAGE)));
        let delay = train.nth(usize::try_from(before).unwrap_or(usize::MAX)).unwrap_or(Span::MAX);
        Ok((delay, train.now().since(Time::ZERO).as_secs_f64()))
    }
}
