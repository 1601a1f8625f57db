//! The generated reference page is what the types say now.

use std::path::Path;

use flowstart_scenario::scenario_page;

#[test]
fn the_reference_page_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(committed == scenario_page(), "docs/scenario.md is old; run `cargo run --release -- docs` and commit it");
}
