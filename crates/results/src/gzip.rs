//! Compression with gzip (RFC 1952) in parts.

use std::fmt;
use std::io::{Result, Write};

use flate2::{Compress, Compression, Crc, FlushCompress};

/// Of 22.5 MB of packets higher levels spare one hundredth, and take two to three times as long.
const LEVEL: u32 = 3;
/// Deflate, no flags, no time, no extra flags, an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// A part of a text, compressed: blocks of deflate (RFC 1951) that end at a whole byte, so that
/// others can follow.
pub(super) struct Packed {
    blocks: Vec<u8>,
    /// Of what it was made from, and its length in bytes.
    crc: Crc,
    length: usize,
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("bytes", &self.blocks.len()).finish_non_exhaustive()
    }
}

impl Packed {
    pub(super) fn new(text: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(text);
        Self { blocks: deflate(text, FlushCompress::Sync), crc, length: text.len() }
    }
}

/// Writes parts of a text as one member.
///
/// # Errors
/// If `out` cannot be written to.
pub(super) fn write_member<'a>(parts: impl IntoIterator<Item = &'a Packed>, out: &mut impl Write) -> Result<()> {
    out.write_all(&HEADER)?;
    let (mut all, mut length) = (Crc::new(), 0);
    for part in parts {
        out.write_all(&part.blocks)?;
        all.combine(&part.crc);
        length += part.length;
    }
    out.write_all(&deflate(&[], FlushCompress::Finish))?;
    out.write_all(&all.sum().to_le_bytes())?;
    // Modulo 2^32, as the format has it.
    out.write_all(&(length as u32).to_le_bytes())
}

fn deflate(bytes: &[u8], flush: FlushCompress) -> Vec<u8> {
    let mut state = Compress::new(Compression::new(LEVEL), false);
    let mut out = Vec::with_capacity(bytes.len() / 4 + 64);
    loop {
        let read = state.total_in() as usize;
        state.compress_vec(&bytes[read..], &mut out, flush).expect("bytes can always be compressed");
        // Room that is left says that nothing was held back.
        if out.len() < out.capacity() {
            return out;
        }
        out.reserve(out.capacity());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use proptest::prelude::*;
    use std::io::Read as _;

    /// As one part, and as three.
    fn compressed(content: &[u8]) -> Vec<u8> {
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        write_member([&Packed::new(content)], &mut whole).unwrap();
        let packed: Vec<Packed> = content.chunks(content.len() / 3 + 1).map(Packed::new).collect();
        write_member(&packed, &mut parts).unwrap();
        assert!(read_back(&parts) == content);
        whole
    }

    /// One member, as readers expect that stop at its end.
    fn read_back(bytes: &[u8]) -> Vec<u8> {
        let (mut rest, mut text) = (bytes, Vec::new());
        GzDecoder::new(&mut rest).read_to_end(&mut text).unwrap();
        assert!(rest.is_empty());
        text
    }

    #[test]
    fn short_and_long_texts_read_back() {
        for size in [0, 1, (1 << 16) - 1, 1 << 16, 3_000_017] {
            let content: Vec<u8> = (0..size).map(|n| (n / 7 % 251) as u8).collect();
            assert!(read_back(&compressed(&content)) == content, "{size}");
        }
    }

    proptest! {
        #[test]
        fn what_cannot_be_compressed_reads_back(content in proptest::collection::vec(any::<u8>(), 0..9000)) {
            prop_assert_eq!(read_back(&compressed(&content)), content);
        }
    }

    #[test]
    fn many_random_bytes_read_back() {
        let mut state = 1_u64;
        let content: Vec<u8> = (0..2_000_005)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        assert!(read_back(&compressed(&content)) == content);
    }
}
