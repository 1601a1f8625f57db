//! Compression with gzip (RFC 1952) on all cores.

use std::io::{Error, Result, Write};

use flate2::{Compress, Compression, Crc, FlushCompress};
use flowstart_parallel::{Cancel, in_parallel};

/// Bytes that are compressed on their own: the result depends on it, and not on the cores.
const BLOCK: usize = 1 << 20;
/// Of 22.5 MB of packets higher levels spare one hundredth, and take two to three times as long.
const LEVEL: u32 = 3;
/// Deflate, no flags, no time, no extra flags, an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Writes portions of a text compressed, as one member: the same bytes at any time and on any
/// machine.
///
/// # Errors
/// If `out` cannot be written to, or no threads can be started.
pub(super) fn compress(content: &[Vec<u8>], out: &mut impl Write) -> Result<()> {
    let blocks: Vec<&[u8]> = content.iter().flat_map(|portion| portion.chunks(BLOCK)).collect();
    let block = |number: usize| {
        let mut crc = Crc::new();
        crc.update(blocks[number]);
        deflate(blocks[number], number + 1 == blocks.len()).map(|bytes| (bytes, crc))
    };
    let done = in_parallel(blocks.len(), None, &Cancel::default(), |_| {}, block).map_err(Error::other)?;
    out.write_all(&HEADER)?;
    let mut all = Crc::new();
    for (bytes, crc) in done.into_iter().flatten().collect::<Result<Vec<_>>>()? {
        out.write_all(&bytes)?;
        all.combine(&crc);
    }
    if blocks.is_empty() {
        out.write_all(&deflate(&[], true)?)?;
    }
    out.write_all(&all.sum().to_le_bytes())?;
    // Modulo 2^32, as the format has it.
    let length: usize = content.iter().map(Vec::len).sum();
    out.write_all(&(length as u32).to_le_bytes())
}

/// The blocks of deflate (RFC 1951) for these bytes; others follow at a whole byte unless it is the
/// last of them.
fn deflate(bytes: &[u8], is_last: bool) -> Result<Vec<u8>> {
    let mut state = Compress::new(Compression::new(LEVEL), false);
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    let mut out = Vec::with_capacity(bytes.len() / 4 + 64);
    loop {
        let read = state.total_in() as usize;
        state.compress_vec(&bytes[read..], &mut out, flush)?;
        // Room that is left says that nothing was held back.
        if out.len() < out.capacity() {
            return Ok(out);
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

    /// As one portion, and as three.
    fn compressed(content: &[u8]) -> Vec<u8> {
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        compress(&[content.to_vec()], &mut whole).unwrap();
        let portions: Vec<Vec<u8>> = content.chunks(content.len() / 3 + 1).map(<[u8]>::to_vec).collect();
        compress(&portions, &mut parts).unwrap();
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
    fn sizes_around_those_of_blocks_read_back() {
        for size in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 17] {
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
    fn random_bytes_over_blocks_read_back() {
        let mut state = 1_u64;
        let content: Vec<u8> = (0..2 * BLOCK + 5)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        assert!(read_back(&compressed(&content)) == content);
    }
}
