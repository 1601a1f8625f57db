//! The reference page about files of papers' figures, generated from the types.

use flowstart_scenario::{GENERATED, describe_keys};

use super::file::schema;

/// The page about files of papers' figures, in Markdown.
#[must_use]
pub fn figures_page() -> String {
    let page = format!(
        "{GENERATED}\n# Files of figures\n\nWhat `flowstart reproduce` runs: a figure of a paper with its claims. `flowstart reproduce FILE.toml` takes files of \
         your own; those in `experiments/` are examples.\n\n\
         - `[scenario]` is what stands in a [scenario file](scenario.md).\n\
         - `[vary.FACTOR.LEVEL]` tables hold pieces of a scenario in which runs differ, and a `title` for tables and pictures. All combinations \
         of levels are run. A table is laid over a table key by key, and over each table of a list such as `[[flow]]`; anything else replaces.\n\
         - The rest is as follows.\n\n## Top level\n\n"
    );
    describe_keys(page, &schema())
}
