//! The generated reference page is what the types say now.

use std::path::Path;

use flowstart_reproduce::figures_page;

#[test]
fn the_reference_page_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures.md");
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    assert!(committed == figures_page(), "docs/figures.md is old; run `cargo run --release -- docs` and commit it");
}
