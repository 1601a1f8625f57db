//! `flowstart reproduce` from outside, and the page of verdicts in the documentation.

use std::path::{Path, PathBuf};

use assert_cmd::Command;

fn flowstart(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("flowstart").expect("the program is built");
    command.current_dir(folder).env("COLUMNS", "100").env("LANG", "C.UTF-8");
    command
}

fn output(folder: &Path, arguments: &[&str], status: i32) -> String {
    let assert = flowstart(folder).arg("reproduce").args(arguments).assert().code(status);
    String::from_utf8(assert.get_output().stdout.clone()).expect("UTF-8")
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let assert = flowstart(folder).arg("reproduce").args(arguments).assert().code(2).stdout("");
    String::from_utf8(assert.get_output().stderr.clone()).expect("UTF-8")
}

const OWN: &str = r#"
title = "My figure"
shows = "A transfer over a short path."
replications = { by = "nothing", because = "It is alone." }

[scenario]
duration = "1 s"
path = { capacity = "20 Mbit/s", rtt = "10 ms" }
flow = [{ name = "bulk", size = "100 kB" }]

[[claim]]
id = "soon"
origin = "paper"
source = "Fig. 1"
says = "It is over soon."
measure = { kind = "completion_time", statistic = "max" }
expect = "<= 200 ms"

[[claim]]
id = "at-once"
origin = "paper"
source = "Fig. 1"
says = "It is over at once."
measure = { kind = "completion_time", statistic = "max" }
expect = "<= 1 ms"
why = "Light is slow."

[[picture]]
kind = "throughput"
title = "Throughput"
"#;

fn own() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("own.toml"), OWN).expect("written");
    folder
}

#[test]
fn the_list_names_every_paper_and_figure() {
    let folder = own();
    let list = output(folder.path(), &["--list"], 0);
    assert!(list.contains("Misund") && list.contains("paced-chirping/fig6"), "{list}");
    let json: serde_json::Value = serde_json::from_str(&output(folder.path(), &["--list", "--json"], 0)).expect("JSON");
    assert!(json["figures"].as_array().is_some_and(|figures| !figures.is_empty()));
}

#[test]
fn a_claim_that_differs_is_shown_with_its_reason_and_fails_only_if_asked() {
    let folder = own();
    let text = output(folder.path(), &["own.toml"], 0);
    for part in [
        "soon",
        "reproduced",
        "differs:",
        "cause: not found. A guess: Light is slow.",
        "2 claims: 1 reproduced, 1 differs",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.lines().count(), output(folder.path(), &["own.toml", "--strict"], 1).lines().count());
    let markdown = output(folder.path(), &["own.toml", "--markdown"], 0);
    assert!(markdown.contains("#at-once | It is over at once. | Fig. 1 | \\<= 1 ms |"), "{markdown}");
}

#[test]
fn json_is_the_same_for_any_number_of_threads() {
    let folder = own();
    let one = output(folder.path(), &["own.toml", "--json", "--threads", "1"], 0);
    assert_eq!(one, output(folder.path(), &["own.toml", "--json", "--threads", "3"], 0));
    let json: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(json["figures"][0]["claims"][0]["verdict"], "reproduced");
    let counts = serde_json::json!({"reproduced": 1, "differs": 1, "undecided": 0, "under_specified": 0});
    assert_eq!(json["all"]["paper"], counts);
    assert_eq!(json["all"]["ours"]["reproduced"], 0);
    assert_eq!(json["figures"][0]["claims"][0]["origin"], "paper");
    assert_eq!(json["figures"][0]["claims"][0]["cases"][0]["n"], 1);
}

#[test]
fn plots_are_svg_files_and_one_page() {
    let folder = own();
    output(folder.path(), &["own.toml", "--plot", "pictures"], 0);
    let page = std::fs::read_to_string(folder.path().join("pictures/index.html")).expect("the page");
    assert!(page.contains("It is over at once.") && page.contains("</html>"));
    assert!(folder.path().join("pictures/own.toml-1-Throughput.svg").exists());
}

#[test]
fn wrong_names_and_files_are_refused_with_what_would_be_right() {
    let folder = own();
    assert!(refusal(folder.path(), &["paced-chrping"]).contains("did you mean \"paced-chirping\"?"));
    assert!(refusal(folder.path(), &["missing.toml"]).contains("missing.toml"));
    std::fs::write(folder.path().join("bad.toml"), OWN.replace("capacity", "capcity")).expect("written");
    let error = refusal(folder.path(), &["bad.toml"]);
    assert!(error.contains("bad.toml:8:10: unknown field `capcity`") && error.contains("did you mean"), "{error}");
}

#[test]
fn the_papers_counts_are_apart_from_ours() {
    let folder = own();
    let json = output(folder.path(), &["quick-start/beyond-short", "quick-start/fig9", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let of = |whose: &str| json["papers"]["quick-start"][whose].as_object().expect("counts").clone();
    let sum = |whose: &str| of(whose).values().filter_map(serde_json::Value::as_u64).sum::<u64>();
    assert_eq!(of("paper").keys().collect::<Vec<_>>(), ["differs", "reproduced", "undecided", "under_specified"]);
    assert!(sum("paper") >= 6 && sum("ours") >= 5, "{json:#}");
}

#[test]
fn wrong_numbers_and_claims_without_owner_are_one_sentence_and_status_2() {
    let folder = own();
    for (arguments, part) in [
        (&["--runs", "0"][..], "not a number of runs"),
        (&["--runs=-3"], "not a number of runs"),
        (&["--seed", "x"], "not a whole number"),
        (&["--stability", "1"], "2..=100"),
        (&["quick-start/fig99"], "did you mean"),
        (&[""], "has a name"),
        (&["own.toml", " "], "has a name"),
        (&["--recorded=none.json"], "there is no none.json"),
        (&["--record=own.toml/none.json", "own.toml"], "none.json"),
    ] {
        assert!(refusal(folder.path(), arguments).contains(part), "{arguments:?}");
    }
    // Files that are none, empty or not text.
    std::fs::create_dir(folder.path().join("folder.toml")).expect("made");
    std::fs::write(folder.path().join("empty.toml"), "").expect("written");
    std::fs::write(folder.path().join("bytes.toml"), [0xff, 0xfe, 0x00]).expect("written");
    for name in ["folder.toml", "empty.toml", "bytes.toml", "none.toml"] {
        let error = refusal(folder.path(), &[name]);
        assert!(error.starts_with("error: ") && error.contains(name), "{name}: {error}");
    }
    std::fs::write(folder.path().join("whose.toml"), OWN.replacen("origin = \"paper\"\n", "", 1)).expect("written");
    let error = refusal(folder.path(), &["whose.toml"]);
    assert!(error.contains("whose.toml:") && error.contains("say whose claim it is"), "{error}");
}

/// What follows an object of JSON.
fn rest(text: &str) -> &str {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if letter == '}' && depth == 0 {
            return text[at + 1..].trim_start_matches(',');
        }
    }
    ""
}

#[test]
fn what_is_recorded_is_shown_and_verified_without_running_everything() {
    let folder = own();
    let text = output(folder.path(), &["quick-start/fig9", "--json", "--record=kept.json"], 0);
    let kept = output(folder.path(), &["quick-start/fig9", "--json", "--recorded=kept.json"], 0);
    // A text file may lose the last digit of a number.
    let digits = |text: &str| -> Vec<String> {
        let cut = |word: &str| if word.contains('.') { word.chars().take(14).collect() } else { word.to_owned() };
        text.split_whitespace().map(cut).collect()
    };
    assert_eq!(digits(&text), digits(&kept));
    assert!(
        refusal(folder.path(), &["quick-start/fig10", "--recorded=kept.json"])
            .contains("does not hold quick-start/fig10")
    );
    let verified = output(folder.path(), &["quick-start/fig9", "--verify=kept.json"], 0);
    assert!(verified.contains("claims of 1 figures run again") && verified.contains("0 other numbers"), "{verified}");
    // A number that is not what comes out is found.
    let kept = std::fs::read_to_string(folder.path().join("kept.json")).expect("kept");
    std::fs::write(folder.path().join("kept.json"), kept.replacen("\"mean\": ", "\"mean\": 7", 1)).expect("written");
    assert!(output(folder.path(), &["quick-start/fig9", "--verify=kept.json"], 1).contains("quick-start/fig9#"));
    // Of what takes long, one run is made again.
    let packets = kept.find("\"data_packets\": ").expect("packets") + "\"data_packets\": ".len();
    let long = format!("{}999999999{}", &kept[..packets], &kept[packets..]);
    let verify = |kept: &str, status| {
        std::fs::write(folder.path().join("kept.json"), kept).expect("written");
        output(folder.path(), &["quick-start/fig9", "--verify=kept.json"], status)
    };
    assert!(verify(&long, 0).contains("0 other numbers\none run of each, as they take long: quick-start/fig9\n"));
    let first = long.find("\"first\": ").expect("a first run");
    let value = first + long[first..].find(|c: char| c.is_ascii_digit()).expect("a value");
    let other = format!("{}7{}", &long[..value], &long[value..]);
    assert!(verify(&other, 1).contains("first run: "));
    let unknown =
        format!("{}\"first\": {{\"variant\": \"\", \"values\": []}},\n{}", &long[..first], rest(&long[first..]));
    assert!(verify(&unknown, 0).contains("recorded without a first run, so not run again: quick-start/fig9\n"));
    std::fs::write(folder.path().join("kept.json"), "{").expect("written");
    assert!(refusal(folder.path(), &["--recorded=kept.json"]).contains("not a record"));
}

#[test]
fn what_seeds_give_is_kept_figure_by_figure() {
    let folder = own();
    let random = OWN.replacen("by = \"nothing\", because = \"It is alone.\"", "by = \"trickle\"", 1);
    for name in ["one.toml", "two.toml"] {
        std::fs::write(folder.path().join(name), &random).expect("written");
        output(folder.path(), &[name, "--stability", "2", "--record=kept.json"], 0);
    }
    // Nothing is random in this one.
    output(folder.path(), &["own.toml", "--stability", "2", "--record=kept.json"], 0);
    let kept = std::fs::read_to_string(folder.path().join("kept.json")).expect("kept");
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    let figures = kept["stability"]["figures"].as_object().expect("figures");
    assert_eq!(figures.keys().collect::<Vec<_>>(), ["one.toml", "two.toml"]);
    assert_eq!((figures["one.toml"]["decided"].as_u64(), figures["one.toml"]["same"].as_u64()), (Some(2), Some(2)));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Everything that was recorded, judged by the files as they are. The page names what was not.
fn recorded() -> Vec<flowstart_reproduce::FigureResult> {
    let text = std::fs::read_to_string(root().join("docs/reproduce.json")).expect("the record");
    let record: flowstart_reproduce::Record = serde_json::from_str(&text).expect("a record");
    let page = std::fs::read_to_string(root().join("docs/reproduce.md")).unwrap_or_default();
    let judged = |figure: &flowstart_reproduce::Figure| {
        let Some(kept) = record.figures.get(&figure.name) else {
            let line = page.lines().find(|line| line.starts_with("Not run by these rules yet"));
            assert!(line.is_some_and(|line| line.contains(&figure.name)), "{} is missing unsaid", figure.name);
            return None;
        };
        Some(kept.judge(figure).unwrap_or_else(|error| panic!("{error}")))
    };
    flowstart_reproduce::figures("").expect("the experiments read").iter().filter_map(judged).collect()
}

/// Running everything again takes long; a word that was changed, or a parameter, shows at once.
#[test]
fn the_page_of_verdicts_was_made_from_the_files_and_the_record_as_they_are() {
    let page = std::fs::read_to_string(root().join("docs/reproduce.md")).unwrap_or_default();
    let made = output(&root(), &["--recorded", "--markdown"], 0);
    assert!(page == made, "run `flowstart reproduce --recorded --markdown > docs/reproduce.md`");
}

#[test]
fn every_difference_has_a_cause_that_a_run_shows_or_says_that_none_was_found() {
    let all = recorded();
    let find = |figure: &str, id: &str| {
        let (name, id) = id.split_once('#').unwrap_or((figure, id));
        let figure = all.iter().find(|result| result.figure.name == name);
        figure.and_then(|result| result.claims.iter().find(|claim| claim.claim.spec.id == id))
    };
    for result in &all {
        for claim in &result.claims {
            let (figure, spec) = (&result.figure.name, &claim.claim.spec);
            if let Some(shown) = &spec.shown_by {
                let other = find(figure, shown).unwrap_or_else(|| panic!("{figure}#{}: no claim {shown}", spec.id));
                assert_eq!(other.verdict.name(), "reproduced", "{figure}#{}: {shown} shows nothing", spec.id);
            }
            if claim.verdict == flowstart_reproduce::Verdict::Differs {
                let cause = claim.explanation().into_iter().find(|(kind, _)| *kind == "cause");
                let (_, text) = cause.unwrap_or_else(|| panic!("{figure}#{}: no cause", spec.id));
                assert!(text.contains("Shown by") || text.starts_with("not found"), "{text}");
            }
        }
    }
}

#[test]
fn a_figure_whose_runs_are_all_the_same_says_why() {
    for result in recorded().iter().filter(|result| !result.looks.certain) {
        let mut cases = result.claims.iter().flat_map(|claim| &claim.cases);
        let differ = cases.any(|case| case.evidence.deviation.is_some_and(|deviation| deviation > 0.0));
        assert!(differ, "{}: nothing differs from run to run; see [replications]", result.figure.name);
    }
}

/// They were taken without a word.
#[test]
fn options_that_would_have_no_effect_are_refused() {
    let folder = own();
    for [what, option] in [
        ["--list", "--markdown"],
        ["--list", "--strict"],
        ["--list", "--record"],
        ["--list", "--recorded"],
        ["--list", "--plot=x"],
        ["--list", "-o=x.html"],
        ["--stability=2", "--strict"],
        ["--verify", "--strict"],
    ] {
        let said = refusal(folder.path(), &["own.toml", what, option]);
        assert!(said.contains("cannot be used with"), "{what} {option}: {said}");
    }
    let kept = concat!("--recorded=", env!("CARGO_MANIFEST_DIR"), "/../../docs/quick-start-real.json");
    let said = refusal(folder.path(), &["quick-start", "--real", "--quick", kept]);
    assert!(said.contains("cannot be used with"), "{said}");
    if cfg!(target_os = "linux") {
        let said = refusal(folder.path(), &["quick-start", "--real=7", kept]);
        assert!(said.contains("--recorded runs none"), "{said}");
    }
}

/// Whether there was such a figure was looked up when hours of work were done.
#[test]
fn a_figure_that_the_report_will_not_have_is_refused_before_anything_is_run() {
    let folder = own();
    let said = refusal(folder.path(), &["own.toml", "-o", "x.html", "-o", "x.svg", "--figure", "delay"]);
    assert!(said.contains("there is no figure \"delay\"; there are: Throughput"), "{said}");
    let without = &OWN[..OWN.find("[[picture]]").expect("a picture")];
    std::fs::write(folder.path().join("none.toml"), without).expect("written");
    assert!(refusal(folder.path(), &["none.toml", "-o", "x.svg"]).contains("there is no figure in this report"));
    output(folder.path(), &["own.toml", "-o", "x.svg", "--figure", "throughput"], 0);
}

/// The advice named another file and a longer run than the record was made with.
#[test]
fn advice_to_record_again_names_the_file_that_is_meant() {
    let folder = own();
    output(folder.path(), &["own.toml", "--record=my kept.json"], 0);
    let text = OWN.replace("duration = \"1 s\"", "duration = \"2 s\"");
    std::fs::write(folder.path().join("own.toml"), text).expect("written");
    let said = refusal(folder.path(), &["own.toml", "--recorded=my kept.json"]);
    assert!(said.contains("run `flowstart reproduce own.toml --record='my kept.json'`"), "{said}");
    let said = refusal(folder.path(), &["own.toml", "--recorded=none.json"]);
    assert!(said.contains("`flowstart reproduce --record=none.json` makes it"), "{said}");
}
