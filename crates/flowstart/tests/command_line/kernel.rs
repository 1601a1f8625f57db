//! The kernel's commands without what they need.

#[cfg(feature = "kernel")]
use std::io::Write as _;

use super::*;

#[test]
fn what_cannot_be_loaded_into_the_kernel_is_refused_with_status_2() {
    let folder = empty();
    let unknown = flowstart(folder.path()).args(["kernel", "load", "warp"]).assert().code(2);
    assert!(String::from_utf8_lossy(&unknown.get_output().stderr).contains("there is no algorithm \"warp\""));
    let arguments = ["kernel", "load", "dctcp", "--param", "gain_shift=99"];
    let refused = flowstart(folder.path()).args(arguments).assert().code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    let expected = if cfg!(feature = "kernel") { "is not between 1 and 10" } else { "built without kernel support" };
    assert!(said.contains(expected), "{said}");
}

/// Something that root loaded, as a user sees it who is not root.
#[cfg(feature = "kernel")]
struct Hidden {
    folder: tempfile::TempDir,
    name: &'static str,
    _holder: std::process::Child,
}

#[cfg(feature = "kernel")]
impl Hidden {
    /// With the algorithm `name` loaded; `None`, having said why, if that is not possible here.
    fn load(name: &'static str) -> Option<Self> {
        // One test at a time uses the kernel's names; the lock ends with this program's input.
        let lock = std::env::temp_dir().join("flowstart-kernel-tests.lock");
        let pipe = std::process::Stdio::piped;
        let holder = std::process::Command::new("flock").arg(lock).arg("cat").stdin(pipe()).stdout(pipe()).spawn();
        let Ok(mut holder) = holder else {
            let _ = writeln!(std::io::stderr(), "skipped: the command flock is missing (apt-get install util-linux)");
            return None;
        };
        std::io::Write::write_all(holder.stdin.as_mut().unwrap(), b"?").unwrap();
        std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let public = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let folder = tempfile::Builder::new().permissions(public).tempdir().unwrap();
        let loaded = flowstart(folder.path()).args(["kernel", "load", name]).output().unwrap();
        if !loaded.status.success() {
            let _ = writeln!(std::io::stderr(), "skipped: {}", String::from_utf8_lossy(&loaded.stderr));
            return None;
        }
        // A copy of the program that others may run.
        std::fs::copy(assert_cmd::cargo::cargo_bin("flowstart"), folder.path().join("flowstart")).unwrap();
        Some(Self { folder, name, _holder: holder })
    }

    /// What the program does for a user who is not root; `None`, having said so, if none can be.
    fn nobody(&self, arguments: &[&str]) -> Option<std::process::Output> {
        let id = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = std::process::Command::new("setpriv");
        command.args(id).arg(self.folder.path().join("flowstart")).args(arguments).current_dir("/");
        let output = command.stdin(std::process::Stdio::null()).output().ok();
        if output.is_none() {
            let _ = writeln!(std::io::stderr(), "skipped: the command setpriv is missing (apt-get install util-linux)");
        }
        output
    }
}

#[cfg(feature = "kernel")]
impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = flowstart(self.folder.path()).args(["kernel", "unload", self.name]).output();
    }
}

/// It was refused, although nothing of it was asked for.
#[test]
#[cfg(feature = "kernel")]
fn quick_start_that_a_user_may_not_use_does_not_keep_worlds_from_that_user() {
    let Some(hidden) = Hidden::load("quick_start") else { return };
    let arguments = ["emulate", "--fidelity", "10s", "--", "sh", "-c", "echo $FLOWSTART_SERVER"];
    let Some(output) = hidden.nobody(&arguments) else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(3) && said.contains("user namespace") && !said.contains("fs_quick_start") {
        let _ = writeln!(std::io::stderr(), "skipped: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "10.77.0.2\n");
    assert!(said.contains("packets carry nothing of Quick-Start: the kernel has fs_quick_start, but"), "{said}");
}

#[test]
#[cfg(feature = "kernel")]
fn what_a_user_may_not_see_in_the_kernel_is_not_said_to_be_absent() {
    let Some(hidden) = Hidden::load("scalable") else { return };
    let outputs = [&["list"][..], &["list", "--json"], &["unload", "scalable"], &["unload"]]
        .map(|arguments| hidden.nobody(&[&["kernel"], arguments].concat()));
    for output in outputs {
        let Some(output) = output else { return };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}\n{shown}");
        assert!(said.contains("fs_scalable") && said.contains("may not be looked into"), "{said}");
        assert!(!said.contains("not loaded"), "{said}");
        let line = shown.lines().find(|line| line.starts_with("scalable"));
        assert!(line.is_none_or(|line| !line.contains("not loaded")), "{shown}");
        if let Ok(document) = serde_json::from_str::<serde_json::Value>(&shown) {
            let all = document["algorithms"].as_array().expect("a list");
            let scalable = all.iter().find(|algorithm| algorithm["name"] == "scalable").expect("it is listed");
            assert!(scalable["loaded"].is_null(), "{document}");
        }
    }
}

#[test]
#[cfg(feature = "kernel")]
fn on_a_kernel_without_btf_one_sentence_says_so_and_nothing_is_left_behind() {
    let folder = empty();
    let program = assert_cmd::cargo::cargo_bin("flowstart");
    // A mount namespace of its own, where nothing is in place of the kernel's types.
    let script = "mount -t tmpfs none /sys/kernel/btf || exit 99; exec \"$0\" kernel load quick_start";
    let output = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .arg(&program)
        .current_dir(folder.path())
        .output();
    let Some(output) = output.ok().filter(|output| ![Some(1), Some(99), Some(127)].contains(&output.status.code()))
    else {
        let _ = writeln!(std::io::stderr(), "skipped: no mount namespace can be made here (needs root, util-linux)");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("CONFIG_DEBUG_INFO_BTF") || said.contains("CAP_BPF"), "{said}");
}

/// It said that it was loaded and stayed, and the kernel had let go of it by then.
#[test]
#[cfg(feature = "kernel")]
fn what_would_end_with_the_mount_namespace_that_it_is_loaded_in_is_refused() {
    let folder = empty();
    let program = assert_cmd::cargo::cargo_bin("flowstart");
    // Nobody's BPF file system is in sight.
    let script = "umount -l /sys/fs/bpf /run/flowstart/bpf 2>/dev/null; exec \"$0\" kernel load scalable";
    let output = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .arg(&program)
        .current_dir(folder.path())
        .output();
    let Some(output) = output.ok().filter(|output| ![Some(1), Some(127)].contains(&output.status.code())) else {
        let _ = writeln!(std::io::stderr(), "skipped: no mount namespace can be made here (needs root, util-linux)");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(3) {
        let _ = writeln!(std::io::stderr(), "skipped: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("ends with it"), "{said}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// Nothing was said, as if something had been unloaded.
#[test]
#[cfg(feature = "kernel")]
fn where_nothing_is_loaded_unloading_says_so() {
    let folder = empty();
    let program = assert_cmd::cargo::cargo_bin("flowstart");
    for (command, sentence) in [
        ("router", "no device here is a Quick-Start router: there is none to unload\n"),
        ("kernel", "no algorithm of flowstart is loaded: there is none to unload\n"),
    ] {
        // Nobody's BPF file system is in sight, and so nothing that is loaded.
        let script = "umount -l /sys/fs/bpf /run/flowstart/bpf 2>/dev/null; exec \"$0\" \"$1\" unload";
        let mut unshare = std::process::Command::new("unshare");
        let output = unshare
            .args(["--mount", "sh", "-c", script])
            .arg(&program)
            .arg(command)
            .current_dir(folder.path())
            .output();
        let Some(output) = output.ok().filter(|output| ![Some(1), Some(127)].contains(&output.status.code())) else {
            let _ =
                writeln!(std::io::stderr(), "skipped: no mount namespace can be made here (needs root, util-linux)");
            return;
        };
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), sentence);
    }
}

#[test]
#[cfg(feature = "kernel")]
fn without_its_capabilities_loading_into_the_kernel_says_which_are_missing() {
    let folder = empty();
    let program = assert_cmd::cargo::cargo_bin("flowstart");
    let without = |arguments: &[&str]| {
        std::process::Command::new("setpriv")
            .args(["--bounding-set=-all", "--inh-caps=-all"])
            .arg(&program)
            .args(arguments)
            .current_dir(folder.path())
            .output()
    };
    let Ok(output) = without(&["kernel", "load", "dctcp"]) else {
        let _ = writeln!(std::io::stderr(), "skipped: the command setpriv is missing (apt-get install util-linux)");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("setpriv:") {
        let _ = writeln!(std::io::stderr(), "skipped: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN") && said.contains("sudo"), "{said}");
    for arguments in [&["router", "load", "--dev", "lo"][..], &["reproduce", "quick-start", "--real"]] {
        let refused = without(arguments).unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(3), "{arguments:?}: {said}");
    }
    let check = without(&["kernel", "check"]).unwrap();
    let found = String::from_utf8_lossy(&check.stdout).into_owned();
    assert_eq!(check.status.code(), Some(1), "{found}");
    assert!(found.contains("missing  capabilities: missing: CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN"), "{found}");
}

#[test]
fn a_router_of_no_capacity_is_refused_for_that() {
    let said = refusal(empty().path(), &["router", "load", "--dev", "lo", "--capacity", "0Mbit/s"]);
    assert!(said.contains("a link of 0 bit/s carries nothing"), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_self_test_takes_no_options_that_it_does_not_heed() {
    let folder = empty();
    for options in [
        &["--capacity", "5Mbit/s"][..],
        &["--hosts", "3"],
        &["--fidelity", "1ms"],
        &["--out", "out"],
        &["-o", "page.html"],
        &["--profile", "wifi"],
        &["--scenario", "none.toml"],
        &["--", "ls"],
    ] {
        let said = refusal(folder.path(), &[&["emulate", "--self-test"], options].concat());
        assert!(said.contains("--self-test") && said.contains("cannot be used with"), "{options:?}: {said}");
    }
}
