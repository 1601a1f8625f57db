//! The file of what runs gave: written, judged, and verified in part.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use flowstart_pages::reproduce::Judged;
use flowstart_reproduce::{Figure, FigureRecord, FigureResult, FirstRun, Record, Stability};

use super::{Ran, first_of, make};
use crate::args::{RECORD, ReproduceArgs};
use crate::output::{Done, Failure, prepare_file, print, write_file};
use crate::session::quoted;

/// Data packets that `--verify` simulates: some minutes of two cores.
const VERIFIED_PACKETS: u64 = 250_000_000;

/// Reads the file; `None` if there is none yet.
fn read(file: &Path) -> Result<Option<Record>, Failure> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::file("read", file, &error)),
    };
    let record = serde_json::from_str(&text);
    record
        .map(Some)
        .map_err(|error| Failure::usage(format!("{}: not a record of `reproduce`: {error}", file.display())))
}

/// The option that writes this file.
fn option(file: &Path) -> String {
    if file == Path::new(RECORD) {
        "--record".to_owned()
    } else {
        format!("--record={}", quoted(&file.to_string_lossy()))
    }
}

fn existing(file: &Path) -> Result<Record, Failure> {
    let missing =
        || Failure::usage(format!("there is no {}; `flowstart reproduce {}` makes it", file.display(), option(file)));
    read(file)?.ok_or_else(missing)
}

fn write(file: &Path, record: &Record) -> Done {
    let text = serde_json::to_string_pretty(record).map_err(Failure::usage)?;
    write_file(file, format!("{text}\n").as_bytes())
}

/// Makes sure that the file can be kept, before anything costly is done.
pub(super) fn prepare(file: &Path) -> Done {
    read(file)?;
    prepare_file(file)
}

/// Puts what runs gave into the file; the other figures in it stay.
pub(super) fn keep(file: &Path, ran: &Ran, full: bool) -> Done {
    let mut record = read(file)?.unwrap_or_default();
    let today = today();
    for (result, seconds) in ran.results.iter().zip(&ran.spent) {
        let kept = FigureRecord::new(result, &today, env!("CARGO_PKG_VERSION"), full, *seconds);
        record.figures.insert(result.figure.name.clone(), kept);
    }
    write(file, &record)
}

/// Puts what several seeds gave into the file; what they gave for other figures stays.
pub(super) fn keep_stability(file: &Path, stability: &Stability) -> Done {
    let mut record = read(file)?.unwrap_or_default();
    match &mut record.stability {
        Some(kept) => kept.add(stability.clone()),
        None => record.stability = Some(stability.clone()),
    }
    write(file, &record)
}

/// The verdicts on what the file holds.
pub(super) fn judge(file: &Path, figures: &[Figure]) -> Result<Judged, Failure> {
    let record = existing(file)?;
    let told = |why: String| why.replace(" --record`", &format!(" {}`", option(file)));
    let mut judged = Judged { results: Vec::new(), record: Record::default(), missing: Vec::new() };
    for figure in figures {
        match record.figures.get(&figure.name) {
            Some(kept) => judged.results.push(kept.judge(figure).map_err(|why| Failure::Usage(told(why.to_string())))?),
            None => judged.missing.push(figure.name.clone()),
        }
    }
    if judged.results.is_empty() {
        let names = judged.missing.join(", ");
        return Err(Failure::usage(format!("{} does not hold {names}; run it with {}", file.display(), option(file))));
    }
    judged.record = record;
    Ok(judged)
}

/// Runs the cheapest figures again, as many as some minutes allow, and compares every number; of
/// the others one run.
pub(super) fn verify(file: &Path, figures: Vec<Figure>, args: &ReproduceArgs) -> Done {
    let Judged { results, record, missing } = judge(file, &figures)?;
    let figures: Vec<Figure> = figures.into_iter().filter(|figure| !missing.contains(&figure.name)).collect();
    let mut order: Vec<usize> = (0..figures.len()).collect();
    order.sort_by_key(|number| results[*number].data_packets);
    let mut packets = 0;
    let (cheap, costly): (Vec<usize>, Vec<usize>) = order.into_iter().partition(|number| {
        packets += results[*number].data_packets;
        packets <= VERIFIED_PACKETS
    });
    let mut place: Vec<usize> = cheap;
    place.sort_unstable();
    let mut again: Vec<FigureResult> = Vec::new();
    let mut took = 0.0;
    for full in [false, true] {
        let is_full =
            |number: &&usize| record.figures.get(&figures[**number].name).is_some_and(|kept| kept.full == full);
        let wanted: Vec<Figure> = place.iter().filter(is_full).map(|number| figures[*number].clone()).collect();
        if !wanted.is_empty() {
            let ran = make(&wanted, full, args)?.whole()?;
            took += ran.took;
            again.extend(ran.results);
        }
    }
    let mut differences: Vec<String> = again
        .iter()
        .flat_map(|result| {
            record.figures.get(&result.figure.name).map(|kept| kept.differences(result)).unwrap_or_default()
        })
        .collect();
    let openings = openings(&figures, &costly, &record, args)?;
    differences.extend(openings.differences);
    let claims: usize = again.iter().map(|result| result.claims.len()).sum();
    let mut text = format!(
        "{claims} claims of {} figures run again in {:.0} s: {} other number{}\n",
        again.len(),
        took,
        differences.len(),
        if differences.len() == 1 { "" } else { "s" }
    );
    for line in &differences {
        text.push_str(&format!("  {line}\n"));
    }
    if !openings.names.is_empty() {
        text.push_str(&format!("one run of each, as they take long: {}\n", openings.names.join(", ")));
    }
    if !openings.unknown.is_empty() {
        let names = openings.unknown.join(", ");
        text.push_str(&format!("recorded without a first run, so not run again: {names}\n"));
    }
    if !missing.is_empty() {
        text.push_str(&format!("not recorded: {}\n", missing.join(", ")));
    }
    print(&text)?;
    if differences.is_empty() { Ok(()) } else { Err(Failure::Check) }
}

/// What the first runs of figures that take long say.
#[derive(Default)]
struct Openings {
    names: Vec<String>,
    /// Of which no first run is recorded.
    unknown: Vec<String>,
    differences: Vec<String>,
}

/// Makes one run of each of these figures again.
fn openings(figures: &[Figure], costly: &[usize], record: &Record, args: &ReproduceArgs) -> Result<Openings, Failure> {
    let mut openings = Openings::default();
    for full in [false, true] {
        let mut wanted: Vec<(&Figure, &FirstRun)> = Vec::new();
        for figure in costly.iter().map(|number| &figures[*number]) {
            let Some(kept) = record.figures.get(&figure.name).filter(|kept| kept.full == full) else { continue };
            if kept.first.is_empty() {
                openings.unknown.push(figure.name.clone());
            } else {
                openings.names.push(figure.name.clone());
                wanted.push((figure, &kept.first));
            }
        }
        let runs: Vec<(&Figure, &str)> =
            wanted.iter().map(|(figure, first)| (*figure, first.variant.as_str())).collect();
        for ((figure, first), new) in wanted.iter().zip(first_of(&runs, full, args)?) {
            openings.differences.extend(first.differences(&figure.name, &new));
        }
    }
    Ok(openings)
}

/// Today, YYYY-MM-DD (UTC).
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or(0);
    date(seconds / 86_400)
}

/// The date so many days after 1970-01-01 (civil_from_days of Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn date(days: u64) -> String {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, expected) in [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_000, "2024-10-04")]
        {
            assert_eq!(date(days), expected);
        }
    }
}
