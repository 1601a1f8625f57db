//! The same scenario and seed give the same results on every machine and in every build: hashes of
//! what came out before.
//!
//! A change that alters results on purpose says so in its commit, and writes the hashes anew:
//! `FLOWSTART_GOLDEN=write cargo test -p flowstart --test golden`. `FLOWSTART_PROGRAM`, a command
//! with its arguments before the first, is run instead of the program that was built: one built for
//! another machine (`.ci/machines`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program, or what stands for it.
fn program() -> Command {
    let Ok(text) = std::env::var("FLOWSTART_PROGRAM") else {
        return Command::cargo_bin("flowstart").expect("the program is built");
    };
    let words = shlex::split(&text).expect("words");
    let mut command = Command::new(words.first().expect("a program"));
    command.args(&words[1..]);
    command
}

/// What the program prints as JSON.
fn json(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = program();
    let assert = command.current_dir(folder.path()).args(arguments).assert().success();
    serde_json::from_slice(&assert.get_output().stdout).expect("JSON")
}

/// The scenario files of a folder, by name.
fn scenarios(folder: &str) -> Vec<String> {
    let mut files: Vec<String> = std::fs::read_dir(root().join(folder))
        .expect("the folder is there")
        .map(|entry| format!("{folder}/{}", entry.expect("readable").file_name().to_string_lossy()))
        .filter(|name| name.ends_with(".toml"))
        .collect();
    files.sort();
    files
}

/// One line each: hash, name.
fn hashes() -> String {
    let mut lines = String::new();
    for file in scenarios("scenarios").iter().chain(&scenarios("crates/flowstart/tests/golden")) {
        let path = root().join(file);
        let result = json(&["run", path.to_str().expect("UTF-8"), "--json"]);
        let hash = result["provenance"]["results_hash"].as_str().expect("a hash").to_owned();
        let _ = writeln!(lines, "{hash}  {file}");
    }
    let race = json(&["compare", "--json", "--no-report"]);
    let hash = blake3::hash(race["contestants"].to_string().as_bytes()).to_hex();
    let _ = writeln!(lines, "{}  the default race", &hash[..16]);
    lines
}

#[test]
fn results_of_scenarios_and_of_the_default_race_are_those_recorded() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hashes.txt");
    let now = hashes();
    if std::env::var("FLOWSTART_GOLDEN").is_ok_and(|word| word == "write") {
        std::fs::write(&file, &now).expect("the file can be written");
    }
    let recorded = std::fs::read_to_string(&file).expect("hashes.txt is there");
    let changed: Vec<&str> = now.lines().filter(|line| !recorded.lines().any(|known| known == *line)).collect();
    assert!(changed.is_empty() && recorded.lines().count() == now.lines().count(), "results changed: {changed:#?}");
}
