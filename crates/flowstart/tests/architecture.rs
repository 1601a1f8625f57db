//! ARCHITECTURE.md says which crates there are and what they use; here that is held against the
//! manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

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
