//! What fuzzing has found worth keeping, changed at random. Fuzz targets go further, guided by what
//! they reach (`.ci/fuzz`); this needs no build of its own.

use std::path::Path;

use flowstart_entries::ENTRIES;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;

/// Inputs for each of what is read.
const INPUTS: u32 = 3000;

/// Longest input in bytes, as of the fuzz targets.
const MOST_BYTES: usize = 4096;

/// What stands for a number where one was: ends of ranges, and what is none.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "0.1",
    "1e-12",
    "1e308",
    "1e309",
    "nan",
    "inf",
    "255",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
];

/// One change of an input.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Put(Index, u8),
    Remove(Index, Index),
    Repeat(Index, Index),
    Number(Index, &'static str),
    /// From here on as another input.
    Splice(Index, Vec<u8>, Index),
}

impl Change {
    fn make(self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        match self {
            Self::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
            Self::Put(at, byte) => bytes[at.index(length)] = byte,
            Self::Remove(from, count) => {
                let from = from.index(length);
                bytes.drain(from..from + 1 + count.index(length - from));
            }
            Self::Repeat(from, count) => {
                let from = from.index(length);
                let part = bytes[from..from + 1 + count.index(length - from)].to_vec();
                bytes.splice(from..from, part);
            }
            Self::Number(near, number) => {
                let near = near.index(length);
                let is_digit = |byte: &u8| byte.is_ascii_digit();
                let Some(from) = (near..length).chain(0..near).find(|at| is_digit(&bytes[*at])) else { return };
                let end = from + bytes[from..].iter().take_while(|byte| is_digit(byte)).count();
                bytes.splice(from..end, number.bytes());
            }
            Self::Splice(at, other, from) => {
                bytes.truncate(at.index(length));
                bytes.extend_from_slice(&other[from.index(other.len() + 1)..]);
            }
        }
    }
}

/// One to five changes of one of these inputs.
fn changed(inputs: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let index = any::<Index>;
    let change = prop_oneof![
        (index(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (index(), any::<u8>()).prop_map(|(at, byte)| Change::Put(at, byte)),
        (index(), index()).prop_map(|(from, count)| Change::Remove(from, count)),
        (index(), index()).prop_map(|(from, count)| Change::Repeat(from, count)),
        (index(), select(&NUMBERS[..])).prop_map(|(near, number)| Change::Number(near, number)),
        (index(), select(inputs.clone()), index()).prop_map(|(at, other, from)| Change::Splice(at, other, from)),
    ];
    (select(inputs), vec(change, 1..=5)).prop_map(|(mut bytes, changes)| {
        changes.into_iter().for_each(|change| change.make(&mut bytes));
        bytes.truncate(MOST_BYTES);
        bytes
    })
}

/// Reads what random changes make of a corpus.
fn read_changed(name: &str, entry: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let inputs = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let config = ProptestConfig { cases: INPUTS, failure_persistence: None, ..ProptestConfig::default() };
    let judged = TestRunner::new(config).run(&changed(inputs), |bytes| {
        entry(&bytes);
        Ok(())
    });
    judged.unwrap_or_else(|failure| panic!("{name}: {failure}"));
}

#[test]
fn nothing_like_what_is_in_the_corpora_makes_what_reads_it_panic() {
    std::thread::scope(|scope| {
        for (name, entry) in ENTRIES {
            scope.spawn(move || read_changed(name, *entry));
        }
    });
}
