//! A rate that is judged while it is measured, so that measuring ends when the verdict is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use flowstart_parallel::Cancel;
use flowstart_service_curve::{Error, MessageTrain, Passed, RateProbe, Record, probe_rate};
use flowstart_units::{Rate, Span, Time};

use super::{Benchmark, ProbedRate};

/// What whoever measures a rate tells its judge, and hears from it; for any thread.
#[derive(Debug)]
pub struct Judge<'a> {
    delays: Sender<Span>,
    decided: &'a AtomicBool,
    cancel: &'a Cancel,
}

impl Judge<'_> {
    /// The next message had this delay.
    pub fn hear(&self, delay: Span) {
        // Nobody listens any more once it is decided.
        let _ = self.delays.send(delay);
    }

    /// Nothing more needs to be measured: it is decided, or was cancelled.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.decided.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    /// What was measured until now counts: it is decided, or was not cancelled.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.decided.load(Ordering::Relaxed) || !self.cancel.is_cancelled()
    }
}

/// A rate's verdict, and the delays by which it came about.
#[derive(Clone, Debug)]
pub struct Judged {
    probe: RateProbe,
    gap: Span,
    /// The delays that were judged, of the first messages.
    pub delays: Vec<Span>,
}

impl Judged {
    /// The rate with the messages that were sent from `start` on; `passed`: when each had passed
    /// the path, as far as that is known.
    #[must_use]
    pub fn since(self, benchmark: &Benchmark, start: Time, passed: Vec<Option<Passed>>) -> ProbedRate {
        let train = MessageTrain { rate: self.probe.rate, start, gap: self.gap, delays: self.delays };
        let passed = passed.into_iter().chain(std::iter::repeat(None));
        let records = train.records().zip(passed).map(|(record, passed)| Record { passed, ..record }).collect();
        ProbedRate::new(benchmark, self.probe, records)
    }
}

/// Why a rate has no verdict.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unjudged {
    /// Its delays cannot be judged.
    Judgement(Error),
    /// The judge ended by a fault.
    Fault,
}

impl std::fmt::Display for Unjudged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Judgement(error) => error.fmt(f),
            Self::Fault => f.write_str("a part of flowstart ended by a fault"),
        }
    }
}

impl std::error::Error for Unjudged {}

impl Benchmark {
    /// Lets `measure` send messages at this rate, while a thread of its own judges their delays in
    /// the order in which it hears of them. What `measure` returned, and the verdict.
    ///
    /// # Errors
    /// If the delays cannot be judged.
    pub fn judge_while<T>(
        &self,
        rate: Rate,
        cancel: &Cancel,
        measure: impl FnOnce(&Judge<'_>) -> T,
    ) -> Result<(T, Judged), Unjudged> {
        let decided = AtomicBool::new(false);
        let (tell, delays) = channel();
        std::thread::scope(|scope| {
            let judge = scope.spawn(|| {
                let mut kept = Vec::new();
                let watched = delays.into_iter().inspect(|delay| kept.push(*delay));
                let judged = probe_rate(rate, watched, &self.procedure());
                decided.store(true, Ordering::Relaxed);
                judged.map(|probe| (probe, kept))
            });
            let measured = measure(&Judge { delays: tell, decided: &decided, cancel });
            let (probe, delays) = judge.join().map_err(|_| Unjudged::Fault)?.map_err(Unjudged::Judgement)?;
            let gap = rate.transmission_time(self.probe.packet).max(Span::from_nanos(1));
            Ok((measured, Judged { probe, gap, delays }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_race::Race;
    use flowstart_service_curve::{Probability, ProbeVerdict};

    const RATE: Rate = Rate::from_mbps(1);

    fn benchmark() -> Benchmark {
        let mut benchmark = Benchmark::new(Race::default());
        benchmark.probe.samples = 50;
        benchmark.probe.epsilon = Probability::new(0.02).unwrap();
        benchmark.probe.warm_up = Span::ZERO;
        benchmark
    }

    /// Tells the same delay until it is over, or so many times.
    fn tell(judge: &Judge<'_>, most: usize) -> usize {
        let told = (0..most).take_while(|_| !judge.is_over());
        told.inspect(|_| judge.hear(Span::from_millis(5))).count()
    }

    #[test]
    fn measuring_ends_with_the_verdict_and_what_was_judged_is_there() {
        let (benchmark, cancel) = (benchmark(), Cancel::default());
        let measure = |judge: &Judge<'_>| (tell(judge, usize::MAX), judge.counts());
        let ((told, counts), judged) = benchmark.judge_while(RATE, &cancel, measure).unwrap();
        let count = judged.delays.len();
        assert!(counts && (1..=told).contains(&count), "{count} of {told}");
        let start = Time::ZERO + Span::from_secs(3);
        let passed = Passed { left: start, arrived: start + Span::from_millis(4) };
        let one = judged.since(&benchmark, start, vec![Some(passed)]);
        assert!(matches!(one.probe.verdict, ProbeVerdict::Accepted(_)), "{:?}", one.probe.verdict);
        let gap = RATE.transmission_time(benchmark.probe.packet);
        let second = one.records[1];
        assert_eq!((one.records.len(), second.sent, second.passed), (count, start + gap, None));
        assert_eq!((one.records[0].passed, second.received), (Some(passed), start + gap + Span::from_millis(5)));
    }

    #[test]
    fn what_is_cancelled_before_it_is_decided_does_not_count() {
        let (benchmark, cancel) = (benchmark(), Cancel::default());
        let measure = |judge: &Judge<'_>| {
            tell(judge, 3);
            cancel.cancel();
            (judge.is_over(), judge.counts())
        };
        let (measured, judged) = benchmark.judge_while(RATE, &cancel, measure).unwrap();
        assert_eq!((measured, judged.delays.len()), ((true, false), 3));
    }

    #[test]
    fn what_cannot_be_judged_is_told_in_the_words_of_the_procedure() {
        let mut benchmark = benchmark();
        benchmark.probe.samples = 0;
        let error = benchmark.judge_while(RATE, &Cancel::default(), |judge| tell(judge, 3)).unwrap_err();
        assert_eq!(error, Unjudged::Judgement(benchmark.procedure().validate().unwrap_err()));
    }
}
