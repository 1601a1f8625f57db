//! What a command reads is not overwritten by what it writes.

use std::fs;

use super::*;

const SCENARIO: &str = "duration = \"300 ms\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n";
/// Much more than a command needs to refuse, and much less than these would take.
const MUCH: std::time::Duration = std::time::Duration::from_secs(10);

/// A command that is refused, says of `input` that it is read, and leaves all as it was.
fn spares(folder: &Path, arguments: &[&str], input: &str) {
    let (before, content) = (files(folder), fs::read(folder.join(input)).unwrap());
    let assert = flowstart(folder).args(arguments).timeout(MUCH).assert().code(2).stdout("");
    let said = String::from_utf8_lossy(&assert.get_output().stderr);
    let sentence = said.lines().last().unwrap();
    assert!(sentence.starts_with(&format!("error: {input} would be overwritten, which is read")), "{said}");
    assert!(fs::read(folder.join(input)).unwrap() == content, "{arguments:?}");
    assert_eq!(files(folder), before, "{arguments:?}");
}

#[test]
fn scenarios_and_what_they_name_are_spared() {
    let folder = empty();
    let folder = folder.path();
    for name in ["j.json", "h.html", "effective.toml", "mine.toml", "mine.csv"] {
        fs::write(folder.join(name), SCENARIO).unwrap();
    }
    let traced = SCENARIO.replace("\"10 Mbit/s\"", "{ trace = \"samples.csv\" }");
    fs::write(folder.join("tr.toml"), traced).unwrap();
    fs::write(folder.join("samples.csv"), "0\n1\n2\n3\n").unwrap();
    spares(folder, &["compare", "j.json", "-o", "./j.json"], "j.json");
    spares(folder, &["run", "h.html", "-o", "h.html"], "h.html");
    spares(folder, &["run", "effective.toml", "--out", "."], "effective.toml");
    spares(folder, &["run", "tr.toml", "--out", "."], "samples.csv");
    // Nor what is removed as the table of another format.
    fs::rename(folder.join("samples.csv"), folder.join("samples.parquet")).unwrap();
    let traced = SCENARIO.replace("\"10 Mbit/s\"", "{ trace = \"samples.parquet\" }");
    fs::write(folder.join("tr.toml"), traced).unwrap();
    spares(folder, &["run", "tr.toml", "--out", "."], "samples.parquet");
    spares(folder, &["benchmark", "--scenario", "mine.csv", "--delays", "mine.csv"], "mine.csv");
    // Another place is as good as ever.
    output(folder, &["run", "effective.toml", "--out", "results"]);
    output(folder, &["run", "effective.toml", "--out", "results"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_what_is_read_is_known() {
    let folder = empty();
    let folder = folder.path();
    fs::write(folder.join("mine.toml"), SCENARIO).unwrap();
    std::os::unix::fs::symlink("mine.toml", folder.join("s.html")).unwrap();
    spares(folder, &["run", "mine.toml", "-o", "s.html"], "mine.toml");
    spares(folder, &["compare", "mine.toml", "-o", "s.html"], "mine.toml");
    // What an option names is read before the command begins.
    fs::write(folder.join("p.toml"), "about = \"a path\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n")
        .unwrap();
    std::os::unix::fs::symlink("p.toml", folder.join("p.html")).unwrap();
    spares(folder, &["compare", "--profile", "p.toml", "-o", "p.html"], "p.toml");
}

#[test]
fn the_scenario_of_a_race_is_none_that_the_race_writes_or_removes() {
    let folder = empty();
    let folder = folder.path();
    output(folder, &short(&["--out", "race"]));
    let input = "race/scenarios/hystart+cubic.toml";
    for contestants in ["cubic", "reno"] {
        let arguments = ["compare", input, "-C", contestants, "--size", "100kB", "--out", "race"];
        spares(folder, &arguments, input);
    }
}

#[test]
fn films_and_measurements_are_spared() {
    let folder = empty();
    let folder = folder.path();
    fs::write(folder.join("film.csv"), "1000\n2000\n").unwrap();
    let measured: String = (0..200).map(|row| format!("5000000,0.{row:03},0.{row:03}5\n")).collect();
    for name in ["probes.csv", "summary.csv", "e-hystart+cubic.csv"] {
        fs::write(folder.join(name), format!("rate_bps,sent_s,received_s\n{measured}")).unwrap();
    }
    spares(folder, &["benchmark", "cubic", "--film", "film.csv", "--delays", "film.csv"], "film.csv");
    spares(folder, &["benchmark", "--measured", "probes.csv", "--out", "."], "probes.csv");
    spares(folder, &["benchmark", "cubic", "--measured", "summary.csv", "--out", "."], "summary.csv");
    let input = "e-hystart+cubic.csv";
    let several = ["benchmark", "cubic", "--against", "reno", "--measured", input, "--delays", "e.csv"];
    spares(folder, &several, input);
}

#[test]
fn a_stroke_is_no_name_of_a_file() {
    let folder = empty();
    let folder = folder.path();
    fs::write(folder.join("s.toml"), SCENARIO).unwrap();
    assert!(refusal(folder, &["run", "-"]).contains("standard input is /dev/stdin"));
    for arguments in [
        &["compare", "s.toml", "-o", "-"][..],
        &["compare", "s.toml", "--out", "-"],
        &["run", "s.toml", "--out", "-"],
        &["run", "s.toml", "--pcap", "-"],
    ] {
        let said = refusal(folder, arguments);
        assert!(said.contains("not standard output: --json prints the document there"), "{said}");
        assert_eq!(files(folder), ["s.toml"], "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn what_the_system_says_of_an_input_is_told_in_words() {
    let folder = empty();
    let folder = folder.path();
    std::os::unix::fs::symlink("circle.csv", folder.join("circle.csv")).unwrap();
    fs::create_dir(folder.join("folder.csv")).unwrap();
    for (name, words) in [
        ("circle.csv", "symbolic links lead in a circle\n"),
        ("folder.csv", "it is a folder\n"),
        ("none.csv", "no such file or folder\n"),
    ] {
        for command in [&["run"][..], &["compare"], &["benchmark", "--measured"], &["explain-chirp"]] {
            let said = refusal(folder, &[command, &[name]].concat());
            assert!(said.ends_with(words), "{command:?}: {said}");
        }
    }
}

#[test]
fn of_a_long_line_that_is_wrong_the_beginning_is_shown() {
    let folder = empty();
    let folder = folder.path();
    let head = "time_of_the_packet,".repeat(50);
    fs::write(folder.join("t.csv"), format!("{head}\n0,1\n")).unwrap();
    fs::write(folder.join("tr.toml"), SCENARIO.replace("\"10 Mbit/s\"", "{ trace = \"t.csv\" }")).unwrap();
    for arguments in [&["run", "tr.toml"][..], &["benchmark", "cubic", "--film", "t.csv"]] {
        let said = refusal(folder, arguments);
        assert!(said.contains("line 1: \"time_of_the_packet,") && said.len() < 200, "{said}");
    }
    fs::write(folder.join("r0.csv"), "rate_bps,sent_s,received_s\n5000000,0,1\n0,1,2\n").unwrap();
    let said = refusal(folder, &["benchmark", "--measured", "r0.csv", "--no-report"]);
    assert!(said.contains("r0.csv row 2: the rate is 0"), "{said}");
}

#[test]
fn the_largest_number_of_a_type_is_nobodys_limit() {
    let folder = empty();
    for (arguments, said) in [
        (&["explain-chirp", "--chirp", "0"][..], "--chirp: 0 is less than 1"),
        (&["explain-chirp", "--chirp", "4294967296"], "--chirp: 4294967296 is too large a number"),
        (&["explain-chirp", "--chirp", "-1"], "--chirp: -1 is less than 1"),
        (&["explain-quick-start", "--packet", "0"], "--packet: 0 is not in 1..=65535"),
        (&["serve", "--most-connections", "0"], "--most-connections: 0 is less than 1"),
    ] {
        assert!(refusal(folder.path(), arguments).contains(said), "{}", refusal(folder.path(), arguments));
    }
}
