//! Cells and rows as text, in CSV.

use std::io::{self, Write as _};

/// Appends a text. False if it needs quotes.
#[inline]
pub(super) fn write_text(text: &str, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(text.as_bytes());
    !text.bytes().any(|byte| matches!(byte, b'"' | b',' | b'\r' | b'\n'))
}

/// Appends a flag.
#[inline]
pub(super) fn write_flag(flag: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if flag { b"true" } else { b"false" });
}

/// Many are numbers of runs, flows and links, of a digit each.
pub(super) fn write_whole(n: i64, out: &mut Vec<u8>) {
    if (0..10).contains(&n) {
        return out.push(b'0' + n as u8);
    }
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// A number as `Display` writes it: the shortest decimal that reads back to it. Most are times in
/// whole nanoseconds, for which an integer division finds the same text faster: decimals of at most
/// 15 digits are distinct numbers, so none that is shorter could read back to the same. Zero is in
/// every row: what an application that reads at once waits.
pub(super) fn write_number(n: f64, out: &mut Vec<u8>) {
    const BILLION: u64 = 1_000_000_000;
    if n.to_bits() == 0 {
        return out.push(b'0');
    }
    let scaled = n * BILLION as f64;
    let billionths = (scaled + 0.5) as u64;
    let exact = (billionths as f64 / BILLION as f64).to_bits() == n.to_bits();
    if !(1.0..1e15).contains(&scaled) || !exact {
        // Writing into memory does not fail.
        let _ = write!(out, "{n}");
        return;
    }
    write_parts(billionths, BILLION, out);
}

/// The same for `n` of so many to one, of which the number is the quotient: a power of ten.
#[inline]
pub(super) fn write_quotient(n: u64, of: u64, out: &mut Vec<u8>) {
    if n < 1_000_000_000_000_000 { write_parts(n, of, out) } else { write_number(n as f64 / of as f64, out) }
}

/// A number of at most 15 digits, in parts of which so many, a power of ten, are one.
#[inline]
fn write_parts(parts: u64, of: u64, out: &mut Vec<u8>) {
    let rest = parts % of;
    write_whole((parts / of) as i64, out);
    if rest > 0 {
        // A one before the digits, where the point comes, keeps their zeros.
        let point = out.len();
        write_whole((of + rest) as i64, out);
        out[point] = b'.';
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// Appends a row of so many cells, each written by `write`, which says whether it needs no quotes.
/// Only texts may need them, and few do: those rows are the library's.
#[inline]
pub(super) fn write_row(
    cells: usize,
    write: impl Fn(usize, &mut Vec<u8>) -> bool,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    /// Bytes that are expected of a cell.
    const CELL: usize = 16;
    let began = out.len();
    let mut plain = cells > 1;
    out.reserve(cells * CELL);
    for cell in 0..cells {
        plain &= write(cell, out);
        out.push(b',');
    }
    if plain {
        if let Some(comma) = out.last_mut() {
            *comma = b'\n';
        }
        return Ok(());
    }
    out.truncate(began);
    let mut record = csv::ByteRecord::new();
    let mut text = Vec::new();
    for cell in 0..cells {
        text.clear();
        write(cell, &mut text);
        record.push_field(&text);
    }
    csv::Writer::from_writer(out).write_byte_record(&record).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(n: f64) -> String {
        let mut out = Vec::new();
        write_number(n, &mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_display_writes_them(nanos in 0_u64..2_000_000_000_000_000, any: f64, some in -1e7..1e7) {
            for n in [nanos as f64 / 1e9, nanos as f64 / 1e3, nanos as f64, any, some, -(nanos as f64 / 1e9)] {
                prop_assert_eq!(written(n), n.to_string());
            }
        }
    }

    #[test]
    fn zero_and_the_ends_of_the_fast_way_are_right() {
        for n in [0.0, -0.0, 1e-9, 1e-10, 0.1, 0.3, 1.0, 999_999.999_999_999, 1e6, 1e21, f64::MAX, f64::MIN_POSITIVE] {
            assert_eq!(written(n), n.to_string());
        }
    }
}
