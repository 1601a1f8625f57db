//! What is asked for across a real path.

use flowstart_race::{Carrier, Contestant};
use flowstart_scenario::Dialect;

use super::args::{BenchmarkArgs, DEFAULT_CONTESTANT};
use crate::compare::once_each;
use crate::output::{Done, Failure};

/// Refuses options of simulated and emulated paths.
pub(super) fn meant_for_path(args: &BenchmarkArgs) -> Done {
    let path = &args.path.path;
    let some = |number: Option<u32>| number.is_some_and(|number| number > 0);
    let given = [
        ("--real", !args.real.is_empty()),
        ("--command", args.command.is_some()),
        ("--on", !args.on.is_empty()),
        ("--scenario", args.scenario.is_some()),
        ("--profile", path.profile.is_some()),
        ("--rtt", path.rtt.is_some()),
        ("--buffer", path.buffer.is_some()),
        ("--mark", args.path.mark.is_some()),
        ("--ways", path.ways.is_some()),
        ("--with", !path.with.is_empty()),
        ("--peers", some(args.peers)),
        ("--background", !args.background.is_empty()),
        ("--bursts", some(args.bursts)),
        ("--connections", some(args.connections)),
        ("--joint", some(args.joint)),
        ("--at-once", args.at_once.is_some()),
        ("--fidelity", args.fidelity.is_some()),
        ("--to-the-end", args.to_the_end),
        ("--threads", args.threads.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Usage(format!(
            "{option} is for paths that are simulated or emulated, and --to measures across a real one, over QUIC and one \
             rate at a time: leave it out"
        ))),
        None => contestants(args).map(drop),
    }
}

/// Refuses what emulated hosts do whatever is asked for, of those who are probed and of those who
/// are there before. Beside simulated contestants hosts like Linux's are what the kernel's are.
pub(super) fn meant_for_hosts(args: &BenchmarkArgs) -> Done {
    let simulated = args.contestant.is_some();
    let before = args.background.iter().map(|background| &background.flow);
    if !args.quic.is_empty() {
        Carrier::EmulatedQuic.check(args.quic.iter().chain(before.clone())).map_err(Failure::usage)?;
    }
    if !args.real.is_empty() || args.command.is_some() {
        let kernels = |dialect: &Dialect| simulated && *dialect == Dialect::Linux;
        let beside = |flow: &Contestant| Contestant {
            dialect: flow.dialect.filter(|dialect| !kernels(dialect)),
            ..flow.clone()
        };
        let before: Vec<Contestant> = before.map(beside).collect();
        Carrier::Kernel.check(&before).map_err(Failure::usage)?;
    }
    Ok(())
}

/// Who is probed across the path: those named anywhere, else the default.
pub(super) fn contestants(args: &BenchmarkArgs) -> Result<Vec<Contestant>, Failure> {
    let mut all: Vec<Contestant> = args.contestant.iter().chain(&args.against).chain(&args.quic).cloned().collect();
    if all.is_empty() {
        all.push(DEFAULT_CONTESTANT.parse::<Contestant>().map_err(Failure::usage)?);
    }
    once_each(&all)?;
    Carrier::Quic.check(&all).map_err(Failure::usage)?;
    for one in &all {
        if one.start.connections() > 1 {
            let why = "a rate is probed over one connection, and this start has two";
            return Err(Failure::Usage(format!("{one}: {why}")));
        }
    }
    Ok(all)
}
