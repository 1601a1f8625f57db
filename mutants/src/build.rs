//! Builds the tests with all changes of a sample in them; drops those that do not compile.

use crate::Result;
use crate::rewrite::{SWITCH, blame, rewrite};
use crate::run::Program;
use crate::tree::{Source, Tree};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Test programs and the changes that are in them.
pub(crate) struct Built {
    pub(crate) programs: Vec<Program>,
    pub(crate) alive: BTreeSet<u32>,
    pub(crate) dropped: BTreeSet<u32>,
}

/// Builds the tests of the crates with the changes `chosen`.
pub(crate) fn build(tree: &Tree, sources: &[Source], chosen: &[u32]) -> Result<Built> {
    let mut built = Built { programs: vec![], alive: chosen.iter().copied().collect(), dropped: BTreeSet::new() };
    for name in &tree.names {
        tree.write(name, Path::new("mutation_switch.rs"), SWITCH)?;
    }
    loop {
        for source in sources {
            let mut text = rewrite(&source.text, &source.sites, &built.alive);
            if source.path == Path::new("lib.rs") {
                text.push_str("\n#[allow(dead_code, missing_docs)]\nmod mutation_switch;\n");
            }
            tree.write(&source.name, &source.path, &text)?;
        }
        let (done, messages) = cargo(tree)?;
        if done {
            built.programs = messages.iter().filter_map(program).collect();
            return Ok(built);
        }
        let errors = || messages.iter().filter(|m| m["message"]["level"] == "error").map(|m| &m["message"]);
        let mut wrong: BTreeSet<u32> = errors().flat_map(|e| culprits(tree, e)).collect();
        wrong.retain(|id| built.alive.remove(id));
        if wrong.is_empty() {
            let texts: Vec<&str> = errors().filter_map(|e| e["rendered"].as_str()).take(3).collect();
            return Err(format!("the tests do not compile, whatever is left out:\n{}", texts.join("\n")));
        }
        built.dropped.extend(wrong);
        eprintln!("{} do not compile so far", built.dropped.len());
    }
}

/// Whether the build succeeded, and what cargo said.
fn cargo(tree: &Tree) -> Result<(bool, Vec<Value>)> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--no-run", "--lib", "--tests", "--all-features", "--message-format=json"])
        .args(tree.names.iter().chain(&tree.with).flat_map(|n| ["-p".into(), format!("flowstart-{n}")]))
        .current_dir(&tree.root)
        .env("CARGO_TARGET_DIR", &tree.target)
        // Warnings about changed code say nothing.
        .env("RUSTFLAGS", "--cap-lints=allow")
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !output.status.success() && !messages.iter().any(|m| m["reason"] == "compiler-message") {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok((output.status.success(), messages))
}

/// The test program that this message announces.
fn program(message: &Value) -> Option<Program> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let path = message["executable"].as_str().filter(|_| is_test)?.into();
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    Some(Program { path, folder })
}

/// The changes that an error comes from.
fn culprits(tree: &Tree, error: &Value) -> Vec<u32> {
    let spans = error["spans"].as_array().into_iter().flatten().filter(|span| span["is_primary"] == true);
    spans
        .filter_map(|span| {
            let text = std::fs::read_to_string(tree.root.join(span["file_name"].as_str()?)).ok()?;
            blame(&text, usize::try_from(span["byte_start"].as_u64()?).ok()?)
        })
        .collect()
}
