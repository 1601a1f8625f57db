//! What the kernel has for the algorithms of a scenario, and what it does otherwise.

use flowstart_emulator::traffic;
use flowstart_race::Contestant;
use flowstart_scenario::{Compiled, OffloadKind, PathSpec, ReceiveWindowKind, Scenario};

use super::Error;

/// The kernel's own congestion controls and those that `flowstart kernel load` brings, and how each
/// begins.
const OWN_STARTS: [(&str, &str); 5] = [
    ("cubic", "hystart"),
    ("reno", "slow_start"),
    ("dctcp", "slow_start"),
    ("scalable", "slow_start"),
    ("bbr", "built_in"),
];
/// What `flowstart kernel load` has, beside paced chirping.
const LOADABLE: [&str; 2] = ["dctcp", "scalable"];

/// Flow starts that programs bring.
struct Brought {
    starts: &'static [&'static str],
    /// The congestion control's name.
    control: &'static str,
    /// What `flowstart kernel load` calls it.
    load: &'static str,
    /// What it does after the start, in words.
    after: &'static str,
}

const BROUGHT: [Brought; 2] = [
    Brought {
        starts: &["paced_chirping", "adaptive_chirping"],
        control: "fs_chirp",
        load: "paced_chirping",
        after: "goes on as CUBIC, from the first mark on as DCTCP",
    },
    Brought {
        starts: &["quick_start"],
        control: QUICK_START,
        load: "quick_start",
        after: "sends its first ten packets at once and goes on as CUBIC",
    },
];

/// True if this control's starts may end by the HyStart of the kernel's CUBIC, which counts it:
/// those that programs bring go on as CUBIC, from the beginning where chirps cannot be read or
/// nothing is granted.
pub(super) fn has_hystart(control: &str) -> bool {
    control == "cubic" || BROUGHT.iter().any(|brought| brought.control == control)
}

/// The congestion control of Quick-Start hosts.
pub(super) const QUICK_START: &str = "fs_quick_start";

/// The contestant whose settings of hosts (ECN) a congestion control of the kernel has: that of its
/// own name, or of the program that brings it; otherwise CUBIC's.
pub(super) fn like(control: &str) -> Option<Contestant> {
    let brought = BROUGHT.iter().find(|brought| brought.control == control);
    let own = || control.strip_prefix("fs_").unwrap_or(control).parse::<Contestant>().ok();
    let brought = brought.and_then(|brought| brought.starts.first()?.parse::<Contestant>().ok());
    brought.or_else(own).or_else(|| "cubic".parse().ok())
}

/// The program that brings this start.
fn brought(start: &str) -> Option<&'static Brought> {
    BROUGHT.iter().find(|brought| brought.starts.contains(&start))
}

/// The same, if it is loaded.
fn brought_for_real(start: &str, known: &[String]) -> Option<&'static Brought> {
    brought(start).filter(|brought| known.iter().any(|name| name == brought.control))
}

/// The largest window that a segment with SYN can offer (RFC 7323, section 2.2).
const UNSCALED_WINDOW: u32 = 65_535;
/// Payload of a full segment with timestamps at an MTU of 1500 bytes.
const FULL_SEGMENT: u32 = 1448;

/// How the kernel begins instead of what an algorithm (START+AVOIDANCE) says, in words; `None` if
/// it does what it says.
pub(super) fn other_start(algorithm: &str) -> Option<String> {
    let (start, avoidance) = algorithm.rsplit_once('+').unwrap_or(("built_in", algorithm));
    if brought_for_real(start, &traffic::congestion_controls()).is_some() {
        return None;
    }
    let (_, own) = OWN_STARTS.iter().find(|(name, own)| *name == avoidance && *own != start)?;
    let remedy = brought(start)
        .map_or(String::new(), |brought| format!("; `flowstart kernel load {}` brings the other", brought.load));
    Some(format!("{algorithm}: the kernel's {avoidance} begins with {own}{remedy}"))
}

/// What of a path has no effect where receivers are this machine's, in words; `None` if all of it
/// has.
#[must_use]
pub fn not_real_of_path(path: &PathSpec) -> Option<String> {
    let why = "the receivers are this machine's, and merge what its own receive offload (GRO) merges";
    path.merged_acks.map(|_| format!("path.merged_acks: {why}"))
}

/// The same where receivers are this project's QUIC.
#[cfg(feature = "quic")]
pub(super) fn not_over_quic_of_path(path: &PathSpec) -> Option<String> {
    let why = "the receivers are this project's QUIC, which answers at once what has arrived by then, with one ACK";
    path.merged_acks.map(|_| format!("path.merged_acks: {why}"))
}

/// What a scenario asks for that the kernel does not do, in words; the rest is done.
#[must_use]
pub fn not_real(scenario: &Scenario, compiled: &Compiled) -> Vec<String> {
    let mut list = Vec::new();
    let default = Scenario::parse("default", DEFAULT).ok();
    let plain = default.as_ref().and_then(|scenario| scenario.flow.first());
    let flows = scenario.flow.iter().enumerate().map(|(number, flow)| (format!("flow[{number}]"), flow));
    let arrivals = scenario.arrivals.iter().map(|arrivals| &arrivals.flow).enumerate();
    let arrivals = arrivals.map(|(number, flow)| (format!("arrivals[{number}].flow"), flow));
    let web = scenario.web.iter().map(|web| &web.flow).enumerate();
    let web = web.map(|(number, flow)| (format!("web[{number}].flow"), flow));
    for (place, flow) in flows.chain(arrivals).chain(web) {
        let mut say = |key: &str, why: &str| list.push(format!("{place}.{key}: {why}"));
        if let Some(plain) = plain {
            if flow.sender != plain.sender {
                say("sender", "the kernel's sender is as it is");
            }
            if flow.receiver != plain.receiver {
                say("receiver", "the kernel's receiver is as it is");
            }
            // What Linux does it does here, too.
            if flow.offload == Some(OffloadKind::None) {
                say("offload", "what leaves at once is the kernel's affair");
            }
            if flow.receive_offload == Some(OffloadKind::Linux) {
                say("receive_offload", "what is merged is this machine's affair");
            }
            if flow.receive_window.is_some_and(|window| window != ReceiveWindowKind::Linux) {
                say("receive_window", "the kernel's receive window is as it is");
            }
            if flow.pacing != plain.pacing {
                say("pacing", "the congestion control decides");
            }
            if flow.initial_window > UNSCALED_WINDOW / FULL_SEGMENT {
                say(
                    "initial_window",
                    "at first the receiver's window is below 64 KiB (RFC 7323, section 2.2), 45 packets",
                );
            }
            if flow.initial_ssthresh.is_some() {
                say("initial_ssthresh", "the kernel begins without a threshold");
            }
            if flow.left_behind_rtts != plain.left_behind_rtts {
                say("left_behind_rtts", "what a start leaves behind is the kernel's affair");
            }
        }
        if flow.flow_start.is_some() || flow.avoidance.is_some() {
            say("flow_start, avoidance", "constants are the kernel's");
        }
    }
    list.extend(scenario.path.as_ref().and_then(not_real_of_path));
    let known = traffic::congestion_controls();
    for label in compiled.groups.iter().filter(|label| label.kernel.is_none()) {
        let start = label.algorithm.rsplit_once('+').map_or("", |(start, _)| start);
        if let Some(brought) = brought_for_real(start, &known) {
            list.push(format!("{}: {}, which {}", label.algorithm, brought.control, brought.after));
            continue;
        }
        list.extend(other_start(&label.algorithm));
    }
    let access = scenario.path.as_ref().is_some_and(|path| path.access.is_some());
    if access && !scenario.arrivals.is_empty() {
        list.push("path.access: the transfers of one [[arrivals]] share their sender's link".to_owned());
    }
    if scenario.output.packets {
        list.push("output.packets: not recorded; --pcap has every packet".to_owned());
    }
    list
}

/// What a scenario asks for that this project's QUIC does not do, in words.
#[cfg(feature = "quic")]
pub(super) fn not_over_quic(scenario: &Scenario) -> Vec<String> {
    let Some(plain) = Scenario::parse("default", DEFAULT).ok().and_then(|mut default| default.flow.pop()) else {
        return Vec::new();
    };
    let mut list = Vec::new();
    for (number, flow) in scenario.flow.iter().enumerate() {
        if flow.sender != plain.sender {
            list.push(format!("flow[{number}].sender: over QUIC packets are full and sent as QUIC sends them"));
        }
        if flow.receiver != plain.receiver {
            list.push(format!(
                "flow[{number}].receiver: over QUIC every packet is acknowledged, and windows are those of QUIC"
            ));
        }
    }
    list.extend(scenario.path.as_ref().and_then(not_over_quic_of_path));
    list
}

const DEFAULT: &str = "[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[flow]]\n";

/// The kernel's congestion control for an algorithm.
pub(super) fn control(algorithm: &str, kernel: Option<&str>) -> Result<String, Error> {
    let known = traffic::congestion_controls();
    if let Some(name) = kernel {
        return Ok(name.to_owned());
    }
    let (start, avoidance) = algorithm.rsplit_once('+').unwrap_or(("built_in", algorithm));
    if let Some(brought) = brought_for_real(start, &known) {
        return Ok(brought.control.to_owned());
    }
    let loaded = format!("fs_{avoidance}");
    let found = [avoidance, loaded.as_str()].into_iter().find(|name| known.iter().any(|known| known == name));
    found.map(str::to_owned).ok_or_else(|| Error::NoControl {
        avoidance: avoidance.to_owned(),
        loadable: LOADABLE.contains(&avoidance),
        known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_that_the_kernel_lacks_is_refused_with_those_it_has_and_is_the_machines_matter() {
        let refused = control("slow_start+no_such_control", None).unwrap_err();
        assert!(refused.is_of_machine());
        let sentence = refused.to_string();
        for known in traffic::congestion_controls() {
            assert!(sentence.contains(&known), "{sentence}");
        }
        assert!(!sentence.contains("kernel load"), "{sentence}");
        assert_eq!(control("slow_start+no_such_control", Some("own")).unwrap(), "own");
    }

    #[test]
    fn starts_of_programs_that_go_on_as_cubic_may_end_by_its_hystart() {
        let ends = |control: &&str| has_hystart(control);
        assert!(["cubic", "fs_chirp", "fs_quick_start"].iter().all(ends));
        assert!(!["bbr", "reno", "dctcp", "fs_dctcp", "fs_scalable", "fs_reno"].iter().any(ends));
    }

    /// They were merged in the simulator, and nobody was told that they are not here.
    #[test]
    fn acks_that_a_path_merges_are_said_to_be_merged_by_the_machine() {
        let lines = |path: &str| {
            let text = format!(
                "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n{path}[[flow]]\nalgorithm = \"hystart+cubic\"\n"
            );
            let scenario = Scenario::parse("test", &text).unwrap();
            not_real(&scenario, &scenario.simulation(0).unwrap())
        };
        let said = lines("merged_acks = { within = \"2 ms\" }\n");
        assert!(said.iter().any(|line| line.starts_with("path.merged_acks: ")), "{said:?}");
        assert!(!lines("").iter().any(|line| line.contains("merged_acks")));
    }

    /// Nothing was said of it, or that a kernel merges what no kernel does.
    #[cfg(feature = "quic")]
    #[test]
    fn acks_that_a_path_merges_are_said_not_to_be_merged_by_quic() {
        let lines = |path: &str| {
            let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n{path}[[flow]]\n");
            not_over_quic(&Scenario::parse("test", &text).unwrap())
        };
        let said = lines("merged_acks = { within = \"2 ms\" }\n");
        let quic = |line: &String| line.starts_with("path.merged_acks: ") && !line.contains("GRO");
        assert!(said.len() == 1 && said.iter().all(quic), "{said:?}");
        assert!(lines("").is_empty());
    }

    #[test]
    fn bursts_and_windows_that_are_not_the_kernels_are_named() {
        let lines = |flow: &str| {
            let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n{flow}\n");
            let scenario = Scenario::parse("test", &text).unwrap();
            not_real(&scenario, &scenario.simulation(0).unwrap())
        };
        for (key, other) in [("offload", "none"), ("receive_offload", "linux"), ("receive_window", "linux-6.1")] {
            let said = lines(&format!("{key} = \"{other}\""));
            assert!(said.iter().any(|line| line.starts_with(&format!("flow[0].{key}: "))), "{key}: {said:?}");
        }
        let linux = lines("dialect = \"linux\"");
        assert!(!linux.iter().any(|line| line.contains("offload") || line.contains("window")), "{linux:?}");
    }

    #[test]
    fn a_start_other_than_the_kernels_own_is_named() {
        assert_eq!(other_start("hystart+cubic"), None);
        // Without the program; with it there is nothing to be named.
        if let Some(other) = other_start("quick_start+cubic") {
            assert!(other.ends_with("hystart; `flowstart kernel load quick_start` brings the other"), "{other}");
        }
        let other = other_start("search+cubic").unwrap();
        assert_eq!(other, "search+cubic: the kernel's cubic begins with hystart");
    }
}
