//! Parts of a table's text.

use std::io::{Error, Result, Write};
use std::sync::{Arc, OnceLock};

use flowstart_parallel::{Cancel, in_parallel};

use super::gzip::{Packed, write_member};

/// Some whole rows as CSV, and the same compressed once it was asked for.
#[derive(Debug)]
pub(crate) struct CsvPortion {
    text: Vec<u8>,
    packed: OnceLock<Packed>,
}

impl CsvPortion {
    pub(crate) fn new(text: Vec<u8>) -> Self {
        Self { text, packed: OnceLock::new() }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn packed(&self) -> &Packed {
        self.packed.get_or_init(|| Packed::new(&self.text))
    }
}

/// Writes portions of a text compressed, on all cores: the same bytes at any time and on any
/// machine, but others for other portions.
///
/// # Errors
/// If `out` cannot be written to, or no threads can be started.
pub(super) fn compress(content: &[Arc<CsvPortion>], out: &mut impl Write) -> Result<()> {
    let pack = |number: usize| {
        content[number].packed();
    };
    in_parallel(content.len(), None, &Cancel::default(), |_| {}, pack).map_err(Error::other)?;
    write_member(content.iter().map(|portion| portion.packed()), out)
}
