//! `flowstart benchmark` from outside.

use std::path::Path;

use assert_cmd::Command;

/// A benchmark that takes no time: alone on a path of 5 Mbit/s.
const LIGHT: &[&str] = &[
    "benchmark",
    "reno",
    "--capacity",
    "5Mbit/s",
    "--rtt",
    "20ms",
    "--peers",
    "0",
    "--samples",
    "20",
    "--epsilon",
    "5 %",
    "--lasting",
    "5s",
    "--warm-up",
    "1s",
    "--overload-after",
    "2s",
    "--step",
    "1Mbit/s",
];

fn run(folder: &Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("flowstart").expect("the program is built");
    command.current_dir(folder).env("COLUMNS", "200").env("LANG", "C.UTF-8").args(arguments).assert()
}

fn text(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).expect("UTF-8")
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    LIGHT.iter().chain(more).copied().collect()
}

#[test]
fn a_benchmark_prints_its_tables_and_writes_a_page_of_pictures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = text(&run(folder.path(), &with(&["--against", "scalable"])).success());
    for part in
        ["slow_start+reno", "slow_start+scalable", "accepted: constant delays", "too high", "There before: nobody"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let results = folder.path().join("flowstart-benchmark");
    for name in ["parameters.json", "probes.csv", "report.html", "result.json", "summary.csv"] {
        assert!(results.join(name).is_file(), "{name}");
    }
    let page = std::fs::read_to_string(results.join("report.html")).expect("readable");
    for part in ["Attainable rate", "Start-up service curve", "Delay bound of a video", "Delays, slow_start+scalable"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn as_json_nothing_is_written_and_the_long_term_rate_is_the_largest_that_fits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = text(&run(folder.path(), &with(&["--json"])).success());
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let result = &document["results"][0];
    assert_eq!(result["long_term_rate_bps"], 4_000_000);
    assert_eq!(result["end"]["reason"], "too high");
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
}

/// "60 s to 5 s" were said. What is too high was known to be so after three.
#[test]
fn of_rates_that_end_before_the_least_time_it_is_said_how_long_they_were_watched() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let said = text(&run(folder.path(), &with(&["--connections", "0", "--bursts", "0", "--no-report"])).success());
    assert!(said.contains("warm-up 1 s, 3 s to 5 s of measurement per rate;"), "{said}");
}

#[test]
fn who_is_there_before_and_knows_nothing_is_said() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = "[path]\ncapacity = \"5 Mbit/s\"\nrtt = \"20 ms\"\nbuffer = \"1 BDP\"\n";
    let scenario = format!("{path}[[udp]]\nrate = \"2 Mbit/s\"\n");
    std::fs::write(folder.path().join("call.toml"), scenario).expect("written");
    let mut arguments = LIGHT.to_vec();
    arguments[1] = "oracle+reno";
    arguments.extend(["--scenario", "call.toml", "--no-report"]);
    let said = run(folder.path(), &arguments).success();
    let shown = text(&said);
    assert!(shown.contains("There before: datagrams at 2 Mbit/s. Fair share: "), "{shown}");
    let notes = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(notes.contains("oracle knows nothing") && notes.contains("slow start"), "{notes}");
    for refused in [&["--curve-epsilon", "100%"][..], &["--curve-epsilon", "0%"]] {
        run(folder.path(), &with(refused)).code(2);
    }
}

#[test]
fn a_file_of_measurements_needs_no_simulation() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows: String = (0..2_000_u64).map(|n| format!("1000000,{},{}\n", n * 12, n * 12 + 31)).collect();
    std::fs::write(folder.path().join("lab.csv"), format!("rate_bps,sent_ms,received_ms\n{rows}")).expect("written");
    let arguments = ["benchmark", "--measured", "lab.csv", "--samples", "100", "--warm-up", "1s", "--no-report"];
    let text = text(&run(folder.path(), &arguments).success());
    assert!(text.contains("lab") && text.contains("31.0"), "{text}");
    let rated = [&arguments[..], &["--measured-rate", "1Mbit/s"]].concat();
    let refused = run(folder.path(), &rated).code(2);
    let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
    assert!(message.contains("--measured-rate would have no influence"), "{message}");
    std::fs::write(folder.path().join("plain.csv"), format!("sent_ms,received_ms\n{}", rows.replace("1000000,", "")))
        .expect("written");
    run(folder.path(), &[&rated[..], &["--measured", "plain.csv"]].concat()).success();
    std::fs::write(folder.path().join("bad.csv"), "sent_ms\n1\n").expect("written");
    let refused = run(folder.path(), &["benchmark", "--measured", "bad.csv", "--no-report"]).code(2);
    let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
    assert!(message.contains("bad.csv has no column received_ns"), "{message}");
}

/// It was said that rates were watched for 60 to 3000 s, of files that end before.
#[test]
fn of_a_file_of_measurements_it_is_said_how_long_it_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let train = |rate: u64, count: u64| {
        let row = move |n: u64| format!("{},{},{}\n", rate * 1_000_000, n * 12 / rate, n * 12 / rate + 31);
        (0..count).map(row).collect::<String>()
    };
    let said = |rows: &str, more: &[&str]| {
        std::fs::write(folder.path().join("lab.csv"), format!("rate_bps,sent_ms,received_ms\n{rows}"))
            .expect("written");
        let arguments = ["benchmark", "--measured", "lab.csv", "--samples", "100", "--warm-up", "1s", "--no-report"];
        text(&run(folder.path(), &[&arguments[..], more].concat()).success())
    };
    let one = said(&train(1, 2_000), &[]);
    assert!(one.contains("warm-up 1 s, 23 s of measurement per rate;"), "{one}");
    let short = "No rate is too high: 23 s of measurement are less than the 600 s for which delays must grow; a longer \
                 measurement, or";
    assert!(one.split_whitespace().collect::<Vec<_>>().join(" ").contains(short), "{one}");
    let two = said(&[train(1, 2_000), train(2, 6_000)].concat(), &["--overload-after", "20s"]);
    assert!(two.contains("23 s to 35 s of measurement per rate;"), "{two}");
    assert!(!two.contains("No rate is too high"), "{two}");
    // What is simulated beside it is watched as long as is asked for.
    let path =
        ["reno", "--peers", "0", "--capacity", "5Mbit/s", "--rtt", "20ms", "--connections", "0", "--bursts", "0"];
    let beside = said(&train(1, 2_000), &[&path[..], &["--lasting", "30s", "--least", "25s"]].concat());
    assert!(beside.contains("23 s to 30 s of measurement per rate;"), "{beside}");
}

#[test]
fn files_of_measurements_share_a_probability_by_their_own_rates_and_are_told_apart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for place in ["x", "y"] {
        std::fs::create_dir(folder.path().join(place)).expect("made");
        let train = |rate: u64| {
            let row =
                move |n: u64| format!("{},{},{}\n", rate * 1_000_000, n * 12_000 / rate, n * 12_000 / rate + 31_000);
            (0..6_000 * rate).map(row).collect::<String>()
        };
        let rows: String = (1..=3).map(train).collect();
        let text = format!("rate_bps,sent_us,received_us\n{rows}");
        std::fs::write(folder.path().join(place).join("lab.csv"), text).expect("written");
    }
    let arguments =
        ["benchmark", "--measured", "x/lab.csv", "--measured", "y/lab.csv", "--curve-epsilon", "6%", "--json"];
    let document: serde_json::Value =
        serde_json::from_str(&text(&run(folder.path(), &arguments).success())).expect("JSON");
    // Three rates, not those of a path that nobody asked for.
    assert_eq!(document["parameters"]["epsilon_per_rate"], 0.02);
    assert_eq!(document["results"][0]["label"], "x/lab");
    assert_eq!(document["results"][1]["label"], "y/lab");
    for option in
        [&["--on", "pie"][..], &["--bursts", "3"], &["--connections", "3"], &["--joint", "3"], &["--to-the-end"]]
    {
        let refused = run(folder.path(), &[&["benchmark", "--measured", "x/lab.csv"], option].concat()).code(2);
        let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
        assert!(message.contains(option[0]) && message.contains("are all there is"), "{message}");
    }
}

#[test]
fn of_a_file_of_measurements_that_says_too_little_it_is_said_what_is_missing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("head.csv"), "rate_bps,sent_ms,received_ms\n").expect("written");
    std::fs::write(folder.path().join("rate.csv"), "sent_ms,received_ms\n1,2\n").expect("written");
    for (file, more, part) in [
        ("head.csv", &[][..], "head.csv has no row below its head"),
        (
            "rate.csv",
            &[],
            "rate.csv has no column rate_bps: name the rate at which it was measured with --measured-rate",
        ),
        // What is refused of simulations is refused here, too, before files are read.
        ("none.csv", &["--video", "0bit/s"], "a video of 0 bit/s has no frames"),
        ("none.csv", &["--burst", "0B"], "a burst of 0 bytes is none"),
        ("none.csv", &["--samples", "20"], "an epsilon of 1 % needs at least 100 samples"),
    ] {
        let refused = run(folder.path(), &[&["benchmark", "--measured", file][..], more].concat()).code(2);
        let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!folder.path().join("flowstart-benchmark").exists(), "nothing is left behind");
}

#[test]
fn of_a_rate_that_is_not_whole_it_is_said_what_is_missing_and_the_others_count() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let row = |rate: u64, n: u64| {
        let sent = n * 12_000 / rate;
        format!("{},{sent},{}\n", rate * 1_000_000, sent + 31_000 + n * 7919 % 997)
    };
    let write = |name: &str, rates: &[u64]| {
        let all = rates.iter().flat_map(|rate| (0..6_000 * rate).map(move |n| (*rate, n)));
        let rows: String = all.filter(|(rate, n)| *rate != 2 || n % 3 > 0).map(|(rate, n)| row(rate, n)).collect();
        std::fs::write(folder.path().join(name), format!("rate_bps,sent_us,received_us\n{rows}")).expect("written");
    };
    write("three.csv", &[1, 2, 3]);
    write("two.csv", &[2]);
    let judged = |file| ["benchmark", "--measured", file, "--samples", "100", "--warm-up", "1s", "--json"];
    let told =
        |assert: &assert_cmd::assert::Assert| String::from_utf8(assert.get_output().stderr.clone()).expect("UTF-8");
    let ran = run(folder.path(), &judged("three.csv")).success();
    let missing = "has 66 % of the messages that a train of 2 Mbit/s has between its first and its last row";
    let said = told(&ran);
    assert!(said.contains(&format!("three.csv {missing}")) && said.contains("until then it is undecided"), "{said}");
    let document: serde_json::Value = serde_json::from_str(&text(&ran)).expect("JSON");
    let verdict = |number: usize| document["results"][0]["probes"][number]["verdict"].clone();
    assert_eq!(verdict(1), "undecided: messages are missing");
    assert!(verdict(0).as_str().is_some_and(|word| word.starts_with("accepted")), "{document:#}");
    assert_eq!(document["results"][0]["long_term_rate_bps"], 3_000_000);
    let said = told(&run(folder.path(), &judged("two.csv")).code(2));
    assert!(said.contains(&format!("two.csv {missing}")), "{said}");
}

#[test]
fn without_intervals_nothing_is_set_off_as_the_best() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = with(&["--against", "scalable", "--markdown", "--video", "1Mbit/s", "--bursts", "2"]);
    let alone = text(&run(folder.path(), &arguments).success());
    let summary = alone.split("| contestant | long-term rate").nth(1).expect("the summary");
    let names: Vec<&str> = summary.lines().next().expect("a head").split(" | ").skip(1).collect();
    for row in summary.lines().skip(2).take(2) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").skip(2).collect();
        for (name, cell) in names.iter().zip(cells).filter(|(_, cell)| cell.contains("**")) {
            assert!(cell.contains('±') || cell.contains('['), "{name}: {cell}");
        }
    }
}

/// After 5 s a fair share of 5 Mbit/s was "too high".
#[test]
fn of_growth_that_is_watched_for_less_than_a_minute_beside_others_it_is_said_that_it_may_be_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let told = |more: &[&str]| {
        let arguments = with(&[&["--connections", "0", "--bursts", "0", "--no-report"], more].concat());
        let ran = run(folder.path(), &arguments).success();
        String::from_utf8(ran.get_output().stderr.clone()).expect("UTF-8")
    };
    let said = told(&["--background", "cubic"]);
    assert!(said.contains("--overload-after 2 s: a connection beside others recovers from losses"), "{said}");
    assert!(!told(&[]).contains("--overload-after"), "alone it has nothing to recover from");
}

#[test]
fn what_cannot_be_benchmarked_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (more, part) in
        [(["--step", "50Mbit/s"], "no probing rate"), (["--against", "cubik"], "did you mean \"cubic\"?")]
    {
        let arguments: Vec<&str> = LIGHT[..LIGHT.len() - 2].iter().chain(&more).copied().collect();
        let refused = run(folder.path(), &arguments).code(2);
        let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
        assert!(message.contains(part), "{part}: {message}");
    }
    for (more, part) in [
        (["--samples", "20"], "an epsilon of 1 % needs at least 100 samples, not 20"),
        (["--epsilon", "0 %"], "epsilon must be above 0 %"),
        (["--epsilon", "2"], "--epsilon"),
        (["--lasting", "0s"], "measuring for 0 s sees no message"),
        (["--video", "0bit/s"], "a video of 0 bit/s has no frames"),
        (["--burst", "0B"], "a burst of 0 bytes is none"),
        (["--least", "3001s"], "--least 3001 s is longer than each rate is measured at most, 3000 s (--lasting)"),
        (["--figure", "delay"], "--figure delay says what .svg files show, and none is to be written"),
        (["--lasting", "1s"], "750 samples 10 ms apart take 7.5 s, and each rate is measured for 1 s at most"),
        (["--gap", "9s"], "nothing would be decided"),
        (["--growth", "-1"], "--growth: -1 is not in 2..=1000"),
        (["--fidelity", "-1ms"], "--fidelity: \"-1ms\" is negative"),
        (["--film-fps", "-1"], "--film-fps: -1 is not in 1..=1000"),
        (["--independence-level", "0"], "a test at 0 % never fails: name a level above 0 % and of at most 50 %"),
        (["--growth-level", "0 %"], "a test at 0 % never fails"),
        (["--independence-level", "1"], "a test at 100 % fails as often as not, or more often, where nothing is wrong"),
        (["--growth-level", "51 %"], "name a level above 0 % and of at most 50 %"),
        (["--overload-after", "0s"], "delays rise and fall within 0 ns: name at least 1 s (the default is 600 s)"),
        (["--overload-after", "999ms"], "delays rise and fall within 999 ms: name at least 1 s"),
    ] {
        let refused = run(folder.path(), &[["benchmark", "cubic"], more].concat()).code(2);
        let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// The last of them could not be measured again: --seed refuses it.
#[test]
fn seeds_that_cannot_be_named_are_not_measured() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refused = run(folder.path(), &with(&["--runs", "2", "--seed", "9223372036854775807"])).code(2);
    let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
    let says = "--runs 2 with the seed 9223372036854775807 ends with 9223372036854775808, and the largest seed is";
    assert!(message.contains(says), "{message}");
}

#[test]
fn a_figure_that_the_page_will_not_have_is_refused_before_anything_is_measured_and_the_others_are_drawn() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // That one is broken would be told first if it were read first.
    std::fs::write(folder.path().join("lab.csv"), "sent_ms\n1\n").expect("written");
    let figure = |name: &'static str| ["--figure", name, "-o", "x.svg"];
    // The first takes minutes.
    for (of, titles) in [
        (
            &["cubic"][..],
            "Attainable rate, Delay bound of a video, Start-up service curve, Service of bursts, Delays, hystart+cubic",
        ),
        (&["--measured", "lab.csv"], "Attainable rate, Delay bound of a video, Delays, lab"),
    ] {
        let refused = run(folder.path(), &[&["benchmark"], of, &figure("nosuch")].concat()).code(2);
        let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
        assert!(message.contains(&format!("there is no figure \"nosuch\"; there are: {titles}\n")), "{message}");
    }
    for name in ["attainable", "sustained", "video", "start-up", "bursts", "Delays, slow_start+reno"] {
        let more = [&figure(name)[..], &["--runs", "2", "--bursts", "2", "--no-report"]].concat();
        run(folder.path(), &with(&more)).success();
        let drawn = std::fs::read_to_string(folder.path().join("x.svg")).expect("drawn");
        assert!(drawn.to_lowercase().contains(&name.to_lowercase()), "{name}");
    }
}

#[test]
fn several_seeds_are_those_of_single_runs_and_the_table_has_their_median_and_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    // Beside others, so that seeds differ.
    let json = |more: &[&str]| -> serde_json::Value {
        let loaded = ["--background", "cubic", "--bursts", "0", "--connections", "0", "--json"];
        let run = run(folder.path(), &[LIGHT, &loaded, more].concat()).success();
        serde_json::from_str(&text(&run)).expect("JSON")
    };
    let all = json(&["--seed", "3", "--runs", "3", "--out", "out"]);
    let runs = all["runs"].as_array().expect("runs");
    let single: Vec<serde_json::Value> = ["3", "4", "5"].iter().map(|seed| json(&["--seed", seed])).collect();
    assert_eq!(runs, &single);
    assert_ne!(runs[0]["results"], runs[1]["results"], "seeds differ");
    let summary = std::fs::read_to_string(folder.path().join("out/summary.csv")).expect("written");
    let (heading, row) = summary.split_once('\n').expect("two lines");
    let value = |name: &str| -> f64 {
        let column =
            heading.split(',').position(|heading| heading == name).unwrap_or_else(|| panic!("{name}: {heading}"));
        row.trim().split(',').nth(column).and_then(|cell| cell.parse().ok()).unwrap_or_else(|| panic!("{name}: {row}"))
    };
    let mut rates: Vec<f64> =
        (single.iter()).map(|run| run["results"][0]["long_term_rate_bps"].as_f64().expect("a rate") / 1e6).collect();
    rates.sort_by(f64::total_cmp);
    let found = ["long_term_rate_low", "long_term_rate", "long_term_rate_high"].map(value);
    assert_eq!(found.to_vec(), rates);
}

#[test]
fn a_curve_that_may_always_be_violated_is_said_to_be_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |epsilon: &str| {
        let with_epsilon: Vec<&str> = LIGHT.iter().map(|one| if *one == "5 %" { epsilon } else { one }).collect();
        let more = ["--bursts", "0", "--connections", "0", "--no-report"];
        text(&run(folder.path(), &[&with_epsilon[..], &more].concat()).success())
    };
    // Four rates and more are accepted.
    assert!(said("30 %").contains("Where epsilon is 1, nothing is said of a curve as a whole"));
    assert!(!said("5 %").contains("Where epsilon is 1"));
}

#[test]
fn what_is_measured_once_is_not_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    for more in [["--real", "cubic"], ["--measured", "x.csv"], ["--delays", "d.csv"], ["--joint", "20"]] {
        let refused = run(folder.path(), &with(&[&["--runs", "2"], &more[..]].concat())).code(2);
        let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
        assert!(message.contains("--runs") && message.contains(more[0]), "{message}");
    }
}

#[test]
fn modifiers_that_have_no_effect_on_real_hosts_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = |modifier: &str| format!("2 cubic/{modifier}");
    let (linux, ns3, paced) = (before("linux"), before("ns3"), before("paced"));
    for (more, word) in [
        (vec!["--quic", "cubic/ack1"], "ack1"),
        (vec!["--quic", "cubic,dctcp/noecn"], "noecn"),
        (vec!["--quic", "cubic", "--background", &linux], "linux"),
        (vec!["--real", "cubic", "--background", &linux], "linux"),
        (vec!["--real", "cubic", "--background", &ns3], "ns3"),
        (vec!["--real", "cubic", "--background", &paced], "paced"),
        // What is simulated beside it has the modifier, and the kernel has not.
        (vec!["cubic", "--real", "cubic", "--background", &paced], "paced"),
        (vec!["cubic", "--real", "cubic", "--background", &ns3], "ns3"),
        (vec!["--command", "true {rate} {seconds}", "--background", &paced], "paced"),
    ] {
        let refused = run(folder.path(), &[&["benchmark", "--no-report"], &more[..]].concat()).code(2);
        let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.ends_with(&format!("leave out \"/{word}\"\n")), "{message}");
    }
    // Simulated hosts like Linux's beside the kernel's: what is refused here is another thing.
    let both = ["benchmark", "cubic/linux", "--real", "none", "--background", &linux, "--no-report"];
    let refused = run(folder.path(), &both).failure();
    let message = String::from_utf8(refused.get_output().stderr.clone()).expect("UTF-8");
    assert!(message.contains("no congestion control \"none\""), "{message}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left behind");
}

#[test]
fn every_contestant_goes_on_every_queue_and_the_page_is_markdown() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = ["--against", "bbr", "--on", "drop_tail,codel", "--connections", "0", "--joint", "20", "--markdown"];
    let page = text(&run(folder.path(), &with(&more)).success());
    for row in ["slow_start+reno@drop_tail", "slow_start+reno@codel", "bbr@drop_tail", "bbr@codel"] {
        assert!(page.contains(&format!("| {row}")), "{row}: {page}");
    }
    assert!(page.starts_with("<!-- Made by") && page.contains("tightness"), "{page}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is written");
}

#[test]
fn a_film_of_ones_own_is_bounded_and_bursts_are_on_the_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("film.txt"), format!("# bytes\n{}", "10000\n".repeat(48))).expect("written");
    let film = ["--film", "film.txt", "--film-fps", "25", "--bursts", "3"];
    run(folder.path(), &with(&film)).success();
    let page = std::fs::read_to_string(folder.path().join("flowstart-benchmark/report.html")).expect("readable");
    for part in ["Service of bursts", "A film of 48 frames, 2 Mbit/s in the mean", "burst(100 ms)"] {
        assert!(page.contains(part), "{part}");
    }
    std::fs::write(folder.path().join("film.txt"), "1000\nmany\n").expect("written");
    let refused = run(folder.path(), &with(&film)).failure();
    let error = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(error.contains("line 2: \"many\" is no number of bytes"), "{error}");
}

#[test]
fn delays_that_were_written_give_the_same_result_when_they_are_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let beside = ["--background", "cubic", "--connections", "0", "--bursts", "0", "--seed", "3", "--json"];
    let keys = ["--with", "jitter = \"1 ms\"", "--curve-epsilon", "50 %"];
    let ran = run(folder.path(), &with(&[&beside[..], &["--delays", "d.csv"]].concat())).success();
    let own = text(&ran);
    let procedure = ["--samples", "20", "--epsilon", "5 %", "--warm-up", "1s", "--overload-after", "2s", "--seed", "3"];
    let read = ["benchmark", "--capacity", "5Mbit/s", "--peers", "0", "--measured", "d.csv", "--json"];
    let again = text(&run(folder.path(), &[&read[..], &procedure[..]].concat()).success());
    let results = |text: &str| {
        let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let result = &document["results"][0];
        ["probes", "attainable_rate", "end", "long_term_rate_bps", "epsilon"].map(|key| result[key].clone())
    };
    assert_eq!(results(&own), results(&again));
    // The command that is printed does the same, with every option that matters.
    let read_back = |ran: &assert_cmd::assert::Assert| {
        let said = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
        let command = said.split("read back with: flowstart ").nth(1).and_then(|rest| rest.lines().next());
        shlex::split(command.unwrap_or_else(|| panic!("{said}"))).expect("words")
    };
    for (ran, own) in [(ran, own.clone()), {
        let arguments = with(&[&keys[..], &["--no-report", "--json", "--seed", "7", "--delays", "k.csv"]].concat());
        let arguments: Vec<&str> = arguments.into_iter().filter(|word| !["--epsilon", "5 %"].contains(word)).collect();
        let ran = run(folder.path(), &arguments).success();
        let own = text(&ran);
        (ran, own)
    }] {
        let words = read_back(&ran);
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--json"]).collect();
        assert_eq!(results(&text(&run(folder.path(), &words).success())), results(&own), "{words:?}");
    }
    // Nothing is measured that could be written.
    let refused = run(folder.path(), &["benchmark", "--measured", "d.csv", "--delays", "f.csv"]).code(2);
    assert!(text(&refused).is_empty() && !folder.path().join("f.csv").exists());
    // What is read is not overwritten, whatever it is called.
    let before = std::fs::read(folder.path().join("d.csv")).expect("there");
    let refused = run(folder.path(), &with(&["--measured", "d.csv", "--delays", "./d.csv", "--no-report"])).code(2);
    assert!(
        String::from_utf8_lossy(&refused.get_output().stderr).contains("d.csv would be overwritten, which is read")
    );
    assert!(std::fs::read(folder.path().join("d.csv")).expect("there") == before);
    assert!(results(&own)[0].as_array().is_some_and(|probes| probes.len() >= 3), "{own}");
    // Two contestants have a file each; a folder that is not there is told before anything runs.
    let two = ["--against", "cubic", "--connections", "0", "--bursts", "0", "--no-report", "--delays", "e.csv"];
    run(folder.path(), &with(&two)).success();
    for name in ["e-slow_start+reno.csv", "e-hystart+cubic.csv"] {
        assert!(folder.path().join(name).is_file(), "{name}");
    }
    // A name that looks like an option.
    let dashed = ["--delays=-x.csv", "--connections", "0", "--bursts", "0", "--no-report", "--json"];
    let ran = run(folder.path(), &with(&dashed)).success();
    let words = read_back(&ran);
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--json"]).collect();
    assert_eq!(results(&text(&run(folder.path(), &words).success())), results(&text(&ran)), "{words:?}");
    run(folder.path(), &with(&["--delays", "nowhere/d.csv"])).code(2);
    run(folder.path(), &with(&["--delays", "d.txt"])).code(2);
}

#[test]
fn every_constant_of_the_procedure_is_on_the_command_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let more = [
        "--gap",
        "20ms",
        "--sides",
        "few",
        "--independence-level",
        "1 %",
        "--stationarity-level",
        "10 %",
        "--growth-level",
        "1 %",
        "--growth",
        "3",
        "--least",
        "2s",
        "--burst",
        "100 kB",
        "--connections",
        "0",
        "--bursts",
        "0",
        "--json",
    ];
    let document: serde_json::Value =
        serde_json::from_str(&text(&run(folder.path(), &with(&more)).success())).expect("JSON");
    let parameters = &document["parameters"];
    assert_eq!(parameters["thinning_growth"], 3);
    assert_eq!(parameters["growth_level"], 0.01);
    assert_eq!(parameters["independence"], "runs about the median, too few, 1 %");
    assert_eq!(parameters["stationarity"], "DF-GLS with a constant, 10 %");
    // 800 kbit at 4 Mbit/s, and 10 ms and the transmission of a packet, 2.4 ms.
    assert_eq!(document["results"][0]["burst_bound_s"], 0.2124);
    assert!(document["results"][0]["video"]["largest_backlog_bits"].as_f64().is_some_and(|bits| bits > 0.0));
    // The union bound: 20 % of five rates are 4 % each, of which 25 samples can show one.
    let mut shared = with(&["--curve-epsilon", "20 %", "--paper", "--json", "--samples", "25"]);
    let place = shared.iter().position(|word| *word == "--epsilon").expect("there");
    shared.drain(place..place + 2);
    let place = shared.iter().position(|word| *word == "--samples").expect("there");
    shared.drain(place..place + 2);
    let document: serde_json::Value =
        serde_json::from_str(&text(&run(folder.path(), &shared).success())).expect("JSON");
    assert_eq!(document["parameters"]["epsilon_per_rate"], 0.04);
    assert_eq!(document["parameters"]["first_ends"], true);
    let gives_up = |arguments: &[&str]| {
        let document: serde_json::Value =
            serde_json::from_str(&text(&run(folder.path(), &with(arguments)).success())).expect("JSON");
        document["parameters"].get("gives_up").is_some()
    };
    assert!(gives_up(&["--json"]) && !gives_up(&["--json", "--to-the-end"]));
    for wrong in [["--sides", "three"], ["--stationarity-level", "7 %"], ["--growth", "1"]] {
        run(folder.path(), &with(&wrong)).code(2);
    }
}
