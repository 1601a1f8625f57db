//! Attainable rates of this machine's kernel: constant-rate probes over emulated paths, judged by
//! the estimator that judges simulated ones.

use std::time::{Duration, Instant};

use flowstart_benchmark::{Attained, Benchmark, Kept, KeptError, KeptOf, ProbedRate};
use flowstart_emulator::{Fidelity, traffic};
use flowstart_parallel::Cancel;
use flowstart_race::Contestant;
use flowstart_scenario::{PathSpec, Scenario};
use flowstart_service_curve::{ProbeVerdict, Record, RecordError, estimate_records, last_wanted, read_csv};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::Error;
use super::commanded::{Commanded, Program, command, try_out};
#[cfg(feature = "quic")]
use super::controls::not_over_quic_of_path;
use super::controls::{like, not_real_of_path, other_start};
use super::kept::KeptPath;
use super::probe::{Probed, probe};
use super::stamps::StampCheck;

/// What a benchmark of kernels brought.
#[derive(Debug, Default)]
pub struct RealBenchmark {
    /// What was found out about each congestion control, in the order asked for; less if it was
    /// cancelled.
    pub attained: Vec<Attained>,
    /// How faithful the path of each probe was, those that were finished before among them.
    pub fidelities: Vec<Fidelity>,
    /// How the stamps of the probes' sockets agree with when packets were seen; `None` if no socket
    /// of the kernel's TCP was probed.
    pub stamps: Option<StampCheck>,
    /// Parts of the emulator that failed, each with its reason.
    pub faults: Vec<String>,
    /// Why it ended early, if not because it was cancelled; what was finished is there.
    pub failed: Option<Error>,
    /// Stacks of which no rate was finished.
    pub not_reached: Vec<String>,
    /// Rates that were finished before.
    pub known: usize,
    /// False if it was cancelled.
    pub complete: bool,
}

/// Paths of together this capacity run at once unless something else is said: some 5000 data
/// packets per second, which take most of one core at a virtual machine of two.
const CAPACITY_AT_ONCE: Rate = Rate::from_mbps(60);
/// The control of flows beside a program.
const DEFAULT_CONTROL: &str = "cubic";
/// The share of the messages, and of the time, that a program's record must have at least where its
/// rate is accepted.
const OFFERED: f64 = 0.95;
/// How often it is looked whether probes have ended, and progress is told.
const LOOK: Duration = Duration::from_millis(100);

/// A congestion control of this kernel.
///
/// # Errors
/// [`Error::UnknownControl`] with those there are.
pub fn control_named(name: &str) -> Result<String, Error> {
    let known = traffic::congestion_controls();
    if known.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    Err(Error::UnknownControl { name: name.to_owned(), known })
}

/// How many rates are probed at once by default: as many as this machine can be expected to carry,
/// each on a path of its own.
#[must_use]
pub fn at_once(benchmark: &Benchmark) -> usize {
    let fit = CAPACITY_AT_ONCE.as_bps() / benchmark.capacity().as_bps().max(1);
    (fit as usize).clamp(1, benchmark.rates().len().max(1))
}

/// How long one round of rates takes at most.
#[must_use]
pub fn longest(benchmark: &Benchmark) -> Span {
    let duration = |like: Contestant| benchmark.real_scenario(&like, DEFAULT_CONTROL, benchmark.step()).0.duration;
    like(DEFAULT_CONTROL).map_or(Span::ZERO, duration)
}

/// Checks that flows beside the probes are such as the kernel has.
///
/// # Errors
/// [`Error::OtherStart`] and those of a scenario that makes no sense.
pub fn check(benchmark: &Benchmark, stacks: &[Stack]) -> Result<(), Error> {
    for stack in stacks {
        let (scenario, _) = stack.scenario(benchmark, &stack.like()?, benchmark.step());
        let compiled = scenario.simulation(0)?;
        #[cfg(feature = "quic")]
        if let Stack::Quic(..) = stack {
            super::quic::check(&compiled)?;
            continue;
        }
        let others = compiled.groups.iter().filter(|label| label.kernel.is_none());
        if let Some(other) = others.map(|label| other_start(&label.algorithm)).find_map(|other| other) {
            return Err(Error::OtherStart(other));
        }
    }
    Ok(())
}

/// What is probed.
#[derive(Clone, Debug, PartialEq)]
pub enum Stack {
    /// A congestion control of the kernel.
    Control(String),
    /// A contestant over this project's QUIC, which drives this stack.
    #[cfg(feature = "quic")]
    Quic(Box<Contestant>, flowstart_quic::Stack),
    /// Another stack.
    Program(Program),
}

impl Stack {
    /// What tables call it.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Control(name) => format!("{name} (kernel)"),
            #[cfg(feature = "quic")]
            Self::Quic(contestant, stack) if *stack == flowstart_quic::Stack::default() => {
                format!("{contestant} (QUIC)")
            }
            #[cfg(feature = "quic")]
            Self::Quic(contestant, stack) => format!("{contestant} (QUIC, {})", stack.name()),
            Self::Program(program) => format!("{} (program)", program.name()),
        }
    }

    /// What of a path has no effect on its receivers, in words; `None` if all of it has.
    #[must_use]
    pub fn leaves_out(&self, path: &PathSpec) -> Option<String> {
        match self {
            #[cfg(feature = "quic")]
            Self::Quic(..) => not_over_quic_of_path(path),
            Self::Control(_) | Self::Program(_) => not_real_of_path(path),
        }
    }

    /// The congestion control of the kernel that it, or the flows beside it, have.
    fn control(&self) -> &str {
        match self {
            Self::Control(name) => name,
            _ => DEFAULT_CONTROL,
        }
    }

    /// The contestant with whose settings of hosts and queue it is probed.
    fn like(&self) -> Result<Contestant, Error> {
        match self {
            #[cfg(feature = "quic")]
            Self::Quic(contestant, _) => Ok(Contestant::clone(contestant)),
            _ => like(self.control()).ok_or(Error::NothingToProbe),
        }
    }

    /// The scenario in which it is probed at this rate, and the number of the probe among its
    /// flows.
    fn scenario(&self, benchmark: &Benchmark, like: &Contestant, rate: Rate) -> (Scenario, usize) {
        match self {
            #[cfg(feature = "quic")]
            Self::Quic(contestant, _) => benchmark.own_scenario(contestant, rate),
            _ => benchmark.real_scenario(like, self.control(), rate),
        }
    }

    /// All that makes it another stack if it changes: its name, settings or command lines, and the
    /// release of the kernel; of this project's QUIC also the version.
    fn identity(&self) -> String {
        let server = match self {
            Self::Program(Program { server: Some(server), .. }) => format!(", server `{server}`"),
            #[cfg(feature = "quic")]
            Self::Quic(..) => format!(", flowstart {}", env!("CARGO_PKG_VERSION")),
            _ => String::new(),
        };
        self.conditions() + &server
    }

    fn conditions(&self) -> String {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let linux = format!("Linux {}", release.trim());
        match self {
            Self::Control(name) => format!("{name} of {linux}"),
            #[cfg(feature = "quic")]
            Self::Quic(contestant, stack) => {
                format!("{contestant} over this project's QUIC ({}) on {linux}", stack.name())
            }
            Self::Program(program) => format!("`{}` beside {DEFAULT_CONTROL} of {linux}", program.command),
        }
    }
}

/// Probes stacks one after the other, so many rates of each at a time, each in a world of its own,
/// until the estimator has decided or the time is up (programs: to the end of the time). What is
/// `kept` is not probed again. `progress` hears how much of the longest possible time is over, in
/// seconds. [Privileges] must be there.
///
/// [Privileges]: flowstart_emulator::privilege
///
/// # Errors
/// If it cannot be done here, or the benchmark makes no sense.
pub fn benchmark(
    benchmark: &Benchmark,
    stacks: &[Stack],
    at_once: usize,
    kept: Option<&dyn Kept>,
    cancel: &Cancel,
    progress: &dyn Fn(f64, f64),
) -> Result<RealBenchmark, Error> {
    benchmark.validate()?;
    let rates = benchmark.rates();
    let rounds = rates.len().div_ceil(at_once.max(1));
    let length = longest(benchmark).as_secs_f64();
    let mut all = RealBenchmark { complete: true, ..RealBenchmark::default() };
    let (mut over, mut left) = (0.0, rounds * stacks.len());
    for stack in stacks {
        let (label, identity) = (stack.label(), stack.identity());
        let of = KeptOf { label: &label, identity: &identity };
        let probing = Probing { benchmark, stack, like: stack.like()?, cancel };
        let mut done: Vec<ProbedRate> = Vec::new();
        let mut tried = false;
        for rates in rates.chunks(at_once.max(1)) {
            left -= 1;
            let last = last_wanted(done.iter().map(|done| (done.probe.rate, done.probe.verdict)), &benchmark.probe);
            let is_wanted = |rate: &Rate| last.is_none_or(|last| *rate <= last);
            let mut wanted: Vec<Rate> = rates.iter().copied().filter(is_wanted).collect();
            if let Some(kept) = kept {
                let before = probing.known((kept, of), &wanted, &mut all)?;
                all.known += before.len();
                wanted.retain(|rate| before.iter().all(|done| done.probe.rate != *rate));
                done.extend(before);
            }
            if cancel.is_cancelled() || all.failed.is_some() || wanted.is_empty() {
                continue;
            }
            if let (Stack::Program(program), false) = (stack, std::mem::replace(&mut tried, true))
                && let Err(error) = probing.try_out(program, wanted[0])
            {
                if !error.is_cancelled() {
                    all.failed = Some(error);
                }
                continue;
            }
            let began = Instant::now();
            let tell = || progress(over + began.elapsed().as_secs_f64().min(length), over + length * (1 + left) as f64);
            for probed in probing.round(&wanted, &tell) {
                match probed {
                    Ok((one, probed)) => {
                        if let (Some(kept), Some(one)) = (kept, &one)
                            && let Err(error) = keep((kept, of), one, &probed)
                        {
                            all.failed.get_or_insert(Error::Kept(error));
                        }
                        all.heard(probed.fidelity, probed.faults, probed.stamps);
                        done.extend(one);
                    }
                    // Who asked for an end needs no reason for it.
                    Err(error) if error.is_cancelled() => {}
                    // The first is told; others follow from it, or are like it.
                    Err(error) => {
                        all.failed.get_or_insert(error);
                    }
                }
            }
            over += began.elapsed().as_secs_f64();
        }
        if done.is_empty() {
            all.not_reached.push(label);
        } else {
            all.attained.push(probing.attained(done)?);
        }
    }
    if all.attained.is_empty()
        && let Some(error) = all.failed.take()
    {
        return Err(error);
    }
    all.complete = !cancel.is_cancelled() && all.failed.is_none();
    Ok(all)
}

/// Keeps a rate with what is known of its path.
fn keep((kept, of): (&dyn Kept, KeptOf<'_>), one: &ProbedRate, probed: &Probed) -> Result<(), KeptError> {
    let path = serde_json::to_value(KeptPath::of(probed)).map_err(|error| error.to_string())?;
    kept.keep(of, one.probe.rate, &one.records, path)
}

impl RealBenchmark {
    /// How faithful a path was.
    fn heard(&mut self, fidelity: Fidelity, faults: Vec<String>, stamps: Option<StampCheck>) {
        self.fidelities.push(fidelity);
        self.faults.extend(faults);
        if let Some(stamps) = stamps {
            self.stamps.get_or_insert_default().add(stamps);
        }
    }
}

/// The record that a program wrote.
fn read_record(text: &[u8]) -> Result<Vec<Record>, Error> {
    if text.trim_ascii().is_empty() {
        return Err(Error::NoMessages);
    }
    let records: Vec<Record> = read_csv(text).and_then(Iterator::collect).map_err(Error::CommandRecord)?;
    if records.is_empty() { Err(Error::NoMessages) } else { Ok(records) }
}

/// A stack that is probed.
struct Probing<'a> {
    benchmark: &'a Benchmark,
    stack: &'a Stack,
    like: Contestant,
    cancel: &'a Cancel,
}

impl Probing<'_> {
    /// Those of these rates that were finished before. A path that was not faithful then is not
    /// now.
    fn known(
        &self,
        (kept, of): (&dyn Kept, KeptOf<'_>),
        rates: &[Rate],
        all: &mut RealBenchmark,
    ) -> Result<Vec<ProbedRate>, Error> {
        let mut known = Vec::new();
        for rate in rates {
            let Some(one) = kept.known(of, *rate).map_err(Error::Kept)? else { continue };
            let path: KeptPath = serde_json::from_value(one.path).map_err(|error| {
                Error::Kept(KeptError::new(format!("what was kept of the path of {rate}: {error}")))
            })?;
            let (fidelity, faults, stamps) = path.again();
            all.heard(fidelity, faults, stamps);
            known.push(ProbedRate::again(self.benchmark, *rate, one.records).map_err(Error::Kept)?);
        }
        Ok(known)
    }

    /// Probes these rates at once.
    fn round(&self, rates: &[Rate], tell: &dyn Fn()) -> Vec<Result<(Option<ProbedRate>, Probed), Error>> {
        let probe = |rate: Rate| {
            let probed = match self.stack {
                Stack::Program(program) => self.program(program, rate),
                _ => self.watched(rate),
            };
            probed.map_err(|error| Error::AtRate(rate, Box::new(error)))
        };
        std::thread::scope(|scope| {
            let probes: Vec<_> = rates.iter().map(|rate| scope.spawn(|| probe(*rate))).collect();
            while probes.iter().any(|probe| !probe.is_finished()) {
                std::thread::sleep(LOOK);
                tell();
            }
            probes.into_iter().map(|probe| probe.join().unwrap_or(Err(Error::Fault))).collect()
        })
    }

    /// Probes a stack that is watched message by message at one rate; nothing came out if it was
    /// cancelled before it was decided.
    fn watched(&self, rate: Rate) -> Result<(Option<ProbedRate>, Probed), Error> {
        let benchmark = self.benchmark;
        let (scenario, flow) = self.stack.scenario(benchmark, &self.like, rate);
        let ((probed, counts), judged) = benchmark.judge_while(rate, self.cancel, |judge| {
            let (over, hear) = (|| judge.is_over(), |delay| judge.hear(delay));
            let probed = match self.stack {
                #[cfg(feature = "quic")]
                Stack::Quic(_, stack) => super::quic_probe::probe(&scenario, (flow, *stack), &over, &hear, self.cancel),
                _ => probe(&scenario, flow, &over, &hear),
            };
            (probed, judge.counts())
        })?;
        let mut probed = probed?;
        let one = judged.since(benchmark, probed.start, std::mem::take(&mut probed.passed));
        Ok((counts.then_some(one), probed))
    }

    /// Fails if a program fails at once, or writes at once what is no record, or more than one has.
    fn try_out(&self, program: &Program, rate: Rate) -> Result<(), Error> {
        let (scenario, flow) = self.benchmark.real_scenario(&self.like, self.stack.control(), rate);
        try_out(&scenario, flow, (program, rate, self.benchmark.probe.packet), self.cancel)
            .and_then(|record| record.map_or(Ok(()), |text| read_record(&text).map(drop)))
            .map_err(|error| Error::AtRate(rate, Box::new(error)))
    }

    /// Lets a program run at one rate and judges its record; nothing came out if it was cancelled.
    fn program(&self, program: &Program, rate: Rate) -> Result<(Option<ProbedRate>, Probed), Error> {
        let (scenario, flow) = self.benchmark.real_scenario(&self.like, self.stack.control(), rate);
        let message = self.benchmark.probe.packet;
        let Commanded { record, sent, ran, asked, fidelity, faults } =
            command(&scenario, flow, (program, rate, message), self.cancel)?;
        let probed = Probed { start: Time::ZERO, passed: Vec::new(), stamps: None, fidelity, faults };
        let Some(text) = record else { return Ok((None, probed)) };
        let records = read_record(&text)?;
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return Err(Error::NoMessages) };
        if let Some(said) = records.iter().filter_map(|record| record.rate).find(|said| *said != rate) {
            return Err(Error::CommandRate(said, rate));
        }
        let read = records.iter().map(|record| record.received).max().unwrap_or(last.received);
        let covers = read.since(first.sent);
        if covers > Span::from_secs_f64(ran.as_secs_f64()) {
            return Err(Error::CommandRecordTooLong(covers, ran));
        }
        if let Some(before) = records.iter().position(|record| record.received < record.sent) {
            return Err(Error::CommandRecord(RecordError::ReceivedBeforeSent(before as u64 + 1)));
        }
        let path = &self.benchmark.race.path;
        let least = path.delay.unwrap_or(path.rtt / 2);
        if let Some(delay) =
            records.iter().map(|record| record.received.since(record.sent)).min().filter(|delay| *delay < least)
        {
            return Err(Error::CommandTooSoon(delay, least));
        }
        let estimate = estimate_records(records.iter().copied().map(Ok), Some(rate), &self.benchmark.procedure());
        let probe = estimate.map_err(Error::CommandRecord)?.probes.pop().ok_or(Error::NoMessages)?;
        // One that cannot keep up may be refused, but nothing is known of a rate that was not
        // offered.
        let within = last.sent.since(first.sent);
        let wanted = asked.as_secs_f64() * rate.as_bps() as f64 / message.bits() as f64 * OFFERED;
        let offered = within.as_secs_f64() >= asked.as_secs_f64() * OFFERED && records.len() as f64 >= wanted;
        if matches!(probe.verdict, ProbeVerdict::Accepted(_)) && !offered {
            return Err(Error::CommandOffered(records.len(), within, rate, asked));
        }
        // A record can be invented, or tell of messages that went elsewhere.
        let told = message * records.len() as u64;
        if (sent as f64) < told.get() as f64 * OFFERED {
            return Err(Error::CommandNotSent(records.len(), message, Bytes::new(sent)));
        }
        Ok((Some(ProbedRate::new(self.benchmark, probe, records)), probed))
    }

    /// What follows from all rates.
    fn attained(&self, done: Vec<ProbedRate>) -> Result<Attained, Error> {
        let queue = self.benchmark.race.queue_name(&self.like);
        let conditions = format!("{}, in real time over an emulated path, {queue}", self.stack.conditions());
        Ok(self.benchmark.attained_by(self.stack.label(), conditions, done)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_a_message() {
        for text in ["", " \n", "sent_ns,received_ns\n"] {
            assert!(matches!(read_record(text.as_bytes()), Err(Error::NoMessages)), "{text:?}");
        }
        assert_eq!(read_record(b"sent_ns,received_ns\n1,2\n").unwrap().len(), 1);
    }
}
