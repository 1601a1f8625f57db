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

[scenario]
duration = "1 s"
path = { capacity = "20 Mbit/s", rtt = "10 ms" }
flow = [{ name = "bulk", size = "100 kB" }]

[[claim]]
id = "soon"
source = "Fig. 1"
says = "It is over soon."
measure = { kind = "completion_time", statistic = "max" }
expect = "<= 200 ms"

[[claim]]
id = "at-once"
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
    for part in ["soon", "reproduced", "differs:", "why: Light is slow.", "2 claims: 1 reproduced, 1 differs"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.lines().count(), output(folder.path(), &["own.toml", "--strict"], 1).lines().count());
    let markdown = output(folder.path(), &["own.toml", "--markdown"], 0);
    assert!(markdown.contains("| at-once | It is over at once. | Fig. 1 | \\<= 1 ms |"), "{markdown}");
}

#[test]
fn json_is_the_same_for_any_number_of_threads() {
    let folder = own();
    let one = output(folder.path(), &["own.toml", "--json", "--threads", "1"], 0);
    assert_eq!(one, output(folder.path(), &["own.toml", "--json", "--threads", "3"], 0));
    let json: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(json["figures"][0]["claims"][0]["verdict"], "reproduced");
    assert_eq!((&json["reproduced"], &json["differs"]), (&1.into(), &1.into()));
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
    assert!(error.contains("bad.toml:7:10: unknown field `capcity`") && error.contains("did you mean"), "{error}");
}

/// Running everything again takes minutes; a changed file, be it a word of a claim, shows at once.
#[test]
fn the_page_of_verdicts_was_made_from_the_files_as_they_are() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/reproduce.md")).unwrap_or_default();
    let again = "run `cargo run --release -- reproduce --markdown > docs/reproduce.md`";
    for figure in flowstart_reproduce::figures("").expect("the experiments read") {
        let heading = format!("{}: {}", figure.name, figure.title);
        let section = page.split("\n### ").find(|section| section.lines().next() == Some(heading.as_str()));
        let section = section.unwrap_or_else(|| panic!("docs/reproduce.md has no \"{heading}\"; {again}"));
        let file = format!("File {},", figure.file_hash);
        assert!(section.contains(&file), "experiments/{}.toml has changed; {again}", figure.name);
        for claim in &figure.claims {
            assert!(section.contains(&format!("| {} |", claim.spec.id)), "no claim \"{}\"; {again}", claim.spec.id);
        }
    }
}
