//! What the comparisons with the kernel have in common: records written, read back, and shown in
//! the form that is asked for.

use std::io::{Read as _, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use flowstart_real::ImpossibleRecord;
use flowstart_report::{Page, Section, Table};

use crate::args::PageArgs;
use crate::output::{Done, Failure, print, print_json, write_file};
use crate::pages;
use crate::session::command_line;

/// The ending of files that are compressed with gzip.
const GZIP: &str = "gz";
/// What such files begin with (RFC 1952 section 2.3.1).
const GZIP_BEGINS: [u8; 2] = [0x1f, 0x8b];
/// Bytes of the text of a record at most: more than any has, and a small file may hold much more.
const MOST: u64 = 1 << 30;

/// Writes a record, compressed if the file's name ends in `.gz`: the same bytes at any time.
pub(super) fn write(file: &Path, record: &impl Serialize) -> Done {
    let text = serde_json::to_string_pretty(record).map_err(Failure::usage)? + "\n";
    if file.extension().is_none_or(|ending| ending != GZIP) {
        return write_file(file, text.as_bytes());
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    write_file(file, &compressed.map_err(|error| Failure::file("write", file, &error))?)
}

/// The text of a file, compressed or not.
fn text(file: &Path) -> std::io::Result<String> {
    let bytes = std::fs::read(file)?;
    let mut text = String::new();
    if bytes.starts_with(&GZIP_BEGINS) {
        MultiGzDecoder::new(&bytes[..]).take(MOST).read_to_string(&mut text)?;
    } else {
        (&bytes[..]).read_to_string(&mut text)?;
    }
    Ok(text)
}

/// Reads the record that a command made, if `check` finds nothing in it that cannot be.
pub(super) fn read<R: DeserializeOwned>(
    file: &Path,
    command: &str,
    check: impl FnOnce(&R) -> Result<(), ImpossibleRecord>,
) -> Result<R, Failure> {
    let text = text(file).map_err(|error| Failure::file("read", file, &error))?;
    let refuse = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("{} is not a record of {command}: {error}", file.display()))
    };
    let record = serde_json::from_str(&text).map_err(|error| refuse(&error))?;
    check(&record).map_err(|error| refuse(&error))?;
    Ok(record)
}

/// Where the numbers of a record come from.
pub(super) struct Origin<'a> {
    pub(super) flowstart: &'a str,
    pub(super) kernel: &'a str,
    pub(super) cores: usize,
    pub(super) runs: u64,
    /// They were read, not measured now.
    pub(super) kept: bool,
}

/// A record in all its forms.
pub(super) struct Forms {
    pub(super) title: &'static str,
    pub(super) document: Value,
    pub(super) markdown: String,
    pub(super) tables: Vec<Table>,
    pub(super) sentences: Vec<String>,
}

impl Forms {
    /// Shows the form that is asked for, and writes the pages.
    pub(super) fn show(self, origin: &Origin<'_>, page: &PageArgs, json: bool, markdown: bool) -> Done {
        let written = if page.pages.is_empty() { Ok(()) } else { pages::write(&self.page(origin), page) };
        if json {
            print_json(&self.document)?;
        } else if markdown {
            print(&self.markdown)?;
        } else {
            let terminal = crate::output::terminal();
            let tables: String = self.tables.iter().map(|table| format!("{}\n", table.to_terminal(terminal))).collect();
            print(&format!("{tables}{}\n", self.sentences.join("\n")))?;
        }
        written
    }

    fn page(&self, origin: &Origin<'_>) -> Page {
        let read = "From a record; nothing was run for this page.";
        Page {
            title: self.title.to_owned(),
            command: command_line(),
            provenance: vec![
                ("kernel".to_owned(), format!("Linux {}", origin.kernel)),
                ("runs".to_owned(), origin.runs.to_string()),
                ("flowstart".to_owned(), origin.flowstart.to_owned()),
                ("cores".to_owned(), origin.cores.to_string()),
            ],
            summary: self.sentences.clone(),
            sections: vec![Section { tables: self.tables.clone(), ..Section::default() }],
            footnotes: origin.kept.then(|| read.to_owned()).into_iter().collect(),
            ..Page::default()
        }
    }
}
