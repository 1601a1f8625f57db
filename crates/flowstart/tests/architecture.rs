//! ARCHITECTURE.md says which crates there are and what they use; here that is held against the
//! manifests. And what others made may be handed on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each crate uses itself, not for tests.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Crates of this workspace among the dependencies in a table of a manifest.
fn of_workspace(manifest: &toml::Table) -> impl Iterator<Item = String> {
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    dependencies.into_iter().flatten().filter_map(|(name, _)| Some(name.strip_prefix("flowstart-")?.to_owned()))
}

/// What the manifests say, for all platforms and features.
fn manifests() -> Uses {
    let folders = std::fs::read_dir(root().join("crates")).expect("readable");
    folders
        .map(|folder| {
            let folder = folder.expect("entry").path();
            let text = std::fs::read_to_string(folder.join("Cargo.toml")).expect("every crate has a manifest");
            let manifest: toml::Table = toml::from_str(&text).expect("a manifest is TOML");
            let mut uses: BTreeSet<String> = of_workspace(&manifest).collect();
            let targets = manifest.get("target").and_then(toml::Value::as_table);
            for (_, target) in targets.into_iter().flatten() {
                uses.extend(target.as_table().into_iter().flat_map(of_workspace));
            }
            (folder.file_name().expect("a name").to_string_lossy().into_owned(), uses)
        })
        .collect()
}

/// Everything that a crate's arrows lead to.
fn reached(uses: &Uses, from: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut open: Vec<&str> = vec![from];
    while let Some(next) = open.pop() {
        for one in uses.get(next).into_iter().flatten() {
            if all.insert(one.clone()) {
                open.push(one);
            }
        }
    }
    all
}

/// The arrows without those that others make unnecessary.
fn reduced(uses: &Uses) -> Uses {
    let needed = |all: &BTreeSet<String>| -> BTreeSet<String> {
        let over_another = |one: &String| all.iter().any(|other| reached(uses, other).contains(one));
        all.iter().filter(|one| !over_another(one)).cloned().collect()
    };
    uses.iter().map(|(name, all)| (name.clone(), needed(all))).filter(|(_, needed)| !needed.is_empty()).collect()
}

/// The section about crates.
fn section() -> String {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("readable");
    let (_, after) = text.split_once("## The crates\n").expect("there is a section about the crates");
    after.split("\n## ").next().unwrap_or_default().to_owned()
}

#[test]
fn the_table_has_every_crate_once_and_no_other() {
    let section = section();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut named: Vec<&str> = rows.map(|(name, _)| name).collect();
    named.sort_unstable();
    let manifests = manifests();
    assert_eq!(named, manifests.keys().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn the_arrows_are_those_of_the_manifests() {
    let section = section();
    let block = section.split("```").nth(1).expect("the arrows stand in a block");
    let arrows: Uses = block
        .lines()
        .filter_map(|line| line.split_once("->"))
        .map(|(name, used)| (name.trim().to_owned(), used.split(',').map(|one| one.trim().to_owned()).collect()))
        .collect();
    let right = reduced(&manifests());
    let picture = |uses: &Uses| -> String {
        let list = |used: &BTreeSet<String>| used.iter().cloned().collect::<Vec<_>>().join(", ");
        uses.iter().map(|(name, used)| format!("{name:13} -> {}\n", list(used))).collect()
    };
    assert!(arrows == right, "ARCHITECTURE.md has\n{}\nbut the manifests\n{}", picture(&arrows), picture(&right));
}

#[test]
fn no_crate_uses_itself_over_others() {
    let uses = manifests();
    for name in uses.keys() {
        assert!(!reached(&uses, name).contains(name), "{name} is in a cycle");
    }
}

/// What `deny.toml` allows.
fn allowed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("readable");
    let deny: toml::Table = toml::from_str(&text).expect("TOML");
    let list = deny["licenses"]["allow"].as_array().expect("a list");
    list.iter().filter_map(|one| Some(one.as_str()?.to_owned())).collect()
}

/// True if an SPDX expression (or the older list with slashes) can be satisfied with what is
/// allowed.
fn satisfied(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.trim();
    // The operators outside brackets, `OR` first: it binds less than `AND`.
    for (operator, any) in [(" OR ", true), ("/", true), (" AND ", false)] {
        let mut parts = vec![String::new()];
        let mut depth = 0;
        let mut rest = expression;
        while let Some(next) = rest.chars().next() {
            if depth == 0
                && let Some(after) = rest.strip_prefix(operator)
            {
                parts.push(String::new());
                rest = after;
                continue;
            }
            depth += i32::from(next == '(') - i32::from(next == ')');
            parts.last_mut().expect("at least one").push(next);
            rest = &rest[next.len_utf8()..];
        }
        if parts.len() > 1 {
            let mut each = parts.iter().map(|part| satisfied(part, allowed));
            return if any { each.any(|one| one) } else { each.all(|one| one) };
        }
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => satisfied(inner, allowed),
        None => allowed.contains(expression),
    }
}

#[test]
fn licences_are_read_as_spdx_means_them() {
    let allowed: BTreeSet<String> = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned).into();
    for good in
        ["MIT", "MIT OR GPL-3.0", "GPL-2.0/MIT", "(MIT OR GPL-3.0) AND Unicode-3.0", "MIT AND (GPL-3.0 OR Apache-2.0)"]
    {
        assert!(satisfied(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND GPL-2.0", "Apache-2.0 WITH X", "", "MITX"] {
        assert!(!satisfied(bad, &allowed), "{bad}");
    }
}

#[test]
fn what_the_program_is_built_from_may_be_handed_on_with_it() {
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(root()).output().expect("it is there");
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let compiler = run("rustc", &["-vV"]);
    let host = compiler.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    // Of this platform: the others' crates are not here.
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let metadata =
        run(&cargo, &["metadata", "--format-version", "1", "--locked", "--all-features", "--filter-platform", host]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    let allowed = allowed();
    let wrong: Vec<String> = packages
        .iter()
        .map(|package| (package["name"].to_string(), package["license"].as_str().unwrap_or("no licence")))
        .filter(|(_, license)| !satisfied(license, &allowed))
        .map(|(name, license)| format!("{name} ({license})"))
        .collect();
    assert!(packages.len() > 100 && wrong.is_empty(), "{} packages: {}", packages.len(), wrong.join(", "));
}

/// Modules of a crate by their paths, with their sources but for tests.
fn modules(source: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![source.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("readable") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let within = path.strip_prefix(source).expect("within").with_extension("");
            let mut parts: Vec<String> = within.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            let of_tests = |part: &String| part == "tests" || part == "testing" || part.ends_with("_tests");
            if path.extension().is_none_or(|extension| extension != "rs") || parts.iter().any(of_tests) {
                continue;
            }
            if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
                parts.pop();
            }
            let text = std::fs::read_to_string(&path).expect("a text");
            let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
            let code: Vec<&str> = code.take_while(|line| *line != "mod tests {").collect();
            found.insert(parts.join("::"), code.join("\n"));
        }
    }
    found
}

/// True if a piece of code has this word.
fn names(code: &str, word: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let (before, after) = (code[..at].chars().next_back(), code[at + word.len()..].chars().next());
        !before.is_some_and(goes_on) && !after.is_some_and(goes_on)
    })
}

/// What only tests name is a dependency of tests.
#[test]
fn every_crate_names_the_crates_that_it_depends_on() {
    let (mut needless, mut count) = (String::new(), 0);
    for (name, used) in manifests() {
        let source = root().join("crates").join(&name).join("src");
        let mut code = modules(&source).into_values().collect::<Vec<_>>().join("\n");
        // Modules whose files lie elsewhere.
        let elsewhere = code.lines().filter_map(|line| line.strip_prefix("#[path = \"")?.strip_suffix("\"]"));
        let elsewhere = elsewhere.map(|path| std::fs::read_to_string(source.join(path)).expect("a text"));
        code.extend(elsewhere.collect::<Vec<_>>());
        for one in used {
            count += 1;
            if !names(&code, &format!("flowstart_{}", one.replace('-', "_"))) {
                needless.push_str(&format!("{name} depends on {one}\n"));
            }
        }
    }
    assert!(count > 100, "only {count} dependencies were found");
    assert!(needless.is_empty(), "but its sources do not name it, or only in tests:\n{needless}");
}

#[test]
fn a_longer_word_is_another_one() {
    assert!(names("use flowstart_quic::A;", "flowstart_quic") && names("flowstart_quic", "flowstart_quic"));
    assert!(!names("use flowstart_quick_start::A; my_flowstart_quic()", "flowstart_quic"));
}

/// Paths that a piece of code names: `crate::a::{b, c::D}` is two.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &code[at..];
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let plain = &rest[..rest.find(|c| !is_path(c)).unwrap_or(rest.len())];
        match rest[plain.len()..].strip_prefix('{') {
            None => found.push(plain.to_owned()),
            // Deeper groups name what lies below their first word.
            Some(group) => {
                let (mut depth, mut word) = (1, String::new());
                for c in group.chars() {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 || (depth == 1 && c == ',') {
                        found.push(format!("{plain}{}", word.trim()));
                        word.clear();
                    } else if depth == 1 && c != '}' {
                        word.push(c);
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
        }
    }
    found
}

/// The module of a path that stands in the module `here`; the longest that there is.
fn target(modules: &BTreeMap<String, String>, here: &str, path: &str) -> Option<String> {
    let mut base: Vec<&str> = here.split("::").filter(|part| !part.is_empty()).collect();
    let mut rest = path.split("::").map(|part| part.split_whitespace().next().unwrap_or_default()).peekable();
    if rest.next_if_eq(&"crate").is_some() {
        base.clear();
    }
    while rest.next_if_eq(&"super").is_some() {
        base.pop();
    }
    base.extend(rest);
    while !base.is_empty() {
        let name = base.join("::");
        if modules.contains_key(&name) {
            return Some(name);
        }
        base.pop();
    }
    None
}

/// Names of the functions in a piece of code, in order.
fn functions(code: &str) -> Vec<&str> {
    code.lines()
        .filter_map(|line| line.trim_start().strip_prefix("fn "))
        .filter_map(|rest| rest.split(['(', '<']).next())
        .collect()
}

/// Who hands on what a trait says must not forget a method: what is forgotten does by default
/// nothing, and still compiles.
#[test]
fn every_method_of_the_traits_is_handed_on() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("readable");
    let forward = read("crates/control/src/forward.rs");
    for (of, name, macro_name, wrappers) in [
        (
            "crates/control/src/avoidance.rs",
            "CongestionAvoidance",
            "forward_avoidance",
            [("crates/avoidances/src/dispatch.rs", "Avoidance"), ("python/src/environment.rs", "Watched")],
        ),
        (
            "crates/control/src/start.rs",
            "FlowStart",
            "forward_start",
            [("crates/starts/src/dispatch.rs", "Start"), ("crates/race/src/contract.rs", "AskedTwice")],
        ),
    ] {
        let within = |text: &str, begin: &str, end: &str| -> String {
            let (_, after) = text.split_once(begin).unwrap_or_else(|| panic!("no {begin}"));
            after.split(end).next().unwrap_or_default().to_owned()
        };
        let of_trait = within(&read(of), &format!("pub trait {name} {{\n"), "\n}\n");
        let of_macro = within(&forward, &format!("macro_rules! {macro_name} {{\n"), "\n}\n");
        let (mut wanted, mut handed_on) = (functions(&of_trait), functions(&of_macro));
        wanted.sort_unstable();
        handed_on.sort_unstable();
        assert!(wanted.len() > 15, "{wanted:?}");
        assert_eq!(handed_on, wanted, "{macro_name}");
        for (file, wrapper) in wrappers {
            let body = within(&read(file), &format!("impl {name} for {wrapper} {{\n"), "\n}\n");
            assert!(body.trim_start().starts_with(&format!("{macro_name}!(")), "{file}: {body}");
        }
    }
}

/// What a file needs does not need that file. A folder's first file and those in it are one.
#[test]
fn there_are_no_circles_between_files() {
    let mut circles = String::new();
    let mut arrows = 0;
    for folder in std::fs::read_dir(root().join("crates")).expect("readable") {
        let folder = folder.expect("entry").path();
        let modules = modules(&folder.join("src"));
        let mut uses = Uses::new();
        for (name, code) in modules.iter().filter(|(name, _)| !name.is_empty()) {
            let targets = paths(code).into_iter().filter_map(|path| target(&modules, name, &path));
            let within = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}::"));
            let others = targets.filter(|other| !within(other, name) && !within(name, other));
            uses.insert(name.clone(), others.collect());
        }
        arrows += uses.values().map(BTreeSet::len).sum::<usize>();
        for name in uses.keys() {
            if reached(&uses, name).contains(name) {
                circles.push_str(&format!("{}: {name} -> {:?}\n", folder.display(), uses[name]));
            }
        }
    }
    assert!(arrows > 500, "only {arrows} arrows were found");
    assert!(circles.is_empty(), "files that need one another:\n{circles}");
}

#[test]
fn paths_are_found_in_groups_and_in_the_code() {
    let code = "use crate::a::{self, B, c::{D, E}};\nuse super::f;\nlet x = crate::g::h();\nmycrate::no();";
    let mut found = paths(code);
    found.sort();
    assert_eq!(found, ["crate::a::B", "crate::a::c::", "crate::a::self", "crate::g::h", "super::f"]);
}

/// The file that a line takes into the program, or the beginning of its name.
fn taken_in(line: &str) -> Option<&str> {
    let call = ["include_str!(", "include_bytes!(", "include_dir!("].iter().find_map(|call| line.split_once(call))?;
    // Only documentation tests see these, which are no part of a package's program.
    let name = call.1.split('"').nth(1)?;
    // What a build script has made is where the build is.
    (!line.trim_start().starts_with("#[doc") && name != "OUT_DIR").then_some(name)
}

/// Who builds a package has nothing of the repository but its folder.
#[test]
fn no_crate_takes_in_files_from_outside_of_it() {
    let mut count = 0;
    for member in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = member.unwrap().path();
        let mut waiting = vec![folder.join("src")];
        while let Some(place) = waiting.pop() {
            if place.is_dir() {
                waiting.extend(std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()));
            } else if place.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&place).unwrap();
                for name in text.lines().filter_map(taken_in) {
                    let from = match name.strip_prefix("$CARGO_MANIFEST_DIR/") {
                        Some(inside) => folder.join(inside),
                        None => place.parent().unwrap().join(name),
                    };
                    let real = from.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", from.display()));
                    let folder = folder.canonicalize().unwrap();
                    assert!(real.starts_with(&folder), "{} takes in {name}", place.display());
                    count += 1;
                }
            }
        }
    }
    assert!(count > 10, "{count}");
}

/// The Python package's workspace optimises the crates that it shares as this one does.
#[test]
fn everyday_builds_of_python_are_optimised_alike() {
    let read = |file: &str| -> toml::Table {
        toml::from_str(&std::fs::read_to_string(root().join(file)).expect("readable")).expect("TOML")
    };
    let levels = |manifest: &toml::Table| -> BTreeMap<String, toml::Value> {
        let packages = manifest["profile"]["everyday"]["package"].as_table().expect("settings of packages").clone();
        packages.into_iter().map(|(name, settings)| (name, settings["opt-level"].clone())).collect()
    };
    let lock = read("python/Cargo.lock");
    let known: BTreeSet<&str> =
        lock["package"].as_array().expect("packages").iter().filter_map(|package| package["name"].as_str()).collect();
    let mut expected = levels(&read("Cargo.toml"));
    expected.retain(|name, _| name == "*" || known.contains(name.as_str()));
    assert!(expected.len() > 20);
    assert_eq!(levels(&read("python/Cargo.toml")), expected, "python/Cargo.toml");
}
