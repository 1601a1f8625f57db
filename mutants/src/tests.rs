//! The rewriting itself, held against small programs.

use crate::rewrite::{SWITCH, blame, rewrite};
use crate::sample::{at, draw, number, wilson};
use crate::sites::{Site, find};
use crate::tree::Source;
use std::collections::BTreeSet;
use std::process::Command;

/// The places of `source`, their changes numbered from 1.
fn sites(source: &str, constants: bool) -> Vec<Site> {
    let mut sites = find(source, constants).unwrap().sites;
    let changes = sites.iter_mut().flat_map(|s| &mut s.changes);
    changes.zip(1..).for_each(|(change, id)| change.id = id);
    sites
}

fn names(source: &str, constants: bool) -> Vec<String> {
    sites(source, constants).into_iter().flat_map(|s| s.changes).map(|c| c.name).collect()
}

fn all(sites: &[Site]) -> BTreeSet<u32> {
    sites.iter().flat_map(|s| &s.changes).map(|c| c.id).collect()
}

#[test]
fn every_operator_has_its_changes() {
    assert_eq!(names("fn f(a: u8) { g(a < 3) }", false), ["return ()", "< became ==", "< became >", "< became <="]);
    assert_eq!(names("fn f() { a += b }", false), ["return ()", "+= became -=", "+= became *="]);
    assert_eq!(names("fn f() -> bool { !a }", false), ["return true", "return false", "! left out"]);
    let choice = "fn f() -> u8 { match a { 1 => b, n if n > c => d, _ => e } }";
    let expected = ["return 0", "return 1", "arm left out", "guard became true", "guard became false"];
    assert_eq!(names(choice, false)[..5], expected);
    assert_eq!(names("fn f() -> E { 7_u64 + 0.5 }", true)[3..], ["7_u64 became 8", "0.5 became 1.5"]);
}

#[test]
fn a_body_that_returns_the_value_anyway_is_no_mutant() {
    assert_eq!(names("fn f() -> bool { true }", false), ["return false"]);
    assert_eq!(names("impl Default for E { fn default() -> Self { E::new() } }", false), [""; 0]);
}

#[test]
fn code_for_tests_constants_and_insides_of_macros_stay() {
    for source in [
        "#[cfg(test)] mod tests { fn f() -> u8 { 1 + 2 } }",
        "#[test] fn f() { g(1 + 2); }",
        "const A: u8 = 1 + 2; enum E { A = 1 + 2 }",
        "const fn f() -> u8 { 1 + 2 }",
        "impl fmt::Debug for E { fn fmt(&self) -> bool { 1 < 2 } }",
    ] {
        assert_eq!(names(source, true), [""; 0], "{source}");
    }
    assert_eq!(names("fn f() { assert!(a < b); }", true), ["return ()"]);
}

#[test]
fn a_place_is_a_line_a_file_or_a_folder() {
    let source = |path: &str| Source {
        name: "network".into(),
        path: path.into(),
        text: "fn f() {\n    g(a < 3);\n    g(!b);\n}\n".into(),
        sites: find("fn f() {\n    g(a < 3);\n    g(!b);\n}\n", false).unwrap().sites,
    };
    let mut sources = [source("queue/red.rs"), source("queue/pie.rs"), source("link.rs")];
    let each = number(&mut sources) / 3;
    let of = |places: &[&str]| at(&sources, &places.iter().map(|p| (*p).to_string()).collect::<Vec<_>>());
    assert_eq!(of(&["network/queue/red.rs:2"]), Ok(vec![2, 3, 4]));
    assert_eq!(of(&["network/queue/red.rs"]).unwrap().len() as u32, each);
    assert_eq!(of(&["network/queue", "network/queue/red.rs:2"]).unwrap().len() as u32, 2 * each);
    assert!(of(&["network/queue/r"]).is_err() && of(&["network/link.rs:1", "network/link.rs:20"]).is_err());
}

#[test]
fn modules_for_tests_are_known() {
    let found = find("mod a; mod b { #[cfg(test)] mod c; } #[cfg(test)] mod tests;", false).unwrap();
    assert_eq!(found.for_tests, [vec!["b", "c"], vec!["tests"]]);
}

/// A program that prints one number, which every change in `f` alters in its own way.
const PROGRAM: &str = r#"
fn f(a: i64, b: i64) -> i64 {
    // `-` must bind what `*` bound: 20 - 3 - 4 has its left operand first.
    let difference = a - b - 4; // and a comment must not swallow a bracket
    let kind = match a { 20 if b == 3 && difference > 0 => 100, 7 => 200, _ => 300 };
    difference + kind * -b
}
fn main() { println!("{} {}", f(20, 3), f(7, 3)); }
"#;

#[test]
fn with_all_changes_off_a_program_is_what_it_was_and_each_change_does_what_it_says() {
    let sites = sites(PROGRAM, true);
    let f: Vec<Site> = sites.into_iter().filter(|s| s.function == "f").collect();
    let folder = std::env::temp_dir().join(format!("flowstart-mutants-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rewritten =
        rewrite(PROGRAM, &f, &all(&f)) + &format!("mod mutation_switch {{ {SWITCH} }}").replace("//!", "//");
    std::fs::write(folder.join("program.rs"), rewritten).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "--cap-lints=allow", "-o", "program", "program.rs"])
        .current_dir(&folder)
        .output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let printed = |id: u32| {
        let output = Command::new(folder.join("program")).env("FLOWSTART_MUTANT", id.to_string()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    assert_eq!(printed(0), "-287 -600");
    let changed = |text: &str, at: usize| {
        let mut changes = f.iter().flat_map(|s| &s.changes).filter(|c| c.name == text);
        printed(changes.nth(at).unwrap_or_else(|| panic!("no change {text:?}")).id)
    };
    assert_eq!(changed("return 1", 0), "1 1");
    assert_eq!(changed("return -1", 0), "-1 -1");
    // The outer of the two: (20 - 3) / 4 = 4 and (7 - 3) / 4 = 1.
    assert_eq!(changed("- became /", 0), "-296 -599");
    // The inner: 20 / 3 - 4 = 2, 7 / 3 - 4 = -2.
    assert_eq!(changed("- became /", 1), "-298 -602");
    assert_eq!(changed("guard became false", 0), "-887 -600");
    assert_eq!(changed("arm left out", 0), "-287 -900");
    assert_eq!(changed("&& became ||", 0), "-287 -600");
    assert_eq!(changed("== became !=", 0), "-887 -600");
    assert_eq!(changed("- left out", 0), "313 600");
    assert_eq!(changed("+ became -", 0), "313 600");
    assert_eq!(changed("200 became 201", 0), "-287 -603");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn only_what_is_wanted_is_rewritten() {
    let source = "fn f(a: u8) -> bool { a < 3 }";
    let sites = sites(source, false);
    assert_eq!(rewrite(source, &sites, &BTreeSet::new()), source);
    let one = rewrite(source, &sites, &BTreeSet::from([4]));
    assert!(one.contains("if crate::mutation_switch::on(4) { (a ) > ( 3) } else { (a ) < ( 3) }"), "{one}");
    assert!(!one.contains("on(3)") && !one.contains("on(1)"), "{one}");
}

#[test]
fn an_error_is_traced_to_the_innermost_change_around_it() {
    let text =
        "/*<*/(if crate::mutation_switch::on(7) { /*<*/crate::mutation_switch::on(3) x/*>*/ y } else { z })/*>*/ w";
    let at = |what: &str| blame(text, text.rfind(what).unwrap());
    assert_eq!([at("x"), at("y"), at("z"), at("w")], [Some(3), Some(7), Some(7), Some(3)]);
    assert_eq!(blame("fn f() {}", 5), None);
}

#[test]
fn a_seed_draws_one_sample_without_repetition() {
    assert_eq!(draw(1000, 60, 5), draw(1000, 60, 5));
    assert_ne!(draw(1000, 60, 5), draw(1000, 60, 6));
    assert_eq!(draw(1000, 60, 5).len(), 60);
    assert_eq!(draw(1000, 60, 5)[..20], draw(1000, 20, 5));
    let mut few = draw(3, 60, 5);
    few.sort();
    assert_eq!(few, [1, 2, 3]);
}

/// Newcombe, "Two-Sided Confidence Intervals for the Single Proportion", 1998, table I, method 3.
#[test]
fn intervals_are_those_of_newcombe() {
    for (hits, tried, low, high) in
        [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
    {
        let found = wilson(hits, tried);
        assert!((found.0 - low).abs() < 1e-4 && (found.1 - high).abs() < 1e-4, "{hits} of {tried}: {found:?}");
    }
}
