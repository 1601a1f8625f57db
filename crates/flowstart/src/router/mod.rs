//! `flowstart router`: Quick-Start routers at this machine's devices.

mod args;
#[cfg(feature = "kernel")]
mod cost;

pub(crate) use args::RouterCommand;
#[cfg(feature = "kernel")]
pub(crate) use cost::measured as measured_cost;

use crate::output::Done;

/// Does what is asked.
#[cfg(feature = "kernel")]
pub(crate) fn router(command: &RouterCommand) -> Done {
    program::router(command)
}

/// Says how to get it.
#[cfg(not(feature = "kernel"))]
pub(crate) fn router(_command: &RouterCommand) -> Done {
    crate::kernel::without_support()
}

#[cfg(feature = "kernel")]
mod program {
    use std::thread;
    use std::time::{Duration, Instant};

    use flowstart_kernel::{LoadedRouter, RouterMeter, RouterSettings, RouterState, load_router, router_at, routers};
    use flowstart_quick_start::router::FlowsConfig;
    use flowstart_units::{Rate, Span};
    use serde_json::json;

    use super::args::{RouterAdmission, RouterCommand};
    use crate::interrupt;
    use crate::kernel::failure;
    use crate::output::{Done, Failure, note, print, print_json};

    /// How often Ctrl-C is looked for.
    const TICK: Duration = Duration::from_millis(50);

    pub(super) fn router(command: &RouterCommand) -> Done {
        match command {
            RouterCommand::Load { device, netns, verbose, .. } => {
                let loaded = load_router(device, netns.as_deref(), &settings(command)).map_err(|problem| {
                    match (*verbose, problem.log.is_empty()) {
                        (true, _) => note(problem.log.trim_end()),
                        (false, false) => note("-v prints what the kernel said"),
                        (false, true) => {}
                    }
                    failure(&problem)
                })?;
                let limit = loaded.limit().map_err(|problem| failure(&problem))?;
                let suffix = netns.as_deref().map_or(String::new(), |name| format!(" --netns {name}"));
                print(&format!(
                    "{device} is a Quick-Start router: load and grants together up to {limit}.\n\
                     It stays so until `flowstart router unload --dev {device}{suffix}` or a restart.\n"
                ))
            }
            RouterCommand::Unload { device, netns } => unload(device.as_deref(), netns.as_deref()),
            RouterCommand::List { json } => list(*json),
            RouterCommand::Cost { runs, json } => super::cost::cost(*runs, *json),
            RouterCommand::Watch { device, netns, json, interval } => {
                let router = router_at(device, netns.as_deref()).map_err(|problem| failure(&problem))?;
                watch(&router, *json, *interval)
            }
        }
    }

    fn settings(command: &RouterCommand) -> RouterSettings {
        let RouterCommand::Load { capacity, admission, threshold, requests_per_second, bridge, .. } = command else {
            return RouterSettings::new(Rate::ZERO);
        };
        let usual = RouterSettings::new(capacity.unwrap_or(Rate::ZERO));
        RouterSettings {
            threshold_percent: *threshold,
            meter: match admission {
                RouterAdmission::Mean | RouterAdmission::Flows => RouterMeter::Mean,
                RouterAdmission::Peak => RouterMeter::Peak,
            },
            flows: (*admission == RouterAdmission::Flows).then(FlowsConfig::default),
            requests_per_second: *requests_per_second,
            // Not more in a row than in a second.
            burst: usual.burst.min(*requests_per_second),
            hops: u8::from(!bridge),
            ..usual
        }
    }

    fn name(router: &LoadedRouter) -> String {
        match (&router.device, &router.netns) {
            (Some(device), None) => device.clone(),
            (Some(device), Some(netns)) => format!("{device} (--netns {netns})"),
            (None, _) => format!("device {} of network namespace {}", router.index, router.namespace),
        }
    }

    fn unload(device: Option<&str>, netns: Option<&str>) -> Done {
        let all = match device {
            Some(device) => vec![router_at(device, netns).map_err(|problem| failure(&problem))?],
            None => routers().map_err(|problem| failure(&problem))?,
        };
        if all.is_empty() {
            return print("no device here is a Quick-Start router: there is none to unload\n");
        }
        for router in all {
            let name = name(&router);
            router.unload().map_err(|problem| failure(&problem))?;
            print(&format!("{name} is no Quick-Start router any more\n"))?;
        }
        Ok(())
    }

    fn list(json: bool) -> Done {
        let mut all = Vec::new();
        for router in routers().map_err(|problem| failure(&problem))? {
            let state = router.state().map_err(|problem| failure(&problem))?;
            let limit = router.limit().map_err(|problem| failure(&problem))?;
            all.push((router, limit, state));
        }
        if json {
            let list: Vec<_> = all
                .iter()
                .map(|(router, limit, state)| {
                    let mut object = object(state);
                    object["device"] = json!(router.device);
                    object["netns"] = json!(router.netns);
                    object["ifindex"] = json!(router.index);
                    object["netns_inode"] = json!(router.namespace);
                    object["limit_bps"] = json!(limit.as_bps());
                    object
                })
                .collect();
            return print_json(&json!({ "routers": list }));
        }
        if all.is_empty() {
            return print(
                "no device here is a Quick-Start router; `flowstart router load --dev DEVICE` makes it one\n",
            );
        }
        let mut text = String::new();
        for (router, limit, state) in &all {
            text.push_str(&format!(
                "{}: load {} and grants {} of {limit}; {} packets, {} bytes\n    requests: {} approved ({} in all), {} denied, \
                 {} not looked at; reports: {} ({} of nothing, {} in all){}\n",
                name(router),
                state.load,
                state.granted,
                state.packets,
                state.bytes.get(),
                state.approved,
                state.granted_sum,
                state.denied,
                state.ignored,
                state.reports,
                state.reports_of_zero,
                state.reported_sum,
                of_flows(state),
            ));
        }
        print(&text)
    }

    /// What only a router that remembers flows has seen.
    fn of_flows(state: &RouterState) -> String {
        match (state.faults, state.strays) {
            (0, 0) => String::new(),
            (faults, strays) => format!("; {faults} faults of sources, {strays} reports of no request"),
        }
    }

    fn object(state: &RouterState) -> serde_json::Value {
        json!({
            "load_bps": state.load.as_bps(),
            "granted_bps": state.granted.as_bps(),
            "packets": state.packets,
            "bytes": state.bytes.get(),
            "approved": state.approved,
            "denied": state.denied,
            "ignored": state.ignored,
            "approved_sum_bps": state.granted_sum.as_bps(),
            "reports": state.reports,
            "reports_of_zero": state.reports_of_zero,
            "reported_sum_bps": state.reported_sum.as_bps(),
            "faults": state.faults,
            "strays": state.strays,
        })
    }

    /// What happened between two looks, line by line.
    fn watch(router: &LoadedRouter, json: bool, interval: Span) -> Done {
        let asked = interrupt::listen();
        let interval = Duration::from_nanos(interval.as_nanos().max(1_000_000));
        if !json {
            print("  time s     load Mbit/s   grants Mbit/s     packets  approved  denied  ignored  reports\n")?;
        }
        let began = Instant::now();
        let mut before = router.state().map_err(|problem| failure(&problem))?;
        let mut next = interval;
        while !asked.is_cancelled() {
            let left = next.saturating_sub(began.elapsed());
            if !left.is_zero() {
                thread::sleep(left.min(TICK));
                continue;
            }
            // The memory of a router whose device went away can still be read.
            if !router.is_attached() {
                return Err(Failure::usage("the router is gone; it was unloaded, or its device went away"));
            }
            let state = router.state().map_err(|problem| failure(&problem))?;
            let time = next.as_secs_f64();
            if json {
                let mut object = object(&state);
                object["time_s"] = json!(time);
                print(&format!("{object}\n"))?;
            } else {
                let mega = |rate: Rate| rate.as_bps() as f64 / 1e6;
                // A router that was loaded anew counts from nothing.
                let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
                print(&format!(
                    "{time:>8.1}  {:>14.3}  {:>14.3}  {:>10}  {:>8}  {:>6}  {:>7}  {:>7}\n",
                    mega(state.load),
                    mega(state.granted),
                    since(state.packets, before.packets),
                    since(state.approved, before.approved),
                    since(state.denied, before.denied),
                    since(state.ignored, before.ignored),
                    since(state.reports, before.reports),
                ))?;
            }
            before = state;
            next += interval;
        }
        Ok(())
    }
}
