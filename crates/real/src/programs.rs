//! The programs of `flowstart emulate`: started in their hosts, watched, and ended.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use flowstart_emulator::{Host, World, die_with_this_thread};
use flowstart_parallel::Cancel;

use super::failure;
use crate::cli::EmulateArgs;
use crate::output::{Failure, Outcome, note};

/// How often running programs are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long a program may take to end when asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How the programs ended.
pub(super) struct Ended {
    pub(super) reason: String,
    pub(super) outcome: Outcome,
}

impl Ended {
    fn with(reason: impl Into<String>, outcome: Outcome) -> Self {
        Self { reason: reason.into(), outcome }
    }
}

/// Programs that run; they are asked to end when this is dropped.
struct Running(Vec<(String, Child)>);

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

/// Starts the servers, waits until they are ready, runs the commands, and waits for their end, Ctrl-C or the time limit.
pub(super) fn programs(args: &EmulateArgs, world: &World, cancel: &Cancel) -> Result<Ended, Failure> {
    let limit = Instant::now() + Duration::from_nanos(args.time_limit.as_nanos());
    let pairs: Vec<(&Host, &Host)> = world.hosts().chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect();
    let mut servers = Running(Vec::new());
    if let Some(line) = &args.server {
        for (number, (_, server)) in pairs.iter().enumerate() {
            let mut command = server.command("sh");
            command.args(["-c", line]).stdin(Stdio::null());
            let child = start(command, &pairs, number, args.json, server)?;
            servers.0.push((server.name().to_owned(), child));
        }
        for ((_, server), (_, child)) in pairs.iter().zip(&mut servers.0) {
            wait_until_ready(args, server, child, cancel)?;
        }
    }
    let mut commands = Running(Vec::new());
    for (number, (client, server)) in pairs.iter().enumerate() {
        let mut command = match args.command.as_slice() {
            [] if number > 0 => break,
            [] => {
                note(&shell_note(&pairs, server));
                client.command(std::env::var_os("SHELL").unwrap_or_else(|| "sh".into()))
            }
            [program, rest @ ..] => {
                let mut command = client.command(program);
                command.args(rest);
                command
            }
        };
        if !args.command.is_empty() && (args.json || pairs.len() > 1) {
            command.stdin(Stdio::null());
        }
        let child = start(command, &pairs, number, args.json, client)?;
        commands.0.push((client.name().to_owned(), child));
    }
    watch(args, world, cancel, limit, &mut commands)
}

/// Waits for the end of the commands.
fn watch(
    args: &EmulateArgs,
    world: &World,
    cancel: &Cancel,
    limit: Instant,
    commands: &mut Running,
) -> Result<Ended, Failure> {
    let several = commands.0.len() > 1;
    let mut first_failure = None;
    while !commands.0.is_empty() {
        let mut left = Vec::new();
        for (host, mut child) in commands.0.drain(..) {
            match child.try_wait().map_err(Failure::usage)? {
                None => left.push((host, child)),
                Some(status) => {
                    let whose = if several { format!("the command on {host}") } else { "the command".to_owned() };
                    let ended = ended(&whose, status);
                    if ended.outcome.is_err() {
                        first_failure.get_or_insert(ended);
                    } else if !several {
                        return Ok(ended);
                    }
                }
            }
        }
        commands.0 = left;
        if cancel.is_cancelled() {
            return Ok(Ended::with("ended by Ctrl-C", Err(Failure::Interrupted)));
        }
        if Instant::now() > limit {
            let why = format!("the time limit of {} was reached", args.time_limit);
            return Ok(Ended::with(why.clone(), Err(Failure::Usage(why))));
        }
        if world.has_failed() {
            return Ok(Ended::with("the emulator failed", Err(Failure::Check)));
        }
        if !commands.0.is_empty() {
            std::thread::sleep(LOOK);
        }
    }
    Ok(first_failure.unwrap_or_else(|| Ended::with("the commands ended", Ok(()))))
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
        (Some(0), _) => Ended::with(format!("{what} ended"), Ok(())),
        (Some(code), _) => {
            // As shells and env do: the program's own status.
            let status = u8::try_from(code).unwrap_or(1);
            Ended::with(format!("{what} ended with status {code}"), Err(Failure::Status(status)))
        }
        (None, signal) => {
            let signal = signal.unwrap_or(0);
            let status = u8::try_from(128 + signal).unwrap_or(1);
            Ended::with(format!("{what} was ended by signal {signal}"), Err(Failure::Status(status)))
        }
    }
}

/// Starts a program of a pair, with the addresses of both hosts and the number of the pair in its environment.
fn start(
    mut command: Command,
    pairs: &[(&Host, &Host)],
    number: usize,
    quiet: bool,
    on: &Host,
) -> Result<Child, Failure> {
    let (client, server) = pairs[number];
    for (host, name) in [(client, "CLIENT"), (server, "SERVER")] {
        command.env(format!("FLOWSTART_{name}"), host.address().to_string());
        if let Some(address) = host.address_v6() {
            command.env(format!("FLOWSTART_{name}_V6"), address.to_string());
        }
    }
    command.env("FLOWSTART_PAIR", (number + 1).to_string()).env("FLOWSTART_PAIRS", pairs.len().to_string());
    if quiet {
        // Standard output is for the document.
        command.stdout(std::io::stderr());
    }
    die_with_this_thread(&mut command);
    let what = if std::ptr::eq(on, client) { "the command" } else { "the server" };
    command.spawn().map_err(|error| Failure::Usage(format!("cannot start {what}: {error}")))
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
fn wait_until_ready(args: &EmulateArgs, host: &Host, child: &mut Child, cancel: &Cancel) -> Outcome {
    let within = Instant::now() + Duration::from_nanos(args.ready_within.as_nanos());
    loop {
        if host.listens().map_err(|error| failure(&error))? {
            return Ok(());
        }
        if let Some(status) = child.try_wait().map_err(Failure::usage)? {
            return Err(Failure::Usage(format!("the server ended before it was ready ({status})")));
        }
        if cancel.is_cancelled() {
            return Err(Failure::Interrupted);
        }
        if Instant::now() > within {
            return Err(Failure::Usage(format!(
                "the server listens on no port after {}; --ready-within gives it more time",
                args.ready_within
            )));
        }
        std::thread::sleep(LOOK);
    }
}
