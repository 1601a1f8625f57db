//! The pages are true: their commands run, and print what they say.
//!
//! `FLOWSTART_README=write cargo test -p flowstart --test readme` writes the output anew.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder to run in, with what commands of the README read.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (page, file) in [("tutorial.md", "mine.toml"), ("rough-paths.md", "my-path.toml")] {
        let text = std::fs::read_to_string(root().join("docs").join(page)).expect("the page");
        let first = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a file");
        std::fs::write(folder.path().join(file), first).expect("written");
    }
    let chirp = "sent,acked\n0,0.04\n0.001,0.041\n0.0018,0.0418\n0.0024,0.0426\n0.0028,0.0434\n";
    std::fs::write(folder.path().join("trace.csv"), chirp).expect("written");
    std::fs::create_dir(folder.path().join("docs")).expect("a folder for pictures");
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        root().canonicalize().expect("the root").join("scenarios"),
        folder.path().join("scenarios"),
    )
    .expect("a link");
    folder
}

fn run(folder: &Path, command: &str) -> Output {
    let words = shlex::split(command).unwrap_or_else(|| panic!("not a command: {command}"));
    let mut program = Command::cargo_bin("flowstart").expect("the program is built");
    program.current_dir(folder).env_remove("COLUMNS").env("LANG", "C.UTF-8").args(&words[1..]);
    program.output().expect("it runs")
}

/// How long it took differs from machine to machine.
fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" data packets in ") {
        Some((packets, _)) => format!("{packets} data packets in a moment"),
        None => line.trim_end().to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Blocks of a terminal: where the output of each command begins and ends (in lines), the command.
fn consoles(page: &str) -> Vec<(usize, usize, String)> {
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    let mut inside = false;
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            match line.strip_prefix("$ ") {
                Some(command) => found.push((number + 1, number + 1, command.to_owned())),
                None => {
                    if let Some(last) = found.last_mut() {
                        last.1 = number + 1;
                    }
                }
            }
        }
    }
    found
}

/// Pages that show what commands print.
const SHOWN: [&str; 3] = ["README.md", "docs/tutorial.md", "docs/chirps.md"];

/// Pages whose commands run.
const PAGES: [&str; 7] = [
    "README.md",
    "docs/chirps.md",
    "docs/fair-queuing.md",
    "docs/own-algorithm.md",
    "docs/quick-start.md",
    "docs/rough-paths.md",
    "docs/tutorial.md",
];

#[test]
fn what_the_pages_show_is_what_is_printed() {
    for page in SHOWN {
        shown_is_printed(&root().join(page));
    }
}

fn shown_is_printed(path: &Path) {
    let mut page: Vec<String> = std::fs::read_to_string(path).expect("the page").lines().map(str::to_owned).collect();
    let write = std::env::var("FLOWSTART_README").is_ok_and(|word| word == "write");
    let mut shown = 0;
    for (begin, end, command) in consoles(&page.join("\n")).into_iter().rev() {
        if !command.starts_with("flowstart ") {
            continue;
        }
        shown += 1;
        let folder = folder();
        let output = run(folder.path(), &command);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if write {
            page.splice(begin..end, printed.trim_end().lines().map(|line| line.trim_end().to_owned()));
        } else {
            let readme = page[begin..end].join("\n");
            assert_eq!(without_times(&readme), without_times(&printed), "{command}");
        }
    }
    assert!(shown >= 1);
    if write {
        std::fs::write(path, page.join("\n") + "\n").expect("the page can be written");
    }
}

/// What is not run here, and where it is tested instead.
const ELSEWHERE: [(&str, &str); 11] = [
    (" kernel ", "needs root: crates/kernel/tests"),
    (" emulate ", "needs namespaces: tests/emulate.rs"),
    (" --real ", "needs namespaces: tests/emulate.rs"),
    (" --quic ", "needs namespaces: tests/emulate.rs"),
    (" --worlds ", "needs namespaces: tests/emulate.rs"),
    (" frontier ", "minutes: tests/command_line.rs has small grids"),
    (" benchmark ", "minutes: tests/benchmark.rs"),
    (" reproduce ", "a step of ./check"),
    (" docs ", "writes the pages: their own tests"),
    (" doctor", "says something else on every machine"),
    (" man", "read by a pager"),
];

/// Every command in code: a line of a block, or between backticks, where a line may end in it.
fn commands(page: &str) -> Vec<String> {
    let (mut found, mut prose, mut code) = (Vec::new(), String::new(), false);
    for line in page.lines().chain(["```"]) {
        if line.starts_with("```") {
            found.extend(prose.split('`').skip(1).step_by(2).map(str::to_owned));
            (prose, code) = (String::new(), !code);
        } else if code {
            found.push(line.trim_start_matches("$ ").to_owned());
        } else {
            prose.push_str(line);
            prose.push(' ');
        }
    }
    found.retain(|text| text.starts_with("flowstart ") && text.split(' ').count() > 1);
    found
}

#[test]
fn the_commands_of_the_pages_run() {
    let pages = PAGES.map(|page| std::fs::read_to_string(root().join(page)).expect("the page"));
    let mut ran = 0;
    for command in pages.iter().flat_map(|page| commands(page)) {
        let spaced = format!("{command} ");
        // The name of a command, or a pattern.
        let named = ["flowstart run", "flowstart reproduce"].contains(&command.as_str()) || command.contains("FILE");
        if named || ELSEWHERE.iter().any(|(word, _)| spaced.contains(word)) {
            continue;
        }
        // As the README has it, but in seconds.
        let quick = command.split(" #").next().unwrap_or_default().replace("--runs 30", "--runs 2");
        let folder = folder();
        let output = run(folder.path(), &quick);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        ran += 1;
    }
    assert!(ran >= 30, "only {ran} commands ran");
}

#[test]
fn every_page_is_in_the_index() {
    let index = std::fs::read_to_string(root().join("docs/README.md")).expect("the index");
    let pages = std::fs::read_dir(root().join("docs")).expect("docs").map(|entry| entry.expect("a file").file_name());
    let pages = pages.map(|name| name.to_string_lossy().into_owned());
    let missing: Vec<String> = pages
        .filter(|name| name.ends_with(".md") && name != "README.md" && !index.contains(&format!("({name})")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn times_are_not_compared_and_all_else_is() {
    let line = "11.2 simulated seconds and 57831 data packets in 0.04 s (1.6 million packets/s)";
    assert_eq!(without_times(line), "11.2 simulated seconds and 57831 data packets in a moment");
    assert_eq!(without_times("a \nb\n\n"), "a\nb");
}
