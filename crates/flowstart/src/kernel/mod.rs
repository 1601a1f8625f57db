//! `flowstart kernel`: algorithms in this machine's kernel.

use crate::args::KernelCommand;
use crate::output::Done;

/// Does what is asked.
#[cfg(feature = "kernel")]
pub(crate) fn kernel(command: &KernelCommand) -> Done {
    match command {
        KernelCommand::Load { algorithm, parameters, devices, netns, verbose } => {
            program::load(*algorithm, parameters, (devices, netns.as_deref()), *verbose)
        }
        KernelCommand::Unload { algorithms } => program::unload(algorithms),
        KernelCommand::List { json } => program::list(*json),
        KernelCommand::Watch { json } => watch::watch(*json),
        KernelCommand::Check { json } => program::check(*json),
    }
}

/// Says how to get it.
#[cfg(not(feature = "kernel"))]
pub(crate) fn kernel(_command: &KernelCommand) -> Done {
    without_support()
}

/// Says how to get what this program was built without.
#[cfg(not(feature = "kernel"))]
pub(crate) fn without_support() -> Done {
    let sentence = "this flowstart was built without kernel support: install clang, libelf-dev, zlib1g-dev and pkg-config, then build it with \
                    `cargo build --release -p flowstart --features kernel` or run `./flowstart` in its source folder, which does both";
    Err(crate::output::Failure::Usage(sentence.to_owned()))
}

#[cfg(feature = "kernel")]
pub(crate) fn failure(problem: &flowstart_kernel::Problem) -> crate::output::Failure {
    match problem.is_denied {
        true => crate::output::Failure::NotPossible(problem.to_string()),
        false => crate::output::Failure::Usage(problem.to_string()),
    }
}

#[cfg(feature = "kernel")]
mod watch;

#[cfg(feature = "kernel")]
mod program {
    use flowstart_kernel::{Algorithm, Settings};
    use serde_json::json;

    use super::failure;
    use crate::output::{Done, Failure, note, print, print_json};

    pub(super) fn load(
        algorithm: Algorithm,
        parameters: &[String],
        (devices, netns): (&[String], Option<&str>),
        verbose: bool,
    ) -> Done {
        let settings =
            Settings::with(algorithm, parameters).map_err(|error| Failure::Usage(format!("--param: {error}")))?;
        if algorithm != Algorithm::QuickStart && !devices.is_empty() {
            let why = format!("--dev is for quick_start, whose options packets carry; {algorithm} needs no devices");
            return Err(Failure::Usage(why));
        }
        // More devices for what is there already.
        let is_there = || flowstart_kernel::loaded().iter().any(|loaded| loaded.algorithm == algorithm);
        let adds = !devices.is_empty() && parameters.is_empty();
        if adds && is_there() {
            return attach(devices, netns);
        }
        let loaded = match flowstart_kernel::load(&settings) {
            Ok(loaded) => loaded,
            // Another flowstart loaded it in the meantime, for other devices.
            Err(_) if adds && is_there() => return attach(devices, netns),
            Err(problem) => {
                if verbose {
                    note(problem.log.trim_end());
                } else if !problem.log.is_empty() {
                    note("-v prints what the kernel said");
                }
                return Err(failure(&problem));
            }
        };
        let name = loaded.algorithm.kernel_name();
        if algorithm == Algorithm::QuickStart {
            let usual;
            let devices = if devices.is_empty() {
                usual = flowstart_kernel::usual_devices();
                &usual
            } else {
                devices
            };
            if let Err(failure) = attach(devices, netns) {
                // All or nothing; if it does not go either, that is said when it is looked for.
                let _ = flowstart_kernel::unload(algorithm);
                return Err(failure);
            }
        }
        print(&format!(
            "{name} is loaded; it stays so until `flowstart kernel unload {algorithm}` or a restart.\n\
             One socket:  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, \"{name}\", {})\n\
             One route:   ip route change ROUTE congctl {name}\n\
             All:         sysctl net.ipv4.tcp_congestion_control={name}\n",
            name.len()
        ))
    }

    fn attach(devices: &[String], netns: Option<&str>) -> Done {
        flowstart_kernel::attach_hosts(devices, netns).map_err(|problem| failure(&problem))?;
        for device in devices {
            print(&format!("packets at {device} carry requests, answers and reports of Quick-Start\n"))?;
        }
        Ok(())
    }

    pub(super) fn unload(algorithms: &[Algorithm]) -> Done {
        let all: Vec<Algorithm> = flowstart_kernel::loaded().iter().map(|loaded| loaded.algorithm).collect();
        for algorithm in if algorithms.is_empty() { &all } else { algorithms } {
            flowstart_kernel::unload(*algorithm).map_err(|problem| failure(&problem))?;
            print(&format!("{} is unloaded\n", algorithm.kernel_name()))?;
        }
        if !algorithms.is_empty() {
            return Ok(());
        }
        // "None to unload" would not be true if something is there that cannot be seen.
        said_unseen()?;
        if all.is_empty() { print("no algorithm of flowstart is loaded: there is none to unload\n") } else { Ok(()) }
    }

    /// Fails if the kernel has something under our names that this user may not look at.
    fn said_unseen() -> Done {
        flowstart_kernel::unseen().map_or(Ok(()), |(hidden, why)| {
            let names: Vec<_> = hidden.iter().map(|algorithm| algorithm.kernel_name()).collect();
            let cause = format!("the kernel has {}, but {}", names.join(", "), why.cause);
            Err(Failure::NotPossible(format!("{cause}; {}", why.remedy)))
        })
    }

    pub(super) fn list(json: bool) -> Done {
        let loaded = flowstart_kernel::loaded();
        let hidden = flowstart_kernel::unseen().map(|(hidden, _)| hidden).unwrap_or_default();
        let of = |algorithm: Algorithm| loaded.iter().find(|loaded| loaded.algorithm == algorithm);
        let settings_of = |algorithm: Algorithm| of(algorithm).and_then(|loaded| loaded.settings.clone());
        // What cannot be seen is not said to be absent, nor defaults to be what is set.
        let unknown = |algorithm: Algorithm| {
            hidden.contains(&algorithm) || of(algorithm).is_some_and(|loaded| loaded.settings.is_none())
        };
        if json {
            let list: Vec<_> = Algorithm::ALL
                .into_iter()
                .map(|algorithm| {
                    let shown = settings_of(algorithm).unwrap_or_else(|| Settings::new(algorithm));
                    let parameters: Vec<_> = shown
                        .iter()
                        .map(|(p, value)| {
                            let value = (!unknown(algorithm)).then(|| p.show(value));
                            json!({ "name": p.name, "value": value, "default": p.show(p.default), "help": p.help })
                        })
                        .collect();
                    let known = (!hidden.contains(&algorithm)).then(|| of(algorithm).is_some());
                    json!({
                        "name": algorithm.name(),
                        "kernel_name": algorithm.kernel_name(),
                        "about": algorithm.about(),
                        "loaded": known,
                        "parameters": parameters,
                    })
                })
                .collect();
            print_json(&json!({ "algorithms": list }))?;
            return said_unseen();
        }
        let mut text = String::new();
        for algorithm in Algorithm::ALL {
            let state = match of(algorithm) {
                Some(_) if unknown(algorithm) => "loaded, with parameters that cannot be read; the defaults are",
                Some(_) => "loaded",
                None if unknown(algorithm) => {
                    "the kernel has it; by whom and with which parameters only root can see; the defaults are"
                }
                None => "not loaded",
            };
            text.push_str(&format!("{algorithm} ({}): {}; {state}\n", algorithm.kernel_name(), algorithm.about()));
            if algorithm == Algorithm::QuickStart && of(algorithm).is_some() {
                text.push_str(&quick_start());
            }
            for (parameter, value) in settings_of(algorithm).unwrap_or_else(|| Settings::new(algorithm)).iter() {
                text.push_str(&format!("    {}={}  {}\n", parameter.name, parameter.show(value), parameter.help));
            }
        }
        print(&text)?;
        said_unseen()
    }

    /// Where Quick-Start is and what became of its requests.
    fn quick_start() -> String {
        let devices = flowstart_kernel::host_devices();
        let at = if devices.is_empty() { "no device".to_owned() } else { devices.join(", ") };
        let Ok(c) = flowstart_kernel::host_counts() else { return format!("    at {at}\n") };
        format!(
            "    at {at}\n    as sender: {} requests ({} in mid-connection, {} packets with one sent again), {} granted ({} used, {} too small, \
             {} expired),\n    {} unanswered, {} with a wrong rate, {} TTL difference, {} nonce; {} phases met congestion; \
             {} reports\n    as receiver: {} requests, {} answers; {} packets had no room\n",
            c.asked,
            c.asked_in_middle,
            c.lost,
            c.granted,
            c.used,
            c.too_small,
            c.expired,
            c.unanswered,
            c.wrong_rate,
            c.wrong_ttl,
            c.wrong_nonce,
            c.congested,
            c.reports,
            c.heard,
            c.answered,
            c.failed
        )
    }

    pub(super) fn check(json: bool) -> Done {
        let findings = flowstart_kernel::findings();
        let good = findings.iter().all(|finding| finding.good);
        if json {
            let list: Vec<_> = findings
                .iter()
                .map(|f| json!({ "what": f.what, "good": f.good, "found": f.found, "remedy": f.remedy }))
                .collect();
            print_json(&json!({ "ready": good, "findings": list }))?;
        } else {
            let mut text = String::new();
            for finding in &findings {
                let sign = if finding.good { "ok     " } else { "missing" };
                text.push_str(&format!("{sign}  {}: {}\n", finding.what, finding.found));
                if !finding.good {
                    text.push_str(&format!("         {}\n", finding.remedy));
                }
            }
            print(&text)?;
        }
        if good { Ok(()) } else { Err(Failure::Check) }
    }
}
