//! Across a real path: this project's QUIC to `flowstart serve`, probed one rate after another.

use std::path::Path;
use std::time::{Duration, Instant};

use flowstart_benchmark::{Attained, Benchmark, Kept, KeptOf, ProbedRate, Unjudged};
use flowstart_parallel::Cancel;
use flowstart_quic::OneWay;
use flowstart_race::Contestant;
use flowstart_service_curve::last_wanted;
use flowstart_units::{Rate, Span};

use super::args::BenchmarkArgs;
use super::asked::contestants;
use super::kept::{Finished, capacity_kept};
use super::place::Place;
use super::real::Really;
use crate::interrupt;
use crate::output::{Failure, note, progress, roughly};
use crate::quic::{Application, Heard, Target, capacity_up, probe};

/// How often it is looked whether a probe has ended, and progress is told.
const LOOK: Duration = Duration::from_millis(100);

/// A real path.
pub(super) struct Way {
    target: Target,
    pub(super) capacity: Rate,
    cancel: Cancel,
}

impl Way {
    /// Finds the other end and, unless it is named or was kept by what is to be resumed, asks the
    /// path for its capacity. From then on Ctrl-C asks for an orderly end.
    pub(super) fn find(args: &BenchmarkArgs, place: &Place, folder: Option<&Path>) -> Result<Self, Failure> {
        let mut target = Target::find(&place.host, place.port, args.fingerprint.as_deref(), args.insecure)?;
        target.settle()?;
        let cancel = interrupt::listen();
        let resumed = folder.filter(|_| args.resume).map(|folder| capacity_kept(folder, &place.to_string()));
        let capacity = match args.path.path.capacity.or(resumed.flatten()) {
            Some(capacity) => capacity,
            None => {
                let capacity = capacity_up(&target, &cancel)?;
                note(&format!("the path carries about {capacity}; --capacity says it otherwise"));
                capacity
            }
        };
        Ok(Self { target, capacity, cancel })
    }

    /// Probes all contestants, and what was finished is kept in the folder of the results.
    pub(super) fn measure(
        self,
        benchmark: &Benchmark,
        args: &BenchmarkArgs,
        folder: Option<&Path>,
    ) -> Result<(Cancel, Really), Failure> {
        let contestants = contestants(args)?;
        let finished = folder.map(|folder| Finished::open(folder, benchmark, args.resume)).transpose()?;
        let rates = benchmark.rates();
        let length = (benchmark.probe.warm_up + benchmark.lasting).as_secs_f64();
        let all = rates.len() * contestants.len();
        note(&format!("{all} rates, one at a time, in real time: {} at most", roughly(length * all as f64)));
        let bar = progress("seconds of probing");
        bar.set_length((length * all as f64) as u64);
        let mut run = Run { way: &self, benchmark, finished: finished.as_ref(), known: 0, heard: Vec::new() };
        let (mut attained, mut failed, mut not_reached) = (Vec::new(), None, Vec::new());
        for (number, contestant) in contestants.iter().enumerate() {
            let tell = |seconds: f64| bar.set_position((length * (number * rates.len()) as f64 + seconds) as u64);
            let (one, error) = if failed.is_none() { run.contestant(contestant, &rates, &tell)? } else { (None, None) };
            failed = failed.or(error);
            match one {
                Some(one) => attained.push(one),
                None => not_reached.push(label(contestant)),
            }
        }
        bar.finish_and_clear();
        if run.known > 0 {
            note(&format!("rates that were finished before: {}", run.known));
        }
        if attained.is_empty()
            && let Some(error) = failed.take()
        {
            return Err(error);
        }
        if attained.is_empty() && !self.cancel.is_cancelled() {
            let why = "nothing was measured: no message was read before the transfers ended";
            return Err(Failure::usage(why));
        }
        if !not_reached.is_empty() {
            note(&format!("not measured: {}", not_reached.join(", ")));
        }
        if run.heard.iter().any(|(.., heard)| !heard.real_time) {
            note("without real-time priority: messages leave milliseconds late when the machine is busy");
        }
        let complete = !self.cancel.is_cancelled() && failed.is_none();
        let paths = serde_json::json!({
            "to": self.target.to.to_string(),
            "probes": run.heard.iter().map(|(contestant, rate, heard)| serde_json::json!({
                "contestant": contestant,
                "rate_bps": rate.as_bps(),
                "min_rtt_s": heard.rtt.as_secs_f64(),
                "other_clock_slower_ppm": heard.drift,
                "real_time_priority": heard.real_time,
                "sender": heard.waited.as_ref().filter(|waited| waited.count() > 0).map(|waited| serde_json::json!({
                    "mean_s": waited.mean(),
                    "quantile_s": waited.upper_quantile(benchmark.probe.epsilon).map(Span::as_secs_f64),
                })),
            })).collect::<Vec<_>>(),
        });
        let verdict = failed.map_or(Ok(()), Err);
        Ok((self.cancel, Really { attained, complete, verdict, paths: Some(paths) }))
    }
}

/// What tables call it.
pub(super) fn label(contestant: &Contestant) -> String {
    format!("{contestant} (QUIC)")
}

/// Probing over one path.
struct Run<'a> {
    way: &'a Way,
    benchmark: &'a Benchmark,
    finished: Option<&'a Finished>,
    /// Rates that were finished before.
    known: usize,
    heard: Vec<(String, Rate, Heard)>,
}

impl Run<'_> {
    /// Probes all rates of a contestant, unless one fails or it is cancelled; `progress` hears the
    /// seconds that are over. What came out, and what failed.
    fn contestant(
        &mut self,
        contestant: &Contestant,
        rates: &[Rate],
        progress: &dyn Fn(f64),
    ) -> Result<(Option<Attained>, Option<Failure>), Failure> {
        let (benchmark, label) = (self.benchmark, label(contestant));
        let of = KeptOf { label: &label, identity: &label };
        let length = (benchmark.probe.warm_up + benchmark.lasting).as_secs_f64();
        let mut done: Vec<ProbedRate> = Vec::new();
        let mut failed = None;
        let before = self.heard.len();
        for (number, rate) in rates.iter().enumerate() {
            let last = last_wanted(done.iter().map(|done| (done.probe.rate, done.probe.verdict)), &benchmark.probe);
            if last.is_some_and(|last| *rate > last) {
                break;
            }
            let kept = self.finished.map(|finished| finished.known(of, *rate)).transpose();
            if let Some(one) = kept.map_err(Failure::usage)?.flatten() {
                done.push(ProbedRate::again(benchmark, *rate, one.records).map_err(Failure::usage)?);
                self.known += 1;
                continue;
            }
            if self.way.cancel.is_cancelled() {
                break;
            }
            let tell = |seconds: f64| progress(length * number as f64 + seconds.min(length));
            match self.rate(contestant, *rate, &tell) {
                Ok((heard, Some(one))) => {
                    self.heard.push((contestant.to_string(), *rate, heard));
                    let kept =
                        self.finished.map(|finished| finished.keep(of, *rate, &one.records, serde_json::Value::Null));
                    let kept = kept.transpose();
                    failed = kept.err().map(Failure::usage);
                    done.push(one);
                }
                Ok((_, None)) => break,
                Err(error) => {
                    let first = done.is_empty() && self.heard.is_empty();
                    failed = Some(self.explained(error, (!first).then_some(*rate)));
                }
            }
            if failed.is_some() {
                break;
            }
        }
        if done.is_empty() {
            return Ok((None, failed));
        }
        let conditions = self.conditions(contestant, &self.heard[before..]);
        Ok((Some(benchmark.attained_by(label, conditions, done).map_err(Failure::usage)?), failed))
    }

    /// Probes one rate; nothing came out if it was cancelled before it was decided.
    fn rate(
        &self,
        contestant: &Contestant,
        rate: Rate,
        progress: &dyn Fn(f64),
    ) -> Result<(Heard, Option<ProbedRate>), Failure> {
        let (benchmark, cancel) = (self.benchmark, &self.way.cancel);
        let warm_up = benchmark.probe.warm_up;
        let lasting = warm_up + benchmark.lasting;
        let application = Application { contestant, rate, message: benchmark.probe.packet, lasting, warm_up };
        let measured = benchmark.judge_while(rate, cancel, |judge| {
            std::thread::scope(|scope| {
                // A thread of its own has the priority that exact departures need.
                let probing = scope.spawn(|| {
                    let mut hear = |delay| judge.hear(delay);
                    let heard = probe(&self.way.target, application, &|| judge.is_over(), &mut hear);
                    (heard, judge.counts())
                });
                let began = Instant::now();
                while !probing.is_finished() {
                    std::thread::sleep(LOOK);
                    progress(began.elapsed().as_secs_f64());
                }
                probing.join()
            })
        });
        let (probed, judged) = measured.map_err(Failure::usage)?;
        let (heard, counts) = probed.map_err(|_| Failure::usage(Unjudged::Fault))?;
        let mut heard = heard?;
        if judged.delays.is_empty() {
            return Ok((heard, None));
        }
        let one = judged.since(benchmark, heard.start, std::mem::take(&mut heard.passed));
        Ok((heard, counts.then_some(one)))
    }

    /// At which rate something failed, if it did not at once, and what would help where limits of
    /// the server are met.
    fn explained(&self, error: Failure, rate: Option<Rate>) -> Failure {
        let Failure::Usage(why) = error else { return error };
        let most = self.benchmark.probe.warm_up + self.benchmark.lasting;
        let limit = |word: &str| why.contains("refuses") && why.contains(word);
        let help = if limit("a transfer takes at most") {
            format!(
                "; a rate takes {most}: name a shorter --lasting or --warm-up, or a longer --most-time for `flowstart \
                 serve` there"
            )
        } else if limit("more data came") {
            "; name more --most-bytes for `flowstart serve` there, or less to be probed".to_owned()
        } else {
            String::new()
        };
        let at = rate.map_or_else(String::new, |rate| format!("{rate}: "));
        Failure::Usage(format!("{at}{why}{help}"))
    }

    /// How it was measured, and how far its delays can be relied on.
    fn conditions(&self, contestant: &Contestant, heard: &[(String, Rate, Heard)]) -> String {
        let mut said = format!("{contestant} over this project's QUIC to {}", self.way.target.to);
        let rtts = heard.iter().map(|(.., heard)| heard.rtt).filter(|rtt| *rtt > Span::ZERO);
        if let Some(rtt) = rtts.max() {
            let half = rtt.as_millis_f64() / 2.0;
            said.push_str(&format!(", smallest RTT {}: delays may all be {half:.3} ms too long or too short", ms(rtt)));
        }
        let drifts = heard.iter().filter_map(|(.., heard)| heard.drift);
        if let Some(drift) = drifts.max_by(|one, other| one.abs().total_cmp(&other.abs())) {
            let wrong = drift.abs() / 1e6 * OneWay::WINDOW.as_millis_f64();
            said.push_str(&format!(", and each {wrong:.3} ms, for the clocks drift by {:.1} ppm", drift.abs()));
        }
        let waited = heard.iter().filter_map(|(_, rate, heard)| Some((rate, heard.waited.as_ref()?.mean()?)));
        let waited: Vec<String> = waited.map(|(rate, mean)| format!("{:.2} ms at {rate}", mean * 1e3)).collect();
        if !waited.is_empty() {
            said.push_str(&format!(
                "; of the delays messages waited at the sender, by its clock, {}",
                waited.join(", ")
            ));
        }
        said
    }
}

fn ms(span: Span) -> String {
    format!("{:.3} ms", span.as_millis_f64())
}
