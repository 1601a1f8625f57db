//! How runs end: signals, crashes, limits, many at once.

use super::*;

/// Starts an emulation whose command writes its own process number into a file and sleeps.
fn sleeper(folder: &Path, more: &[&str]) -> (Child, String) {
    let file = folder.join("pid");
    let line = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", file.display());
    let child = flowstart(&[&["emulate"], more, &["--", "sh", "-c", &line]].concat()).spawn().unwrap();
    wait_for(&file);
    (child, fs::read_to_string(&file).unwrap().trim().to_owned())
}

#[test]
fn ctrl_c_and_termination_end_the_command_and_leave_nothing() {
    if !possible() {
        return;
    }
    for signal in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let (child, command) = sleeper(folder.path(), &[]);
        let pid = child.id();
        assert!(running(&command));
        send(signal, pid);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let said = text(&output.stderr);
        assert!(said.contains("ended by Ctrl-C or a signal\n"), "{said}");
        assert!(!running(&command));
        assert_eq!(names_of(pid), Vec::<String>::new());
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_flowstart_leaves_neither_programs_nor_names_nor_files() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // What the server's shell starts is nobody's child after that.
    let file = folder.path().join("server");
    let listen = "import socket,time;s=socket.socket();s.bind(('',7));s.listen();time.sleep(1000)";
    let server = format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; python3 -c \"{listen}\"", file.display());
    let (mut child, command) = sleeper(folder.path(), &["--server", &server]);
    let pid = child.id();
    let orphan = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert!(running(&command) && running(&orphan));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("a program outlives flowstart", || !running(&command) && !running(&orphan));
    wait_until("a name outlives flowstart", || names_of(pid).is_empty());
    let prefix = format!("fs-{pid}-");
    let files = || fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    wait_until("a hosts file outlives flowstart", || {
        files().all(|entry| !entry.file_name().to_string_lossy().starts_with(&prefix))
    });
}

#[test]
fn a_killed_flowstart_takes_one_within_it_along_and_its_names_and_files() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let inner = format!("echo $PPID > {0}.new; mv {0}.new {0}; exec sleep 1000", file.display());
    let program = flowstart(&[]).get_program().to_owned();
    let mut outer = flowstart(&["emulate", "--"]);
    let mut child = outer.arg(program).args(["emulate", "--", "sh", "-c", &inner]).spawn().unwrap();
    wait_for(&file);
    let within = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let prefix = format!("fs-{within}-");
    let files = || fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    wait_until("a name outlives flowstart", || names_of(within).is_empty());
    wait_until("a hosts file outlives flowstart", || {
        files().all(|entry| !entry.file_name().to_string_lossy().starts_with(&prefix))
    });
    wait_until("a guard outlives flowstart", || guards_of(within).is_empty());
}

/// The guards of a process: shells that clean up after it.
fn guards_of(pid: u32) -> Vec<u32> {
    let is_guard = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("fs-guard") && line.contains(&format!("fs-{pid}-"))
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_guard).collect()
}

#[test]
fn clean_removes_the_names_when_the_guard_was_killed_too() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut child, command) = sleeper(folder.path(), &[]);
    let pid = child.id();
    let named = !names_of(pid).is_empty();
    assert_eq!(named, matches!(privilege(), Ok(Privilege::Full)) && nix_is_root());
    let guards = guards_of(pid);
    assert_eq!(guards.len(), 1);
    send("-KILL", guards[0]);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the command outlives flowstart", || !running(&command));
    let output = emulate(&["--clean"]);
    assert!(output.status.success());
    assert_eq!(text(&output.stdout).contains(&format!("fs-{pid}-")), named, "{}", text(&output.stdout));
    assert_eq!(names_of(pid), Vec::<String>::new());
}

#[test]
fn a_hundred_pairs_of_hosts_end_with_a_report() {
    if !possible() {
        return;
    }
    let output = emulate(&["--hosts", "100", "--fidelity", "60s", "--", "true"]);
    let said = text(&output.stderr);
    assert!(said.contains("fidelity:") && said.contains("the commands ended"), "{said}");
    // A busy machine may lose a packet; that is said, and no reason to lose the report.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{said}");
}

fn nix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|data| std::os::unix::fs::MetadataExt::uid(&data) == 0)
}

#[test]
fn a_run_has_a_time_limit() {
    if !possible() {
        return;
    }
    let began = Instant::now();
    let output = emulate(&["--time-limit", "300ms", "--", "sleep", "1000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the time limit of 300 ms was reached"));
    assert!(began.elapsed() < Duration::from_secs(100));
}

#[test]
fn thirty_two_at_once_do_not_collide() {
    if !possible() {
        return;
    }
    let say = ["emulate", "--fidelity", "60s", "--", "sh", "-c", "echo $FLOWSTART_CLIENT"];
    let all: Vec<Child> = (0..32).map(|_| flowstart(&say).spawn().unwrap()).collect();
    for child in all {
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "10.77.0.1\n");
        assert_eq!(names_of(pid), Vec::<String>::new());
    }
}

#[test]
fn without_root_it_works_in_a_user_namespace_or_says_what_is_missing() {
    // As root another user is tried; setpriv comes with util-linux.
    if !nix_is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: no root and setpriv to become another user with");
        return;
    }
    // The program may lie where other users may not look.
    let folder =
        tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    let copy = folder.path().join("flowstart");
    fs::copy(env!("CARGO_BIN_EXE_flowstart"), &copy).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["emulate", "--fidelity", "10s", "--", "sh", "-c", "echo $FLOWSTART_SERVER"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = text(&output.stderr);
    match output.status.code() {
        Some(0) => {
            assert_eq!(text(&output.stdout), "10.77.0.2\n");
            assert!(said.contains("in a user namespace"), "{said}");
        }
        Some(3) => assert!(said.starts_with("not possible here: "), "{said}"),
        other => panic!("{other:?}: {said}"),
    }
}

/// The end waited for the next sample, and so did Ctrl-C.
#[test]
fn samples_far_apart_hold_up_no_end() {
    if !possible() {
        return;
    }
    let began = Instant::now();
    let output = emulate(&["--sample", "100s", "--fidelity", "60s", "--", "true"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.toml");
    let scenario = "duration = \"100 s\"\noutput = { sample = \"100 s\" }\n[path]\ncapacity = \"10 Mbit/s\"\n\
                    rtt = \"20 ms\"\n[[flow]]\n";
    fs::write(&file, scenario).unwrap();
    let began = Instant::now();
    let mut child = flowstart(&["run", "--real", file.to_str().unwrap()]).spawn().unwrap();
    computing::wait_until_computed(&child, 0.0);
    if nix_is_root() {
        wait_until("no world is made", || !names_of(child.id()).is_empty());
    }
    // Most of the time it waits then; to be interrupted before is no different.
    sleep(Duration::from_secs(1));
    send("-INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
}

/// What an emulation had seen was lost where a file of it could not be written.
#[test]
fn what_cannot_be_written_does_not_hide_what_was_seen() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let full = folder.path().join("full.html");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let output = emulate(&["-o", full.to_str().unwrap(), "--fidelity", "60s", "--", "true"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["bottleneck", "the command ended\n", "fidelity: ", "full.html: no space is left"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Captures are written while it runs; of this folder nothing is left when they are to appear.
    let captures = folder.path().join("captures");
    let gone = format!("rm -r {}", captures.display());
    let output =
        emulate(&["--pcap", captures.to_str().unwrap(), "--json", "--fidelity", "60s", "--", "sh", "-c", &gone]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["ended"], "the command ended");
}

#[test]
fn of_several_servers_the_one_that_fails_is_named() {
    if !possible() {
        return;
    }
    let refused = |hosts: &str, server: &str| {
        // One that ends is waited for, one that does not is not.
        let within = if server.contains("exit") { "60s" } else { "100ms" };
        let output = emulate(&["--hosts", hosts, "--ready-within", within, "--server", server, "--", "true"]);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let said = refused("2", "exit $((FLOWSTART_PAIR + 2))");
    assert!(said.contains("error: the server on server1 ended before it was ready (exit status: 3)"), "{said}");
    let said = refused("2", "sleep 100");
    assert!(said.contains("error: the server on server1 listens on no port after 100 ms"), "{said}");
    let said = refused("1", "exit 3");
    assert!(said.contains("error: the server ended before it was ready (exit status: 3)"), "{said}");
}

/// `emulate --server 'iperf3 -s' -- COMMAND > file` had what both said.
#[test]
fn what_a_server_prints_is_not_in_what_the_command_prints() {
    if !possible() || Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let listen = "import socket,time;s=socket.socket();s.bind(('',7));s.listen();time.sleep(1000)";
    let server = format!("echo noise; exec python3 -c \"{listen}\"");
    let output = emulate(&["--server", &server, "--fidelity", "60s", "--", "echo", "data"]);
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("noise\n"), "{said}");
    assert_eq!(text(&output.stdout), "data\n");
}

/// It was said that there is no interface lo.
#[test]
fn too_few_open_files_for_all_hosts_are_said_to_be_too_few() {
    if !possible() {
        return;
    }
    let line = "ulimit -n 40; exec \"$0\" emulate --hosts 30 -- true";
    let output = Command::new("sh").args(["-c", line, env!("CARGO_BIN_EXE_flowstart")]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("Too many open files") && !said.contains("ENOENT"), "{said}");
}

/// Without samples there were some of a microsecond, with rates of gigabits per second; and of fine
/// ones there were none of what came after a second.
#[test]
fn samples_are_as_asked_for_or_it_is_said_what_is_not() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |sample: &str| {
        // Every fifth of a second a packet, for longer than there are samples of four microseconds,
        // which is 4 s: a machine that begins late has time.
        let packets = if sample == "4us" { 24 } else { 8 };
        let say =
            format!("exec 3<>/dev/udp/$FLOWSTART_SERVER/7; for i in $(seq {packets}); do echo $i >&3; sleep 0.2; done");
        let out = folder.path().join(sample);
        let more = ["--fidelity", "60s", "--out", out.to_str().unwrap(), "--", "bash", "-c", &say];
        let output = emulate(&[&["--sample", sample], &more[..]].concat());
        let said = text(&output.stderr);
        let rows = fs::read_to_string(out.join("samples.csv")).map_or(0, |table| table.lines().count() - 1);
        (output.status.code(), rows, said)
    };
    let (status, rows, said) = run("0s");
    assert_eq!((status, rows), (Some(0), 0), "{said}");
    let (status, rows, said) = run("4us");
    assert!(status == Some(0) && rows > 0, "{rows}: {said}");
    assert!(said.contains("samples end after 4.194304 s of "), "{said}");
    let (status, rows, said) = run("100ms");
    assert!(status == Some(0) && rows > 0 && !said.contains("samples end"), "{rows}: {said}");
    let (status, _, said) = run("1ns");
    assert_eq!(status, Some(2));
    assert!(
        said.contains("error: samples of 1 ns are too fine to be told apart: at least 1 us, or 0 for none"),
        "{said}"
    );
}
