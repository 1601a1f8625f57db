//! The benchmark: what rate a congestion control can be relied on for, over which time, on a
//! described path.
//!
//! Constant-rate applications write into connections of the full transport; the delays of their
//! messages from write to read go through the probing procedure of the crate `service-curve`
//! (Luebben and Fidler, arXiv 1609.00653), rate by rate. New connections of the same kind give the
//! start-up service curve, and a synthetic video its delay bound.
//!
//! As in the paper nine greedy flows of the contestant's own kind, with round trips of their own,
//! share the bottleneck unless told otherwise.
//!
//! ```
//! use flowstart_benchmark::Benchmark;
//! use flowstart_race::{Race, RunOptions};
//! use flowstart_units::{Rate, Span};
//!
//! let mut race = Race::default();
//! race.set_capacity(Rate::from_mbps(10));
//! race.contestants = vec!["cubic".parse()?];
//! // Alone, two rates, and only a little of what a reliable answer needs.
//! let mut benchmark = Benchmark::new(race);
//! benchmark.peers = 0;
//! benchmark.step = Some(Rate::from_mbps(4));
//! assert_eq!(benchmark.rates(), [4, 8].map(Rate::from_mbps));
//! benchmark.probe.samples = 50;
//! benchmark.probe.epsilon = flowstart_service_curve::Probability::new(0.02).expect("a share");
//! benchmark.probe.warm_up = Span::from_secs(2);
//! benchmark.lasting = Span::from_secs(10);
//! (benchmark.connections, benchmark.bursts) = (0, 0);
//! let result = benchmark.run(&RunOptions::default())?;
//! // 8 of 10 Mbit/s can be relied on.
//! assert_eq!(result.attained[0].estimate.curve.long_term_rate(), Rate::from_mbps(8));
//! # Ok::<(), flowstart_race::RaceError>(())
//! ```

mod bursts;
mod document;
mod jobs;
mod joint;
mod judging;
mod measured;
mod parts;
mod path;
mod probed;
mod work;

use flowstart_service_curve::{
    BandConfig, BandPoint, BurstCurve, Estimate, GiveUp, Joint, MessageTrain, Probability, ProbeConfig, Record,
    StartupCurve, Video,
};
use flowstart_units::{Bytes, Rate, Span};

use flowstart_race::{Race, RaceError};

pub use document::{BENCHMARK_SCHEMA_VERSION, verdict_name};
pub use judging::{Judge, Judged, Unjudged};
pub use measured::{MeasuredError, ParquetReader, Records, measured, rates_measured, tells_rates};
pub use parts::Parts;
pub use probed::{Kept, KeptError, KeptOf, KeptRate, ProbedRate};

pub use flowstart_probing::Part;

/// What is benchmarked, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Benchmark {
    /// Path, contestants, others there before and seed; the rest of a race has no influence.
    pub race: Race,
    /// Real stacks that are measured beside the simulated ones, in words; default none. The crate
    /// `real` measures them.
    pub real: Vec<String>,
    /// The other end of a real path over which they are measured, in place of the emulated or
    /// simulated one; default none. Of the described path only the capacity counts then, for the
    /// rates.
    pub to: Option<String>,
    /// Greedy flows of the contestant's own kind that are there before; default 9 (paper).
    pub peers: u32,
    /// Step between probing rates, payload; `None` for a tenth of the fair share of the capacity
    /// (paper: 1 Mbit/s of 10).
    pub step: Option<Rate>,
    /// The procedure. Its packet is the payload of a full segment, and its seed that of the race.
    pub probe: ProbeConfig,
    /// How long each rate is measured at most, after the warm-up; default 3000 s. The paper's
    /// testbed takes what it needs; a measurement that ends too soon is undecided.
    pub lasting: Span,
    /// Every rate that is not decided is measured to the end of [`Self::lasting`]; default false:
    /// simulated rates that the rest of it will not decide are given up ([`GiveUp`]).
    pub to_the_end: bool,
    /// Confidence bands.
    pub band: BandConfig,
    /// Mean rate of the synthetic video whose delay is bounded; `None` for 0.4 fair shares (paper:
    /// 4 Mbit/s of 10).
    pub video: Option<Rate>,
    /// A film whose delay is bounded in place of the synthetic video; default none.
    pub film: Option<Video>,
    /// A burst handed over at once to a flow in its steady state, whose delay is bounded; default
    /// none.
    pub burst: Option<Bytes>,
    /// The delays of all messages are kept in the result, eight bytes each; default false. No
    /// parameter: results are the same.
    pub keep_messages: bool,
    /// New connections for the start-up service curve; default 20, none for no curve. One is enough
    /// where nothing is random.
    pub connections: u32,
    /// How long they are watched; default 10 s.
    pub startup: Span,
    /// The fraction of new connections, and of bursts, that may fall below their curve; default 5
    /// %.
    pub startup_epsilon: Probability,
    /// Bursts that are handed over to an idle connection one after another, for a service curve
    /// that need not be convex; default 40, none for no curve. With fewer than 20 the 5 % are the
    /// latest of all.
    pub bursts: u32,
    /// Packets of a burst; default 100, 145 kB: three windows of one of ten flows at 100 Mbit/s and
    /// 40 ms.
    pub burst_packets: u32,
    /// Time from burst to burst; default 5 s. A burst that finds the one before it not served yet
    /// does not count.
    pub burst_gap: Span,
    /// Replicas for the joint calibration of all accepted rates, in each of which every rate is
    /// probed from the beginning with the same random numbers, for the warm-up and one message;
    /// default none. It needs many times 1 / epsilon.
    pub replicas: u32,
}

/// Payload of a full segment: one message of the probing application.
const MESSAGE: u64 = flowstart_race::MSS as u64;
/// Steps in a fair share unless a step is given.
const STEPS: u64 = 10;
/// Rates beyond the fair share that are probed when there are others, who may be pushed aside, in
/// steps.
const STEPS_BEYOND: u64 = 2;
/// Most probing rates.
const MAX_RATES: u64 = 1_000;
/// Most replicas of the joint calibration.
const MAX_REPLICAS: u32 = 100_000;
/// Most bursts, and packets of one.
const MAX_BURSTS: u32 = 10_000;
/// Most new connections.
const MAX_CONNECTIONS: u32 = 10_000;
/// Frames of the video and its seed: ten minutes at 24 frames per second, whose statistics are
/// known (see [`flowstart_service_curve::Video`]).
const VIDEO_FRAMES: usize = 14_400;
const VIDEO_SEED: u64 = 7;

impl Benchmark {
    /// The benchmark of the race's contestants with the defaults above.
    #[must_use]
    pub fn new(race: Race) -> Self {
        Self {
            race,
            real: Vec::new(),
            to: None,
            peers: 9,
            step: None,
            probe: ProbeConfig { packet: Bytes::new(MESSAGE), ..ProbeConfig::default() },
            lasting: Span::from_secs(3_000),
            to_the_end: false,
            band: BandConfig::default(),
            video: None,
            film: None,
            burst: None,
            keep_messages: false,
            connections: 20,
            startup: Span::from_secs(10),
            startup_epsilon: Probability::FIVE_PERCENT,
            bursts: 40,
            burst_packets: 100,
            burst_gap: Span::from_secs(5),
            replicas: 0,
        }
    }

    /// Rate of the bottleneck; of one that varies the mean: over a period if it repeats, else over
    /// the longest run.
    #[must_use]
    pub fn capacity(&self) -> Rate {
        self.race.path.capacity.mean(Span::ZERO, self.lasting)
    }

    /// An [equal share](flowstart_race::Others::share), with peers and others, of the capacity.
    /// Gross: headers are not taken off.
    #[must_use]
    pub fn fair_share(&self) -> Rate {
        let watched = (self.race.effective_warm_up(), self.lasting);
        self.race.others.share(self.capacity(), 1 + u64::from(self.peers), watched)
    }

    /// The step between probing rates.
    #[must_use]
    pub fn step(&self) -> Rate {
        self.step.unwrap_or(Rate::from_bps((self.fair_share().as_bps() / STEPS).max(1)))
    }

    /// The probing rates, increasing: up to 1.2 fair shares, but not beyond the capacity.
    #[must_use]
    pub fn rates(&self) -> Vec<Rate> {
        let step = self.step().as_bps();
        let last = self.fair_share().mul_ratio(STEPS + STEPS_BEYOND, STEPS).min(self.capacity());
        let count = last.as_bps().checked_div(step).unwrap_or(0).min(MAX_RATES);
        (1..=count).map(|n| Rate::from_bps(n * step)).collect()
    }

    /// Rates at which those are probed of whom no lower one was too high: two fair shares, which
    /// few sustain, and 1.2 times the capacity, which nobody does.
    #[must_use]
    pub fn rates_beyond(&self) -> Vec<Rate> {
        let most = self.capacity().mul_ratio(STEPS + STEPS_BEYOND, STEPS);
        let twice = Rate::from_bps(self.fair_share().as_bps().saturating_mul(2));
        if twice < most { vec![twice, most] } else { vec![most] }
    }

    /// Mean rate of the video or film.
    #[must_use]
    pub fn video_rate(&self) -> Rate {
        if let Some(film) = &self.film {
            return film.mean_rate();
        }
        self.video.unwrap_or_else(|| self.fair_share().mul_ratio(2, 5))
    }

    /// How many new connections are made: without randomness one at most.
    #[must_use]
    pub fn effective_connections(&self) -> u32 {
        let random = self.peers > 0 || self.race.is_random();
        if random { self.connections } else { self.connections.min(1) }
    }

    /// Lengths of intervals at which results are given: 1 ms to 1000 s, 20 per decade.
    #[must_use]
    pub fn times() -> Vec<Span> {
        grid(Span::from_secs(1_000))
    }

    /// Times after the start of a new connection: 1 ms to [`Self::startup`], 20 per decade.
    #[must_use]
    pub fn startup_times(&self) -> Vec<Span> {
        grid(self.startup)
    }

    /// The procedure with the race's seed, not the stream of anything in the network.
    #[must_use]
    pub fn procedure(&self) -> ProbeConfig {
        ProbeConfig { seed: flowstart_random::mix(self.race.seed), ..self.probe.clone() }
    }

    /// The same for simulated rates, which may be given up before their time is over. (Those of
    /// real stacks are not: what their messages say of stacks and network is worth its time.)
    #[must_use]
    pub fn simulated_procedure(&self) -> ProbeConfig {
        ProbeConfig { give_up: (!self.to_the_end).then(|| GiveUp::within(self.lasting)), ..self.procedure() }
    }

    /// Checks that the benchmark can be run in reasonable time and memory.
    ///
    /// # Errors
    /// One sentence about the first value that is out of range, and what would be right.
    pub fn validate(&self) -> Result<(), RaceError> {
        let fail = |message: String| Err(RaceError::new(message));
        if self.peers > flowstart_race::MAX_FLOWS {
            return fail(format!(
                "at most {} flows of the contestant's kind can be there before",
                flowstart_race::MAX_FLOWS
            ));
        }
        self.validate_procedure()?;
        let (samples, gap) = (self.probe.samples, self.probe.sampling_gap);
        // Gaps are random, but so many are never together half as long as they are in the mean.
        if gap.as_secs_f64() * samples as f64 > 2.0 * self.lasting.as_secs_f64() {
            return fail(format!(
                "{samples} samples {gap} apart take {:.1} s, and each rate is measured for {} at most: nothing would be \
                 decided; measure for longer, or take fewer samples or a shorter gap",
                gap.as_secs_f64() * samples as f64,
                self.lasting
            ));
        }
        if self.connections > MAX_CONNECTIONS {
            return fail(format!("at most {MAX_CONNECTIONS} new connections can be watched"));
        }
        if self.bursts > MAX_BURSTS || !(1..=MAX_BURSTS).contains(&self.burst_packets) {
            return fail(format!("at most {MAX_BURSTS} bursts can be handed over, of 1 to {MAX_BURSTS} packets"));
        }
        if self.replicas > MAX_REPLICAS {
            return fail(format!("at most {MAX_REPLICAS} replicas can be simulated for the joint calibration"));
        }
        // With fewer a rate either fails in none of them or too often.
        let (epsilon, replicas) = (self.probe.epsilon.get(), f64::from(self.replicas));
        if self.replicas > 0 && epsilon * replicas < 1.0 - 1e-9 {
            let percent = (epsilon * 1e11).round() / 1e9;
            return fail(format!(
                "joint calibration at an epsilon of {percent} % needs at least {:.0} replicas, not {}",
                (1.0 / epsilon - 1e-9).ceil(),
                self.replicas
            ));
        }
        for contestant in &self.race.contestants {
            self.with_peers(contestant).validate()?;
        }
        if self.race.contestants.is_empty() && self.real.is_empty() {
            return fail("nothing to benchmark; name at least one contestant".to_owned());
        }
        // The path of real stacks is that of any contestant.
        if self.race.contestants.is_empty()
            && let Ok(any) = "cubic".parse()
        {
            Self { race: Race { contestants: vec![any], ..self.race.clone() }, real: Vec::new(), ..self.clone() }
                .validate()?;
        }
        let rates = self.rates();
        if rates.is_empty() {
            return fail(format!(
                "a step of {} leaves no probing rate: the highest is 1.2 fair shares, {}, and the capacity at most",
                self.step(),
                self.fair_share().mul_ratio(STEPS + STEPS_BEYOND, STEPS).min(self.capacity())
            ));
        }
        if self.fair_share().mul_ratio(STEPS + STEPS_BEYOND, STEPS).as_bps() / self.step().as_bps() > MAX_RATES {
            return fail(format!("a step of {} makes more than {MAX_RATES} probing rates", self.step()));
        }
        self.validate_cost()
    }

    /// Checks how delays are judged and what is bounded by them, which is all that files of
    /// measurements need.
    ///
    /// # Errors
    /// As [`Self::validate`], which checks this, too.
    pub fn validate_procedure(&self) -> Result<(), RaceError> {
        let fail = |message: String| Err(RaceError::new(message));
        self.probe.validate().map_err(|error| RaceError::new(error.to_string()))?;
        let nothing = [
            (self.lasting.is_zero(), "measuring for 0 s sees no message; the default is 3000 s"),
            (
                self.video == Some(Rate::ZERO),
                "a video of 0 bit/s has no frames to be late; by default it has 0.4 fair shares",
            ),
            (self.burst == Some(Bytes::ZERO), "a burst of 0 bytes is none; one looks like \"100 kB\""),
        ];
        if let Some((_, why)) = nothing.into_iter().find(|(is_nothing, _)| *is_nothing) {
            return fail(why.to_owned());
        }
        if self.band.replicates == 0 {
            return fail("a confidence band needs at least one replicate".to_owned());
        }
        Ok(())
    }

    fn validate_cost(&self) -> Result<(), RaceError> {
        let packet = f64::from(self.race.packet()) * 8.0;
        let packets = |span: Span| self.capacity().as_bps() as f64 / packet * span.as_secs_f64();
        for (what, lasting) in [
            ("measuring", self.lasting),
            ("warming up", self.probe.warm_up),
            ("start", self.startup),
            ("handing over bursts", self.burst_gap * u64::from(self.bursts)),
        ] {
            let most = flowstart_race::MAX_PACKETS;
            if packets(lasting) > most {
                return Err(RaceError::new(format!(
                    "{what} for {:.0} s at {} would carry {:.0} packets; at most {most:.0} can be simulated",
                    lasting.as_secs_f64(),
                    self.capacity(),
                    packets(lasting)
                )));
            }
        }
        Ok(())
    }
}

/// 1 ms to `last`, 20 per decade.
fn grid(last: Span) -> Vec<Span> {
    const PER_DECADE: i32 = 20;
    (0..)
        .map(|n| Span::from_secs_f64(1e-3 * libm::pow(10.0, f64::from(n) / f64::from(PER_DECADE))))
        .take_while(|t| *t <= last && *t < Span::from_secs(1_000_000))
        .collect()
}

/// What the video meets.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoBound {
    /// Delay bound of every frame, exceeded with the curve's probability at most; empty if the
    /// video's mean rate is not attained in the long run, where no bound exists.
    pub frames: Vec<Span>,
    /// Backlog bound just after every frame, bits; empty like the others.
    pub backlogs: Vec<f64>,
}

impl VideoBound {
    /// The largest, if there are bounds.
    #[must_use]
    pub fn largest(&self) -> Option<Span> {
        self.frames.iter().copied().max()
    }

    /// The largest backlog bound in bits, if there are bounds.
    #[must_use]
    pub fn backlog(&self) -> Option<f64> {
        self.backlogs.iter().copied().reduce(f64::max)
    }

    /// The mean over frames in seconds, if there are bounds.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.frames.iter().map(|bound| bound.as_secs_f64()).sum();
        (!self.frames.is_empty()).then(|| sum / self.frames.len() as f64)
    }
}

/// What was found out about one contestant, or about a measurement from outside.
#[derive(Clone, Debug)]
pub struct Attained {
    /// Its name.
    pub label: String,
    /// How it was run, in a few words.
    pub conditions: String,
    /// Curve and probes.
    pub estimate: Estimate,
    /// Confidence intervals of the attainable rate at [`Benchmark::times`].
    pub band: Vec<BandPoint>,
    /// Delay bound of the video.
    pub video: VideoBound,
    /// How long `burst` takes at most, with the curve's probability; `None` without
    /// one, or if no rate is attained.
    pub burst_bound: Option<Span>,
    /// All messages of the rates that count, if they were kept.
    pub messages: Vec<MessageTrain>,
    /// All messages of the rates that count of a real stack.
    pub records: Vec<Record>,
    /// Where the delays of the rates that count arise; empty if that was not measured.
    pub parts: Vec<Parts>,
    /// The start-up service curve; `None` if there were no new connections.
    pub startup: Option<StartupCurve>,
    /// What bursts met; `None` if there were none, or none was served.
    pub bursts: Option<BurstCurve>,
    /// The joint calibration of the accepted rates to the curve's probability; `None` without
    /// replicas.
    pub joint: Option<Joint>,
}

/// The result.
#[derive(Clone, Debug)]
pub struct BenchmarkResult {
    /// What was benchmarked.
    pub benchmark: Benchmark,
    /// The contestants in their order, then measurements from outside.
    pub attained: Vec<Attained>,
    /// False if it was interrupted: then estimates end early and are undecided there.
    pub complete: bool,
    /// Virtual time simulated, all together.
    pub simulated_seconds: f64,
}

#[cfg(test)]
mod tests;
