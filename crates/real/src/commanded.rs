//! A program in the place of the kernel's sender: any other stack, which says itself when its
//! messages were written and read.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use flowstart_emulator::traffic::{RunConfig, run_watched};
use flowstart_emulator::{Fidelity, Host, World};
use flowstart_parallel::Cancel;
use flowstart_scenario::Scenario;
use flowstart_simulator::Stop;
use flowstart_units::{Bytes, Rate, Span, Time};

use super::controls::QUICK_START;
use super::layout::Layout;
use super::perform::{LEAD, prepare_hosts};
use super::plan::Plan;
use super::programs::{start, wait_until_ready};
use super::quick_start::{carry, is_used};
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
/// How long it is tried whether a command fails at once.
const TRIED: Duration = Duration::from_secs(1);
/// For how long of its messages a record may say something by then, as it is waited for a moment.
const TRIED_AT_MOST: u64 = 2;
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long it may take to end when asked to.
const END_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of its record per message, and beside messages, that are taken at most: five numbers of
/// twenty digits, and what somebody may put beside them.
const BYTES_PER_MESSAGE: u64 = 400;
const MORE_BYTES: u64 = 1 << 20;

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
    /// Bytes that left its host meanwhile, with headers.
    pub(super) sent: u64,
    /// How long it ran.
    pub(super) ran: Duration,
    /// For how long it was asked to send.
    pub(super) asked: Span,
    pub(super) fidelity: Fidelity,
    pub(super) faults: Vec<String>,
}

/// Starts a program alone over the path of a scenario, for a moment: one that fails at once is told
/// before flows beside it have run for half a minute. What it wrote, if it ended well.
pub(super) fn try_out(
    scenario: &Scenario,
    flow: usize,
    (program, rate, message): (&Program, Rate, Bytes),
    cancel: &Cancel,
) -> Result<Option<Vec<u8>>, Error> {
    let compiled = scenario.simulation(0)?;
    let mut layout = Layout::new(&compiled)?;
    layout.config.lead = LEAD;
    let (Stop::At(until) | Stop::WhenComplete(until)) = compiled.simulation.stop;
    let begin = compiled.simulation.flows.get(flow).ok_or(Error::NothingToProbe)?.start;
    let pair = layout.ways[flow].0 / 2;
    let world = World::start(layout.config.clone())?;
    prepare_hosts(&compiled, &layout, &world)?;
    let hosts: Vec<(&Host, &Host)> = world.hosts().chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect();
    let listening = listen(program, &hosts, pair, cancel)?;
    let group = send(program, (rate, until.since(begin)), &hosts, pair)?;
    let until = Instant::now() + TRIED;
    let over = || cancel.is_cancelled() || world.has_failed() || Instant::now() > until;
    let tried = output(group, TRIED * 2, most_bytes(rate, message, TRIED_AT_MOST), &over);
    drop(listening);
    tried
}

/// Bytes that the record of so many seconds has at most.
fn most_bytes(rate: Rate, message: Bytes, seconds: u64) -> u64 {
    let messages = (rate.as_bps() / message.bits().max(1)).saturating_mul(seconds);
    MORE_BYTES.saturating_add(messages.saturating_mul(BYTES_PER_MESSAGE))
}

/// Starts a program's server, if it has one, and waits until it listens.
fn listen(program: &Program, hosts: &[(&Host, &Host)], pair: usize, cancel: &Cancel) -> Result<Option<Group>, Error> {
    let Some(line) = &program.server else { return Ok(None) };
    let server = hosts[pair].1;
    let mut command = server.command("sh");
    command.args(["-c", line]).stdin(Stdio::null()).process_group(0);
    let mut group = Group(start(command, hosts, pair, true, server)?);
    wait_until_ready(READY_WITHIN, server, &mut group.0, cancel)?;
    Ok(Some(group))
}

/// Starts a program that sends at a rate for a time.
fn send(
    program: &Program,
    (rate, lasting): (Rate, Span),
    hosts: &[(&Host, &Host)],
    pair: usize,
) -> Result<Group, Error> {
    let client = hosts[pair].0;
    let mut command = client.command("sh");
    let line = program.line(rate, lasting);
    command.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    start(command, hosts, pair, false, client).map(Group)
}

/// Runs a scenario with a program in the place of the flow of this number, from the flow's start on
/// until the program ends.
pub(super) fn command(
    scenario: &Scenario,
    flow: usize,
    (program, rate, message): (&Program, Rate, Bytes),
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
    let is_named = program.command.contains(QUICK_START);
    let is_used = is_named || is_used(&plan.flows, &plan.sessions);
    let _carried = carry(&world, is_used, &|_| ())?;
    prepare_hosts(&compiled, &layout, &world)?;
    let hosts: Vec<(&Host, &Host)> = world.hosts().chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect();
    // Before flows of the kernel listen on the same host.
    let listening = listen(program, &hosts, pair, cancel)?;
    let (seed, run, sample) = (compiled.simulation.seed, compiled.simulation.run, Span::ZERO);
    // The others stay until the program has ended.
    let config = RunConfig {
        until: Time::NEVER,
        ends_world: false,
        stop_when_complete: false,
        sample,
        seed,
        run,
        stamped: None,
    };
    let ended = AtomicBool::new(false);
    let over = || ended.load(Ordering::Relaxed) || cancel.is_cancelled() || world.has_failed();
    let most = most_bytes(rate, message, until.since(begin).as_nanos().div_ceil(1_000_000_000));
    let (record, sent, ran) = std::thread::scope(|scope| {
        let others = scope.spawn(|| run_watched(&world, &plan.flows, &plan.sessions, config, &over, &|_, _, _| {}));
        let record: Result<_, Error> = (|| {
            while world.clock().now() < begin {
                if over() {
                    return Ok((None, 0, Duration::ZERO));
                }
                world.clock().sleep_until(begin.min(world.clock().now() + Span::from_millis(20)));
            }
            let (began, before) = (Instant::now(), hosts[pair].0.sent()?);
            let group = send(program, (rate, until.since(begin)), &hosts, pair)?;
            let patience = Duration::from_nanos(until.since(begin).as_nanos()) + GRACE;
            let record = output(group, patience, most, &over)?;
            Ok((record, hosts[pair].0.sent()?.saturating_sub(before), began.elapsed()))
        })();
        ended.store(true, Ordering::Relaxed);
        let others = others.join().unwrap_or(Err(flowstart_emulator::Error::Failed("a thread failed".to_owned())));
        others?;
        record
    })?;
    drop(listening);
    let outcome = world.finish()?;
    Ok(Commanded { record, sent, ran, asked: until.since(begin), fidelity: outcome.fidelity, faults: outcome.faults })
}

/// A program and all that it starts, unless that leaves its group; asked to end when this is
/// dropped. It is a group of its own, so that Ctrl-C reaches it by us and its time limit reaches
/// what a shell has started.
struct Group(Child);

impl Group {
    fn signal(&self, signal: Signal) {
        // Without processes in it there is nothing to be done.
        let _ = i32::try_from(self.0.id()).map(|id| killpg(Pid::from_raw(id), signal));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
        let until = Instant::now() + END_WITHIN;
        while Instant::now() < until && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        // What it has started may outlive it.
        self.signal(Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

/// What a program writes until it ends, so many bytes at most; `None` if it was ended because all
/// is `over`.
fn output(mut group: Group, patience: Duration, most: u64, over: &dyn Fn() -> bool) -> Result<Option<Vec<u8>>, Error> {
    let until = Instant::now() + patience;
    let mut stdout = group.0.stdout.take().ok_or(Error::Fault)?;
    let mut bytes = Vec::new();
    // The end of its output is the end of it and of all that it has started; one that ends leaves
    // what it has written in the pipe.
    loop {
        let ended = group.0.try_wait().map_err(Error::Wait)?;
        let more = take(&mut stdout, &mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(Error::CommandTooMuch(most));
        }
        match ended {
            Some(status) if !more => {
                return if status.success() { Ok(Some(bytes)) } else { Err(Error::CommandEnded(status)) };
            }
            _ if over() => return Ok(None),
            _ if Instant::now() > until => return Err(Error::CommandTooLong(patience)),
            // Its output is closed, or it has nothing to say.
            None if !more => std::thread::sleep(LOOK),
            _ => {}
        }
    }
}

/// Takes what is there to be read, one piece, waiting for a moment. False if there was nothing.
fn take(stdout: &mut ChildStdout, bytes: &mut Vec<u8>) -> Result<bool, Error> {
    const PIECE: usize = 1 << 16;
    let wait = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::ZERO);
    let there = match poll(&mut [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)], wait) {
        Ok(count) => count > 0,
        Err(nix::errno::Errno::EINTR) => false,
        Err(error) => return Err(Error::Wait(error.into())),
    };
    if !there {
        return Ok(false);
    }
    let mut piece = vec![0; PIECE];
    let read = stdout.read(&mut piece).map_err(Error::Wait)?;
    bytes.extend_from_slice(&piece[..read]);
    Ok(read > 0)
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

    fn run(line: &str, patience: Duration, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        output(Group(command.spawn().unwrap()), patience, most, &|| false)
    }

    #[test]
    fn what_a_command_writes_is_taken_whole_and_what_it_leaves_behind_holds_nobody_up() {
        let long = Duration::from_secs(300);
        assert_eq!(run("echo a; echo b", long, 100).unwrap().unwrap(), b"a\nb\n");
        assert_eq!(run("head -c 300000 /dev/zero", long, 300_000).unwrap().unwrap().len(), 300_000);
        // A child of the shell that holds its output.
        assert_eq!(run("sleep 7777 & echo a", long, 100).unwrap().unwrap(), b"a\n");
        assert!(matches!(run("exit 3", long, 100), Err(Error::CommandEnded(_))));
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_with_all_that_it_started() {
        let refused = run("sleep 7778; true", Duration::from_millis(100), 100);
        assert!(matches!(refused, Err(Error::CommandTooLong(_))), "{refused:?}");
        let mut left = std::process::Command::new("pgrep");
        assert_eq!(left.args(["-f", "^sleep 7778$"]).output().unwrap().stdout, b"");
    }

    #[test]
    fn a_command_that_writes_without_end_is_ended() {
        let refused = run("yes 1,2,3", Duration::from_secs(300), 1_000_000);
        assert!(matches!(refused, Err(Error::CommandTooMuch(1_000_000))), "{refused:?}");
    }
}
