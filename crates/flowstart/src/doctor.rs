//! `flowstart doctor`: what this machine can do.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use flowstart_race::{Race, RunOptions};

use crate::args::DoctorArgs;
use crate::output::{Done, Failure, print, print_json};

/// One thing that was looked at.
struct Finding {
    /// What it is needed for.
    area: &'static str,
    /// What was looked at.
    what: &'static str,
    /// Whether it is there; `None` if that cannot be told.
    good: Option<bool>,
    /// What was found.
    found: String,
    /// What to do if it is not there.
    remedy: &'static str,
}

/// Looks around and says what is there and what is missing.
pub(crate) fn doctor(args: &DoctorArgs) -> Done {
    let findings = findings()?;
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| json!({ "area": f.area, "what": f.what, "good": f.good, "found": f.found, "remedy": f.remedy }))
            .collect();
        return print_json(&json!({ "flowstart_version": env!("CARGO_PKG_VERSION"), "findings": list }));
    }
    let mut text = format!("flowstart {}\n", env!("CARGO_PKG_VERSION"));
    let mut area = "";
    for finding in &findings {
        if finding.area != area {
            area = finding.area;
            text.push_str(&format!("\n{area}\n"));
        }
        let sign = match finding.good {
            Some(true) => "ok     ",
            Some(false) => "missing",
            None => "unknown",
        };
        text.push_str(&format!("  {sign}  {}: {}\n", finding.what, finding.found));
        if finding.good == Some(false) && !finding.remedy.is_empty() {
            text.push_str(&format!("           {}\n", finding.remedy));
        }
    }
    print(&text)
}

fn findings() -> Result<Vec<Finding>, Failure> {
    let mut findings = vec![cores(), speed()?];
    if cfg!(target_os = "linux") {
        findings.extend([emulation(), namespaces(), kernel_types(), loading(), algorithms()]);
    } else {
        findings.push(Finding {
            area: REAL,
            what: "Linux",
            good: Some(false),
            found: std::env::consts::OS.to_owned(),
            remedy: "emulation and kernel algorithms need Linux; simulation does not",
        });
    }
    Ok(findings)
}

const SIMULATE: &str = "simulate (compare, run)";
const REAL: &str = "emulate (emulate); load algorithms into the kernel (kernel)";

fn cores() -> Finding {
    let cores = std::thread::available_parallelism();
    Finding {
        area: SIMULATE,
        what: "cores",
        good: Some(true),
        found: cores.map_or_else(|_| "unknown, one is used".to_owned(), |cores| cores.to_string()),
        remedy: "",
    }
}

/// The default race, as a check that it works here and how fast.
fn speed() -> Result<Finding, Failure> {
    let began = Instant::now();
    let result = Race::default().run(&RunOptions::default()).map_err(Failure::usage)?;
    let took = began.elapsed().as_secs_f64();
    Ok(Finding {
        area: SIMULATE,
        what: "the default race",
        good: Some(result.complete),
        found: format!(
            "{} data packets in {took:.2} s ({:.1} million packets/s)",
            result.data_packets,
            result.data_packets as f64 / took.max(1e-9) / 1e6
        ),
        remedy: "",
    })
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn namespaces() -> Finding {
    let most = read("/proc/sys/user/max_user_namespaces").and_then(|text| text.parse::<u64>().ok());
    let forbidden = read("/proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0")
        || read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1");
    Finding {
        area: REAL,
        what: "user namespaces without root",
        good: most.map(|most| most > 0 && !forbidden),
        found: match most {
            Some(0) => "switched off".to_owned(),
            Some(_) if forbidden => "restricted to root".to_owned(),
            Some(_) => "allowed".to_owned(),
            None => "cannot be read".to_owned(),
        },
        remedy: "sudo sysctl user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1",
    }
}

/// Makes a world of two hosts, in a process of its own, since it may have to enter a user
/// namespace.
fn emulation() -> Finding {
    // This very program is there wherever PATH leads.
    let tried = std::env::current_exe().and_then(|program| {
        let arguments = ["emulate", "--fidelity", "10s", "--"].map(std::ffi::OsStr::new);
        let inner = [program.as_os_str(), std::ffi::OsStr::new("--version")];
        Command::new(&program).args(arguments.iter().chain(&inner)).stdin(Stdio::null()).output()
    });
    let (good, found) = match tried {
        Ok(output) if output.status.success() => (Some(true), "two hosts were made and ran a program".to_owned()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let line = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no reason was given");
            (Some(false), line.trim_start_matches("not possible here: ").trim_start_matches("error: ").to_owned())
        }
        Err(error) => (None, error.to_string()),
    };
    Finding {
        area: REAL,
        what: "emulation",
        good,
        found,
        remedy: "run it as root, or where user namespaces are allowed; containers need NET_ADMIN, NET_RAW and SYS_ADMIN",
    }
}

/// What `flowstart kernel check` says in more detail.
#[cfg(feature = "kernel")]
fn loading() -> Finding {
    let missing: Vec<&str> = flowstart_kernel::findings().into_iter().filter(|f| !f.good).map(|f| f.what).collect();
    Finding {
        area: REAL,
        what: "loading algorithms",
        good: Some(missing.is_empty()),
        found: if missing.is_empty() { "all that it needs is there".to_owned() } else { missing.join(", ") },
        remedy: "flowstart kernel check says what to do",
    }
}

#[cfg(not(feature = "kernel"))]
fn loading() -> Finding {
    Finding {
        area: REAL,
        what: "loading algorithms",
        good: Some(false),
        found: "this flowstart was built without it".to_owned(),
        remedy: "build it with --features kernel, or run ./flowstart in its source folder",
    }
}

fn kernel_types() -> Finding {
    let there = Path::new("/sys/kernel/btf/vmlinux").exists();
    let version = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    Finding {
        area: REAL,
        what: "kernel with BTF for eBPF",
        good: Some(there),
        found: format!("Linux {version}, {}", if there { "/sys/kernel/btf/vmlinux is there" } else { "without BTF" }),
        remedy: "needs a kernel built with CONFIG_DEBUG_INFO_BTF=y, as those of current distributions are",
    }
}

fn algorithms() -> Finding {
    let known = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
    Finding {
        area: REAL,
        what: "congestion controls of the kernel",
        good: known.as_ref().map(|_| true),
        found: known.unwrap_or_else(|| "cannot be read".to_owned()),
        remedy: "",
    }
}
