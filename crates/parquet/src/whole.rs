//! A file that says when it has ended.
//!
//! The library skips what it does not know in the header of a page, and does not notice that
//! nothing is there any more: a list of 2^31 numbers behind the end of the file takes it minutes
//! (fuzzing found it). A list of as many truth values, which have no bytes there, still takes
//! seconds.

use std::io::{self, Read};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// A file, or its bytes, behind whose end nothing is to be read.
pub(crate) struct Whole<R>(pub(crate) R);

impl<R: Length> Length for Whole<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Whole<R> {
    type T = Ending<R::T>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.0.get_read(start).map(Ending)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Before there is room made for them.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are not all in the file")));
        }
        self.0.get_bytes(start, length)
    }
}

/// What is read, whose end is an error.
pub(crate) struct Ending<R>(R);

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends too early")),
            read => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three bytes, which must not be asked for more.
    struct Three;

    impl Length for Three {
        fn len(&self) -> u64 {
            3
        }
    }

    impl ChunkReader for Three {
        type T = io::Empty;

        fn get_read(&self, _start: u64) -> Result<io::Empty> {
            Ok(io::empty())
        }

        fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
            assert!(start + length as u64 <= self.len(), "room would be made for {length} bytes at {start}");
            Ok(Bytes::from(vec![0; length]))
        }
    }

    #[test]
    fn what_is_not_all_in_the_file_is_refused_before_there_is_room_for_it() {
        assert_eq!(Whole(Three).get_bytes(1, 2).unwrap().len(), 2);
        for (start, length) in [(1, 3), (4, 0), (1, usize::MAX), (u64::MAX, 1)] {
            assert!(matches!(Whole(Three).get_bytes(start, length), Err(ParquetError::EOF(_))), "{start}, {length}");
        }
    }
}
