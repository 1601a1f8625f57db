//! When every message was handed over and read, as files that `--measured` reads.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use flowstart_benchmark::Attained;
use flowstart_files::write_atomically_by;
use flowstart_service_curve::{MessageTrain, write_csv};

use crate::formats::PARQUET_WRITER;
use crate::output::{Done, Failure, ending, prepare_file, spare_inputs};

/// The formats, by the ending of the file.
const CSV: &str = "csv";
const PARQUET: &str = "parquet";

/// Makes sure that the file can be written, or those of so many contestants, before anything costly
/// is done.
pub(super) fn prepare(file: &Path, labels: &[String]) -> Done {
    if ending(file, &[CSV, PARQUET])? == PARQUET && PARQUET_WRITER.is_none() {
        return Err(Failure::Usage(
            "this program was built without Apache Parquet: give --delays a file that ends in .csv, or build the \
             program with `cargo build --release --features parquet`"
                .to_owned(),
        ));
    }
    if labels.len() > 1 {
        spare_inputs(labels.iter().map(|label| named(file, label)))?;
    }
    prepare_file(file)
}

/// Writes the messages of every contestant, and forgets them. Gives the files.
pub(super) fn write(file: &Path, attained: &mut [Attained]) -> Result<Vec<PathBuf>, Failure> {
    let alone = attained.len() == 1;
    let mut files = Vec::new();
    for one in attained {
        let path = if alone { file.to_owned() } else { named(file, &one.label) };
        let trains = std::mem::take(&mut one.messages);
        let measured = std::mem::take(&mut one.records);
        let records = || trains.iter().flat_map(MessageTrain::records).chain(measured.iter().copied());
        let ends = measured.iter().any(|record| record.passed.is_some());
        let is_parquet = ending(file, &[CSV, PARQUET])? == PARQUET;
        let written = write_atomically_by(&path, |out| match PARQUET_WRITER.filter(|_| is_parquet) {
            Some(parquet) => {
                parquet(BufWriter::new(out.try_clone()?), &mut records(), ends).map_err(std::io::Error::other)
            }
            None => write_csv(BufWriter::new(out), records(), ends),
        });
        written.map_err(|error| Failure::file("write", &path, &error))?;
        files.push(path);
    }
    Ok(files)
}

/// The file of one contestant: its name before the ending, without what file names do not have.
fn named(file: &Path, label: &str) -> PathBuf {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, ending) = (part(file.file_stem()), part(file.extension()));
    file.with_file_name(format!("{stem}-{}.{ending}", plain_name(label)))
}

/// A label without what file names do not have: "cubic (kernel)" is "cubic_kernel".
pub(super) fn plain_name(label: &str) -> String {
    let parts = label.split(|c: char| !(c.is_alphanumeric() || "+-_@.".contains(c)));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "real-fs_chirp__kernel_.csv" it was.
    #[test]
    fn names_of_files_are_words_with_one_stroke_between_them() {
        let of = |label| named(Path::new("out/real.csv"), label).display().to_string();
        assert_eq!(of("fs_chirp (kernel)"), "out/real-fs_chirp_kernel.csv");
        assert_eq!(of("reno@drop_tail 0.5 BDP"), "out/real-reno@drop_tail_0.5_BDP.csv");
    }
}
