//! What Wireshark makes of captures; skipped without `tshark`.

use std::io::Write as _;
use std::process::Command;

/// The fields of the packets that a display filter lets through, one line each; `None` if `tshark`
/// is missing.
fn fields(capture: &std::path::Path, filter: &str, names: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-Y", filter, "-T", "fields"]);
    names.iter().for_each(|name| {
        command.args(["-e", name]);
    });
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

#[test]
fn wireshark_reads_request_and_report_as_they_were_written_and_the_ttl_difference_is_kept_by_the_router() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let race = "compare -C quick_start+cubic --capacity 10Mbit/s --rtt 100ms --size 100kB --no-report --pcap packets";
    assert_cmd::Command::cargo_bin("flowstart")
        .expect("the program is built")
        .current_dir(folder.path())
        .args(race.split(' '))
        .assert()
        .success();
    let capture = folder.path().join("packets/quick_start+cubic-bottleneck.pcapng");
    let names = ["ip.opt.qs_func", "ip.opt.qs_rate", "ip.opt.qs_ttl_diff", "ip.opt.qs_nonce"];
    let Some(options) = fields(&capture, "ip.opt.qs_func", &names) else {
        let _ = writeln!(std::io::stderr(), "skipped: tshark is missing (apt-get install tshark)");
        return;
    };
    // Before the queue and behind it: 1.31 Gbit/s are asked for, 5.12 Mbit/s are granted and
    // reported, with the nonce that was sent.
    let [arrives, leaves, reported, behind] = &options[..] else { panic!("{options:?}") };
    assert_eq!((&arrives[..2], &leaves[..2]), (&["0", "15"].map(String::from)[..], &["0", "7"].map(String::from)[..]));
    assert_eq!(arrives[2], leaves[2], "the TTL difference");
    assert_eq!(reported, behind, "a router leaves reports alone");
    assert_eq!(reported[..3], ["8", "7", ""]);
    assert_eq!(reported[3], arrives[3], "the nonce");
    let nonce = |option: &[String]| u32::from_str_radix(option[3].trim_start_matches("0x"), 16).expect("a number");
    let changed = nonce(arrives) ^ nonce(leaves);
    assert!(changed != 0 && changed & 0x3fff == 0, "the bits of code 7 are those that were sent: {changed:x}");
}
