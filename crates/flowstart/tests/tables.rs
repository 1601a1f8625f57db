//! Tables of the pages that were made by hand are of today's program: beside each stands, where
//! readers do not see it, one cell that takes a moment, or claims of a recorded figure. When one
//! comes out differently the whole table is to be made again, and read what is said about it.
//!
//! ```text
//! <!-- cell
//! duration = "30 s"
//! [path]
//! …
//! gives
//! probe.dropped = 80
//! -->
//! ```
//!
//! is a scenario and what a row of its table `flows` says, found by the flow's name;
//!
//! ```text
//! <!-- cell
//! flowstart compare -C cubic --json --no-report
//! gives
//! /contestants/0/runs/0/values/completion_1mb_ms = 156.6
//! -->
//! ```
//!
//! a command and places in the JSON document that it prints. Numbers are as exact as they are
//! written. `<!-- recorded quick-start/beyond-fair#share-helps 0.80 -->` has the values of a
//! recorded claim's cases, in order.

use std::path::{Path, PathBuf};
use std::time::Instant;

use assert_cmd::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page with its name. The crate by itself has none.
fn pages() -> Vec<(String, String)> {
    let Ok(folder) = std::fs::read_dir(root().join("docs")) else { return Vec::new() };
    let files =
        folder.map(|entry| entry.expect("a file").path()).filter(|path| path.extension().is_some_and(|e| e == "md"));
    let mut pages: Vec<(String, String)> = files
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    pages.sort();
    pages
}

/// What stands in comments that begin with this word.
fn comments<'a>(page: &'a str, word: &str) -> Vec<&'a str> {
    let begin = format!("<!-- {word}");
    page.split(begin.as_str()).skip(1).map(|rest| rest.split("-->").next().unwrap().trim()).collect()
}

/// Whether a value is the one that is written, as exactly as that is.
fn is(value: &str, written: &str) -> bool {
    match (value.parse::<f64>(), written.parse::<f64>()) {
        (Ok(number), Ok(_)) => {
            let decimals = written.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            format!("{number:.decimals$}") == written
        }
        _ => value == written,
    }
}

fn flowstart(arguments: &[String], folder: &Path) -> String {
    let mut program = Command::cargo_bin("flowstart").expect("the program is built");
    let output = program.current_dir(folder).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first row of the flow with this name.
fn of_flow(table: &str, name: &str, column: &str) -> String {
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().expect("columns").split(',').collect();
    let place =
        |column: &str| head.iter().position(|other| *other == column).unwrap_or_else(|| panic!("a column {column}"));
    let mut rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let row = rows.find(|row| row[place("name")] == name).unwrap_or_else(|| panic!("a flow {name}"));
    assert_eq!(row.len(), head.len(), "a comma in a cell");
    row[place(column)].to_owned()
}

/// Looks a value up by how it is called.
type Values = Box<dyn Fn(&str) -> String>;

fn values(cell: &str) -> Values {
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(command) = cell.strip_prefix("flowstart ") {
        let arguments = shlex::split(command).expect("a command");
        let document: serde_json::Value = serde_json::from_str(&flowstart(&arguments, folder.path())).expect("JSON");
        return Box::new(move |pointer| match document.pointer(pointer) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => panic!("nothing at {pointer}"),
        });
    }
    std::fs::write(folder.path().join("cell.toml"), cell).expect("written");
    flowstart(&["run", "cell.toml", "--out", "out"].map(str::to_owned), folder.path());
    let table = std::fs::read_to_string(folder.path().join("out/flows.csv")).expect("the table of flows");
    Box::new(move |name| {
        let (flow, column) = name.rsplit_once('.').expect("flow.column");
        of_flow(&table, flow, column)
    })
}

#[test]
fn one_cell_of_every_table_made_by_hand_is_what_comes_out_today() {
    let pages = pages();
    if pages.is_empty() {
        return;
    }
    let (mut cells, mut wrong) = (0, Vec::new());
    for (name, page) in pages {
        for cell in comments(&page, "cell\n") {
            let began = Instant::now();
            let (what, gives) =
                cell.split_once("\ngives\n").unwrap_or_else(|| panic!("{name}: no \"gives\" in {cell}"));
            let values = values(what);
            for line in gives.lines() {
                let (key, written) = line.split_once(" = ").unwrap_or_else(|| panic!("{name}: {line}"));
                let value = values(key);
                if !is(&value, written) {
                    wrong.push(format!("{name}: {key} is {value}, the page has {written}, of\n{what}\n"));
                }
            }
            println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
            cells += 1;
        }
    }
    assert!(wrong.is_empty(), "tables of another program, make them again:\n{}", wrong.join("\n"));
    assert!(cells >= 10, "only {cells} cells");
}

#[test]
fn what_pages_say_of_recorded_figures_is_recorded() {
    let pages = pages();
    if pages.is_empty() {
        return;
    }
    let recorded = std::fs::read_to_string(root().join("docs/reproduce.json")).expect("recorded figures");
    let recorded: serde_json::Value = serde_json::from_str(&recorded).expect("JSON");
    let (mut claims, mut wrong) = (0, Vec::new());
    for (name, page) in pages {
        for comment in comments(&page, "recorded ") {
            let mut words = comment.split_whitespace();
            let (figure, claim) = words.next().and_then(|id| id.split_once('#')).expect("figure#claim");
            let of = &recorded["figures"][figure]["claims"][claim]["cases"];
            let means = of
                .as_array()
                .unwrap_or_else(|| panic!("{name}: {comment}"))
                .iter()
                .map(|case| case[1]["mean"].to_string());
            let (means, written): (Vec<String>, Vec<&str>) = (means.collect(), words.collect());
            let same =
                means.len() == written.len() && means.iter().zip(&written).all(|(mean, written)| is(mean, written));
            if !same {
                wrong.push(format!("{name}: {figure}#{claim} is {means:?}, the page has {written:?}"));
            }
            claims += 1;
        }
    }
    assert!(wrong.is_empty(), "figures were recorded again:\n{}", wrong.join("\n"));
    assert!(claims >= 5, "only {claims} claims");
}

#[test]
fn values_are_as_exact_as_they_are_written() {
    assert!(is("156.6449", "156.6") && is("156.6449", "157") && is("isolated", "isolated"));
    assert!(!is("156.6449", "156.65") && !is("156.6449", "156") && !is("shared", "isolated"));
    assert_eq!(comments("a\n<!-- cell\nb\ngives\nc = 1\n-->\n<!-- other -->", "cell\n"), ["b\ngives\nc = 1"]);
}
