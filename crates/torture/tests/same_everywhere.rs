//! Results do not depend on the machine's mathematical library: what is not exact by IEEE 754 comes
//! from the crate `libm`.

use std::path::{Path, PathBuf};

/// Methods of floats that the platform may round as it likes. Square roots, and the four
/// operations, are exact everywhere.
const FORBIDDEN: &[&str] = &[
    "exp", "exp2", "exp_m1", "ln", "ln_1p", "log2", "log10", "powf", "powi", "cbrt", "hypot", "sin", "cos", "tan",
    "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "mul_add",
];

/// Sources whose numbers are in no result: they place marks in pictures, or wait in real time.
const PRESENTATION: &[&str] = &[
    "crates/report/src/",
    "crates/pages/src/quick_start.rs",
    "crates/pages/src/reproduce/page.rs",
    "crates/emulator/src/traffic/mod.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of_tests = name == "tests" || name.ends_with("tests.rs") || name == "testing.rs";
        if path.is_dir() && !of_tests {
            sources(&path, found);
        } else if name.ends_with(".rs") && !of_tests {
            found.push(path);
        }
    }
}

/// The function of the platform that is called in this line, if one is.
fn called(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    let named = |name: &&&str| {
        [format!(".{name}("), format!("f64::{name}"), format!("f32::{name}")].iter().any(|call| {
            code.match_indices(call.as_str()).any(|(at, _)| {
                let behind = code[at + call.len()..].chars().next();
                call.ends_with('(') || !behind.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
            })
        })
    };
    // `.log()` is an axis; with a base it is a logarithm.
    let logarithm = code.match_indices(".log(").any(|(at, call)| !code[at + call.len()..].starts_with(')'));
    FORBIDDEN.iter().find(named).copied().or(logarithm.then_some("log"))
}

/// Sources that may ask for the time of day: the kernel stamps packets with it; a record says on
/// which day it was made and a log of QUIC carries it in its name, which nothing is computed from;
/// what is known of a real path grows old while no program runs.
const TIME_OF_DAY: &[&str] = &[
    "crates/emulator/src/clock.rs",
    "crates/flowstart/src/quic/kept.rs",
    "crates/flowstart/src/reproduce/kept.rs",
    "crates/quic/src/qlog.rs",
    "crates/quic/src/system.rs",
];

#[test]
fn what_is_exempt_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for place in PRESENTATION.iter().chain(TIME_OF_DAY) {
        assert!(root.join(place).exists(), "{place} has moved: it is exempt from nothing, and its new place fails");
    }
}

#[test]
fn nothing_that_is_computed_or_waited_for_depends_on_the_time_of_day() {
    let faults = found(TIME_OF_DAY, |line| {
        let code = line.split("//").next().unwrap_or_default();
        ["SystemTime", "CLOCK_REALTIME", "chrono::", "UNIX_EPOCH"].into_iter().find(|clock| code.contains(clock))
    });
    assert!(faults.is_empty(), "a clock that is set would change results:\n{faults}");
}

/// Lines of all sources but these in which something is found, with their places.
fn found(exempt: &[&str], what: impl Fn(&str) -> Option<&'static str>) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for member in std::fs::read_dir(root.join("crates")).unwrap() {
        let folder = member.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    sources(&root.join("python/src"), &mut files);
    files.sort();
    assert!(files.len() > 100, "only {} sources were found", files.len());
    let mut faults = String::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().into_owned();
        if exempt.iter().any(|allowed| name.starts_with(allowed)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in without_tests(&text) {
            if let Some(found) = what(line) {
                faults.push_str(&format!("{name}:{number}: {found}\n"));
            }
        }
    }
    faults
}

/// The lines of a source, from 1, but for a module of tests at its end. What is marked as a test's
/// before that is an item or names a file: a few lines.
fn without_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let tests = |at: usize| {
        let next = lines[at + 1..].iter().find(|line| !line.starts_with("#["));
        lines[at] == "#[cfg(test)]" && next.is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    let end = (0..lines.len()).find(|at| tests(*at)).unwrap_or(lines.len());
    lines.into_iter().take(end).enumerate().map(|(at, line)| (at + 1, line))
}

#[test]
fn only_a_module_of_tests_at_the_end_is_left_out() {
    let text = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nfn fault() {}\nx.exp();\n#[cfg(test)]\nmod tests {\nx.ln();";
    let read: Vec<(usize, &str)> = without_tests(text).filter(|(_, line)| called(line).is_some()).collect();
    assert_eq!(read, [(5, "x.exp();")]);
}

#[test]
fn what_results_are_made_of_calls_no_mathematical_function_of_the_platform() {
    let faults = found(PRESENTATION, called);
    assert!(faults.is_empty(), "results would differ from machine to machine; use libm's:\n{faults}");
}

#[test]
fn the_search_finds_calls_and_nothing_else() {
    for (line, function) in [
        ("let y = x.exp();", Some("exp")),
        ("values.iter().map(f64::ln)", Some("ln")),
        ("x.log(10.0)", Some("log")),
        ("2.0_f64.powi(3)", Some("powi")),
        ("Axis::new(\"Size\", \"kB\").log()", None),
        ("libm::exp(x) // not x.exp()", None),
        ("self.experiment(x).expect(\"\")", None),
        ("f64::cosine", None),
    ] {
        assert_eq!(called(line), function, "{line}");
    }
}
