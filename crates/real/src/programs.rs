//! The programs of `flowstart emulate`: started in their hosts, watched, and ended.

use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use flowstart_emulator::{Host, World, die_with_this_thread};
use flowstart_parallel::Cancel;
use flowstart_units::Span;

use super::Error;

/// How often running programs are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long a program may take to end when asked to.
const GRACE: Duration = Duration::from_secs(2);

/// The programs of an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// Program to run on every client, and its arguments; none for a shell on the first.
    pub command: Vec<OsString>,
    /// Shell command to start on every server first.
    pub server: Option<String>,
    /// How long the server may take until it listens on a port.
    pub ready_within: Span,
    /// Longest run; then the command is ended.
    pub time_limit: Span,
    /// True if what commands write on standard output is to go to standard error, as what servers
    /// write there does anyway.
    pub quiet: bool,
}

/// How the programs ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// In words.
    pub reason: String,
    /// In kind.
    pub how: How,
}

/// The kinds of ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// All commands ended well.
    Well,
    /// A command ended with this status; 128 and the number if by a signal.
    Status(u8),
    /// Somebody asked to stop.
    Cancelled,
    /// At the time limit.
    TimeLimit,
    /// The emulator failed.
    Failed,
}

impl Ended {
    fn with(reason: impl Into<String>, how: How) -> Self {
        Self { reason: reason.into(), how }
    }
}

/// Programs that run; they are asked to end when this is dropped.
pub(super) struct Running(pub(super) Vec<(String, Child)>);

impl Drop for Running {
    fn drop(&mut self) {
        // All are asked before one is waited for.
        for (_, child) in &mut self.0 {
            ask_to_end(child);
        }
        for (_, child) in &mut self.0 {
            stop(child);
        }
    }
}

/// Starts the servers, waits until they are ready, runs the commands, and waits for their end,
/// Ctrl-C or the time limit. `say` hears where the user's shell is, if there is one.
pub(super) fn run_programs(
    args: &Programs,
    world: &World,
    cancel: &Cancel,
    say: &dyn Fn(&str),
) -> Result<Ended, Error> {
    let limit = Instant::now() + Duration::from_nanos(args.time_limit.as_nanos());
    let pairs: Vec<(&Host, &Host)> = world.hosts().chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect();
    let mut servers = Running(Vec::new());
    if let Some(line) = &args.server {
        for (number, (_, server)) in pairs.iter().enumerate() {
            let mut command = server.command("sh");
            command.args(["-c", line]).stdin(Stdio::null());
            // Standard output is the command's, which may be handed on.
            let child = start(command, &pairs, number, true, server)?;
            servers.0.push((server.name().to_owned(), child));
        }
        for ((_, server), (_, child)) in pairs.iter().zip(&mut servers.0) {
            wait_until_ready(args.ready_within, server, child, cancel)?;
        }
    }
    let mut commands = Running(Vec::new());
    for (number, (client, server)) in pairs.iter().enumerate() {
        let mut command = match args.command.as_slice() {
            [] if number > 0 => break,
            [] => {
                say(&shell_note(&pairs, server));
                client.command(std::env::var_os("SHELL").unwrap_or_else(|| "sh".into()))
            }
            [program, rest @ ..] => {
                let mut command = client.command(program);
                command.args(rest);
                command
            }
        };
        if !args.command.is_empty() && (args.quiet || pairs.len() > 1) {
            command.stdin(Stdio::null());
        }
        let child = start(command, &pairs, number, args.quiet, client)?;
        commands.0.push((client.name().to_owned(), child));
    }
    watch(args, world, cancel, limit, &mut commands)
}

/// Waits for the end of the commands.
fn watch(
    args: &Programs,
    world: &World,
    cancel: &Cancel,
    limit: Instant,
    commands: &mut Running,
) -> Result<Ended, Error> {
    let several = commands.0.len() > 1;
    let mut first_failure = None;
    while !commands.0.is_empty() {
        let mut left = Vec::new();
        for (host, mut child) in commands.0.drain(..) {
            match child.try_wait().map_err(Error::Wait)? {
                None => left.push((host, child)),
                Some(status) => {
                    let whose = if several { format!("the command on {host}") } else { "the command".to_owned() };
                    let ended = ended(&whose, status);
                    if ended.how != How::Well {
                        first_failure.get_or_insert(ended);
                    } else if !several {
                        return Ok(ended);
                    }
                }
            }
        }
        commands.0 = left;
        if cancel.is_cancelled() {
            return Ok(Ended::with("ended by Ctrl-C or a signal", How::Cancelled));
        }
        if Instant::now() > limit {
            let why = format!("the time limit of {} was reached", args.time_limit);
            return Ok(Ended::with(why, How::TimeLimit));
        }
        if world.has_failed() {
            return Ok(Ended::with("the emulator failed", How::Failed));
        }
        if !commands.0.is_empty() {
            std::thread::sleep(LOOK);
        }
    }
    Ok(first_failure.unwrap_or_else(|| Ended::with("the commands ended", How::Well)))
}

/// Where the user's shell is, and how to get to the others.
fn shell_note(pairs: &[(&Host, &Host)], server: &Host) -> String {
    let (name, address) = (server.name(), server.address());
    if let [_] = pairs {
        return format!("a shell on the client; the server is \"{name}\" ({address}); exit ends the emulation");
    }
    let mut text = format!("a shell on client1; its server is \"{name}\" ({address}); exit ends the emulation");
    if let Some(world) = server.netns_name().and_then(|label| label.strip_suffix(name).map(str::to_owned)) {
        text.push_str(&format!("; on the others by name: ip netns exec {world}client2 COMMAND"));
    }
    text
}

fn ended(what: &str, status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ended::with(format!("{what} ended"), How::Well),
        (Some(code), _) => {
            // As shells and env do: the program's own status.
            let status = u8::try_from(code).unwrap_or(1);
            Ended::with(format!("{what} ended with status {code}"), How::Status(status))
        }
        (None, signal) => {
            let signal = signal.unwrap_or(0);
            let status = u8::try_from(128 + signal).unwrap_or(1);
            Ended::with(format!("{what} was ended by signal {signal}"), How::Status(status))
        }
    }
}

/// Starts a program of a pair, with the addresses of both hosts and the number of the pair in its
/// environment.
pub(super) fn start(
    mut command: Command,
    pairs: &[(&Host, &Host)],
    number: usize,
    quiet: bool,
    on: &Host,
) -> Result<Child, Error> {
    let (client, server) = pairs[number];
    for (host, name) in [(client, "CLIENT"), (server, "SERVER")] {
        command.env(format!("FLOWSTART_{name}"), host.address().to_string());
        if let Some(address) = host.address_v6() {
            command.env(format!("FLOWSTART_{name}_V6"), address.to_string());
        }
    }
    command.env("FLOWSTART_PAIR", (number + 1).to_string()).env("FLOWSTART_PAIRS", pairs.len().to_string());
    if quiet {
        command.stdout(std::io::stderr());
    }
    die_with_this_thread(&mut command);
    let what = if std::ptr::eq(on, client) { "the command" } else { "the server" };
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|error| Error::Start { what, program, error })
}

/// Asks a program that still runs to end. True if it does still run.
fn ask_to_end(child: &mut Child) -> bool {
    let runs = matches!(child.try_wait(), Ok(None));
    if runs {
        let _ = Command::new("kill").arg(child.id().to_string()).stderr(Stdio::null()).status();
    }
    runs
}

/// Asks a program to end, and ends it if it does not.
fn stop(child: &mut Child) {
    if ask_to_end(child) {
        let until = Instant::now() + GRACE;
        while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Waits until a program on the server listens (TCP) or has a socket open (UDP).
pub(super) fn wait_until_ready(
    ready_within: Span,
    host: &Host,
    child: &mut Child,
    cancel: &Cancel,
) -> Result<(), Error> {
    let within = Instant::now() + Duration::from_nanos(ready_within.as_nanos());
    loop {
        if host.listens()? {
            return Ok(());
        }
        if let Some(status) = child.try_wait().map_err(Error::Wait)? {
            return Err(Error::ServerEnded(host.name().to_owned(), status));
        }
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if Instant::now() > within {
            return Err(Error::ServerNotReady(host.name().to_owned(), ready_within));
        }
        std::thread::sleep(LOOK);
    }
}
