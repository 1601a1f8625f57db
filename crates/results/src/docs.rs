//! The reference page about result tables, generated from their declaration.

use std::fmt::Write as _;

use flowstart_scenario::GENERATED;

use super::schema::{SCHEMA_VERSION, tables};

/// The page about result tables, in Markdown.
#[must_use]
pub fn results_page() -> String {
    let mut page = format!(
        "{GENERATED}\n# Result tables\n\nSchema version {SCHEMA_VERSION}. `flowstart run` writes them as CSV and JSON, with `--parquet` as Apache Parquet too \
         (if it was built with the feature `parquet`). \
         A missing value is an empty cell (CSV), `null` (JSON, Parquet). `results.json` has all tables but `packets`, \
         which would be most of it; that is in `packets.csv`, or with `--gzip` in `packets.csv.gz`: 30 s at 100 Mbit/s \
         are 22.5 MB or 3.7 MB. pandas, polars and DuckDB read the latter as it is.\n\n\
         Two more files are beside the tables: `effective.toml` is the scenario with every default filled in, and \
         gives the same results again; `provenance.json` says what made them (version, scenario hash, seed, and \
         whether all files are there).\n"
    );
    for table in tables() {
        // Writing into a String does not fail.
        let _ = write!(page, "\n## {}\n\n{}\n\n", table.name, table.meaning);
        page.push_str("| column | kind | unit | measured at | meaning |\n|---|---|---|---|---|\n");
        for column in table.columns {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} | {} |",
                column.name,
                column.kind.name(),
                column.unit,
                column.place,
                column.meaning
            );
        }
    }
    page
}
