//! What a kernel must have, looked at before anything is loaded.

use std::fs;

use libbpf_rs::btf::{Btf, types};

use crate::logged::logged;
use crate::{Algorithm, registered};

/// Something that was looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// Whether it is as it must be.
    pub good: bool,
    /// What was found.
    pub found: String,
    /// What to do if it is not good.
    pub remedy: &'static str,
}

/// The first kernel whose struct_ops registrations can be kept when the process ends
/// (`BPF_F_LINK`).
const OLDEST: (u32, u32) = (6, 4);
/// Capabilities by their number in linux/capability.h.
const CAPABILITIES: [(u32, &str); 3] = [(39, "CAP_BPF"), (38, "CAP_PERFMON"), (12, "CAP_NET_ADMIN")];
const SYS_ADMIN: u32 = 21;
/// Functions of the kernel that the programs call.
const FUNCTIONS: [&str; 5] =
    ["tcp_slow_start", "tcp_cong_avoid_ai", "tcp_reno_ssthresh", "tcp_reno_cong_avoid", "tcp_reno_undo_cwnd"];

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Everything that loading needs, good or not.
#[must_use]
pub fn findings() -> Vec<Finding> {
    let btf = kernel_types();
    vec![
        version(),
        types_of(btf.as_ref()),
        jit(),
        struct_ops(btf.as_ref()),
        functions(btf.as_ref()),
        capabilities(),
        names(),
    ]
}

/// The first two numbers of a kernel release such as "6.18.44-amd64".
fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn version() -> Finding {
    let found = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    Finding {
        what: "kernel",
        good: release(&found).is_some_and(|release| release >= OLDEST),
        found: format!("Linux {found}"),
        remedy: "Linux 6.4 or later is needed: before that a registration cannot outlive the process that made it",
    }
}

/// The kernel's types, if it says what they are; what the loader says about it nobody needs beside
/// the finding.
fn kernel_types() -> Option<Btf<'static>> {
    logged("its types", Btf::from_vmlinux).ok()
}

/// Whether the kernel says what its types are, which every congestion control needs.
pub(crate) fn types() -> Finding {
    types_of(kernel_types().as_ref())
}

fn types_of(btf: Option<&Btf<'_>>) -> Finding {
    Finding {
        what: "types of the kernel (BTF)",
        good: btf.is_some(),
        found: if btf.is_some() { "/sys/kernel/btf/vmlinux" } else { "none" }.to_owned(),
        remedy: "a kernel built with CONFIG_DEBUG_INFO_BTF is needed",
    }
}

fn jit() -> Finding {
    // A kernel that always compiles may not have the switch.
    let switch = read("/proc/sys/net/core/bpf_jit_enable");
    Finding {
        what: "compiler for programs (JIT)",
        good: switch.as_deref() != Some("0"),
        found: match switch.as_deref() {
            Some("0") => "off",
            Some(_) => "on",
            None => "no switch, presumably always on",
        }
        .to_owned(),
        remedy: "sysctl net.core.bpf_jit_enable=1",
    }
}

fn struct_ops(btf: Option<&Btf<'_>>) -> Finding {
    let there =
        btf.is_some_and(|btf| btf.type_by_name::<types::Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_some());
    Finding {
        what: "congestion controls as programs (struct_ops)",
        good: there,
        found: if there { "there" } else { "not there" }.to_owned(),
        remedy: "a kernel built with CONFIG_BPF_SYSCALL, CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF is needed",
    }
}

fn functions(btf: Option<&Btf<'_>>) -> Finding {
    let missing: Vec<_> = FUNCTIONS
        .into_iter()
        .filter(|name| btf.is_none_or(|btf| btf.type_by_name::<types::Func<'_>>(name).is_none()))
        .collect();
    Finding {
        what: "functions that programs call",
        good: missing.is_empty(),
        found: if missing.is_empty() { "all there".to_owned() } else { format!("missing: {}", missing.join(", ")) },
        remedy: "Linux 5.13 or later with BTF is needed",
    }
}

/// The capabilities of this process.
pub(crate) fn capabilities() -> Finding {
    let mask = read("/proc/self/status")
        .and_then(|status| {
            status.lines().find_map(|line| line.strip_prefix("CapEff:").map(str::trim).map(str::to_owned))
        })
        .and_then(|text| u64::from_str_radix(&text, 16).ok())
        .unwrap_or(0);
    let has = |bit: u32| mask >> bit & 1 == 1;
    let missing: Vec<_> = CAPABILITIES.into_iter().filter(|(bit, _)| !has(*bit)).map(|(_, name)| name).collect();
    let enough = missing.is_empty() || has(SYS_ADMIN) && has(12);
    Finding {
        what: "capabilities",
        good: enough,
        found: if enough { "all there".to_owned() } else { format!("missing: {}", missing.join(", ")) },
        remedy: "run it as root (sudo flowstart kernel …), or with these capabilities and a BPF file system that may be written to",
    }
}

fn names() -> Finding {
    let ours = registered::loaded();
    let hidden = registered::unseen().map(|(hidden, _)| hidden).unwrap_or_default();
    let is_hidden = |name: &String| hidden.iter().any(|algorithm| algorithm.kernel_name() == name);
    let taken: Vec<_> = registered::available()
        .into_iter()
        .filter(|name| Algorithm::ALL.iter().any(|algorithm| algorithm.kernel_name() == name))
        .filter(|name| ours.iter().all(|loaded| loaded.algorithm.kernel_name() != name) && !is_hidden(name))
        .collect();
    Finding {
        what: "names",
        good: taken.is_empty(),
        found: if !taken.is_empty() {
            format!("taken by others: {}", taken.join(", "))
        } else if hidden.is_empty() {
            "free, or taken by us".to_owned()
        } else {
            "some are taken; by whom only root can see".to_owned()
        },
        remedy: "unregister what took them: bpftool struct_ops list",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_first_two_numbers() {
        assert_eq!(release("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(release("5.4"), Some((5, 4)));
        assert_eq!(release("unknown"), None);
        assert!(Some((6, 18)) > Some(OLDEST) && Some((6, 1)) < Some(OLDEST));
    }
}
