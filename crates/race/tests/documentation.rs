//! The generated reference page is what the registry says now.

use std::path::Path;

use flowstart_race::{measures, measures_page};

#[test]
fn the_reference_page_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measures.md");
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(committed == measures_page(), "docs/measures.md is old; run `cargo run --release -- docs` and commit it");
}

#[test]
fn every_registered_measure_is_on_the_page() {
    let page = measures_page();
    for item in measures::REGISTRY {
        // Parameters stand in the middle of names.
        let begin = item.name.split("{}").next().unwrap_or_default();
        assert!(page.contains(&format!("| `{begin}")), "{}", item.name);
        assert!(!item.help.is_empty(), "{}", item.name);
    }
}
