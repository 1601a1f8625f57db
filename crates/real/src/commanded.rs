//! A program in the place of the kernel's sender: any other stack, which says itself when its
//! messages were written and read.

use std::io::Read as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flowstart_emulator::traffic::{RunConfig, run_watched};
use flowstart_emulator::{Fidelity, Host, World};
use flowstart_parallel::Cancel;
use flowstart_scenario::Scenario;
use flowstart_simulator::Stop;
use flowstart_units::{Rate, Span, Time};

use super::layout::Layout;
use super::perform::{LEAD, prepare_hosts};
use super::plan::Plan;
use super::programs::{Running, start, wait_until_ready};
use super::quick_start::carry;
use super::{Error, Transport};

/// A stack that is a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Shell command that sends at a rate for a time and then writes its record, as
    /// `flowstart_service_curve::read_csv` reads it, on standard output. `{rate}` stands for the
    /// rate in bit/s, `{seconds}` for the time.
    pub command: String,
    /// Shell command to start on the receiving host first; it listens on some port when it is
    /// ready.
    pub server: Option<String>,
}

/// What stands for the rate in a command, and for the time.
const RATE: &str = "{rate}";
const SECONDS: &str = "{seconds}";
/// How long a server may take until it listens.
const READY_WITHIN: Span = Span::from_secs(10);
/// How much longer than asked for a command may take, to receive what is on the way and to write.
const GRACE: Duration = Duration::from_secs(30);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);

impl Program {
    /// A program, if its command says where the rate and the time go.
    ///
    /// # Errors
    /// [`Error::CommandLacks`].
    pub fn new(command: &str, server: Option<&str>) -> Result<Self, Error> {
        if let Some(lacks) = [RATE, SECONDS].into_iter().find(|word| !command.contains(word)) {
            return Err(Error::CommandLacks(lacks));
        }
        Ok(Self { command: command.to_owned(), server: server.map(str::to_owned) })
    }

    /// What tables call it: its first word, without folders.
    #[must_use]
    pub fn name(&self) -> &str {
        let first = self.command.split_whitespace().next().unwrap_or_default();
        first.rsplit('/').next().unwrap_or(first)
    }

    /// The command for this rate and time (whole seconds, rounded up).
    fn line(&self, rate: Rate, lasting: Span) -> String {
        let seconds = lasting.as_nanos().div_ceil(Span::from_secs(1).as_nanos());
        self.command.replace(RATE, &rate.as_bps().to_string()).replace(SECONDS, &seconds.to_string())
    }
}

/// What a program brought.
pub(super) struct Commanded {
    /// What it wrote on standard output; `None` if it was cancelled.
    pub(super) record: Option<Vec<u8>>,
    pub(super) fidelity: Fidelity,
    pub(super) faults: Vec<String>,
}

/// Runs a scenario with a program in the place of the flow of this number, from the flow's start on
/// until the program ends.
pub(super) fn command(
    scenario: &Scenario,
    flow: usize,
    (program, rate): (&Program, Rate),
    cancel: &Cancel,
) -> Result<Commanded, Error> {
    let compiled = scenario.simulation(0)?;
    let mut layout = Layout::new(&compiled)?;
    layout.config.lead = LEAD;
    let (Stop::At(until) | Stop::WhenComplete(until)) = compiled.simulation.stop;
    let mut plan = Plan::new(&compiled, &layout, until, Transport::Kernel)?;
    let begin = compiled.simulation.flows.get(flow).ok_or(Error::NothingToProbe)?.start;
    plan.flows.remove(flow);
    let pair = layout.ways[flow].0 / 2;
    let world = World::start(layout.config.clone())?;
    let _carried = carry(&world)?;
    prepare_hosts(&compiled, &layout, &world)?;
    let hosts: Vec<(&Host, &Host)> = world.hosts().chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect();
    let (client, server) = hosts[pair];
    let mut servers = Running(Vec::new());
    if let Some(line) = &program.server {
        let mut command = server.command("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        let mut child = start(command, &hosts, pair, true, server)?;
        // Before flows of the kernel listen on the same host.
        wait_until_ready(READY_WITHIN, server, &mut child, cancel)?;
        servers.0.push((server.name().to_owned(), child));
    }
    let (seed, sample) = (compiled.simulation.seed.wrapping_add(compiled.simulation.run), Span::ZERO);
    // The others stay until the program has ended.
    let config = RunConfig { until: Time::NEVER, stop_when_complete: false, sample, seed };
    let ended = AtomicBool::new(false);
    let over = || ended.load(Ordering::Relaxed) || cancel.is_cancelled() || world.has_failed();
    let record = std::thread::scope(|scope| {
        let others = scope.spawn(|| run_watched(&world, &plan.flows, &plan.sessions, config, &over, &|_, _, _| {}));
        let record = (|| {
            while world.clock().now() < begin {
                if over() {
                    return Ok(None);
                }
                world.clock().sleep_until(begin.min(world.clock().now() + Span::from_millis(20)));
            }
            let mut command = client.command("sh");
            let line = program.line(rate, until.since(begin));
            command.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::piped());
            let child = start(command, &hosts, pair, false, client)?;
            let patience = Duration::from_nanos(until.since(begin).as_nanos()) + GRACE;
            output(child, client.name(), patience, &over)
        })();
        ended.store(true, Ordering::Relaxed);
        let others = others.join().unwrap_or(Err(flowstart_emulator::Error::Failed("a thread failed".to_owned())));
        others?;
        record
    })?;
    drop(servers);
    let outcome = world.finish()?;
    Ok(Commanded { record, fidelity: outcome.fidelity, faults: outcome.faults })
}

/// What a program writes until it ends; `None` if it was ended because all is `over`.
fn output(
    mut child: std::process::Child,
    host: &str,
    patience: Duration,
    over: &dyn Fn() -> bool,
) -> Result<Option<Vec<u8>>, Error> {
    let until = Instant::now() + patience;
    let stdout = child.stdout.take();
    // Ended when this is left, however that happens.
    let mut running = Running(vec![(host.to_owned(), child)]);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut bytes = Vec::new();
            stdout.map_or(Ok(bytes.len()), |mut stdout| stdout.read_to_end(&mut bytes)).map(|_| bytes)
        });
        let status = loop {
            match running.0.first_mut().map_or(Ok(None), |(_, child)| child.try_wait()).map_err(Error::Wait) {
                Ok(None) if over() => break Ok(None),
                Ok(None) if Instant::now() > until => break Err(Error::CommandTooLong(patience)),
                Ok(None) => std::thread::sleep(LOOK),
                Ok(Some(status)) => break Ok(Some(status)),
                Err(error) => break Err(error),
            }
        };
        // The reader ends with the program.
        drop(running);
        let bytes = reader.join().map_err(|_| Error::Fault)?;
        match status? {
            None => Ok(None),
            Some(status) if status.success() => Ok(Some(bytes.map_err(Error::Wait)?)),
            Some(status) => Err(Error::CommandEnded(status)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_where_rate_and_time_go() {
        let program = Program::new("/opt/quic/probe -r {rate} -t {seconds}", None).unwrap();
        assert_eq!(program.name(), "probe");
        let line = program.line(Rate::from_mbps(2), Span::from_millis(2_500));
        assert_eq!(line, "/opt/quic/probe -r 2000000 -t 3");
        for (command, lacks) in [("probe {seconds}", RATE), ("probe {rate}", SECONDS)] {
            let refused = Program::new(command, None).unwrap_err();
            assert!(matches!(refused, Error::CommandLacks(word) if word == lacks), "{refused}");
        }
    }
}
