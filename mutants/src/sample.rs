//! Numbers the mutants, draws a sample, counts what became of it.

use crate::Result;
use crate::run::Outcome;
use crate::tree::Source;
use rand_core::{Rng, SeedableRng};
use std::fmt;

/// A mutant, for people.
pub(crate) struct Listed {
    pub(crate) id: u32,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) function: String,
    pub(crate) change: String,
    /// The line as it was.
    pub(crate) text: String,
}

/// Gives every change its number, from 1 on; returns how many there are.
pub(crate) fn number(sources: &mut [Source]) -> u32 {
    let mut count = 0;
    for change in sources.iter_mut().flat_map(|s| &mut s.sites).flat_map(|s| &mut s.changes) {
        count += 1;
        change.id = count;
    }
    count
}

/// `size` numbers of 1 to `total` without repetition, in random order: the first of them are a
/// sample too.
pub(crate) fn draw(total: u32, size: usize, seed: u64) -> Vec<u32> {
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut numbers: Vec<u32> = (1..=total).collect();
    let mut drawn = vec![];
    while drawn.len() < size && !numbers.is_empty() {
        let place = random.next_u64() % numbers.len() as u64;
        drawn.push(numbers.swap_remove(place as usize));
    }
    drawn
}

/// The numbers of all mutants in these places: `FILE:LINE`, a file, or a folder.
pub(crate) fn at(sources: &[Source], places: &[String]) -> Result<Vec<u32>> {
    let mut numbers = vec![];
    for place in places {
        let before = numbers.len();
        let inside = |m: &Listed| {
            let whole = format!("{}:{}", m.file, m.line);
            whole.strip_prefix(place.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
        };
        numbers.extend(listed(sources).filter(inside).map(|m| m.id));
        if numbers.len() == before {
            return Err(format!("there is nothing to change at {place}; a place looks like network/queue/red.rs:283"));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// All mutants in the order of the sources.
pub(crate) fn listed(sources: &[Source]) -> impl Iterator<Item = Listed> {
    let places = sources.iter().flat_map(|source| source.sites.iter().map(move |site| (source, site)));
    places.flat_map(|(source, site)| {
        site.changes.iter().map(move |change| Listed {
            id: change.id,
            file: format!("{}/{}", source.name, source.path.display()),
            line: site.line,
            function: site.function.clone(),
            change: change.name.clone(),
            text: source.text.lines().nth(site.line - 1).unwrap_or_default().trim().to_string(),
        })
    })
}

/// What became of a sample.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) caught: usize,
    pub(crate) timed_out: usize,
    pub(crate) missed: usize,
    /// Did not compile.
    pub(crate) dropped: usize,
    /// Not tried for want of time.
    pub(crate) left: usize,
}

impl Tally {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Caught(_) => self.caught += 1,
            Outcome::TimedOut => self.timed_out += 1,
            Outcome::Missed => self.missed += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noticed = self.caught + self.timed_out;
        let tried = noticed + self.missed;
        let (low, high) = wilson(noticed, tried);
        let per_cent = |part: f64| 100.0 * part;
        writeln!(
            f,
            "{} caught, {} timed out, {} missed, {} not compilable, {} not tried",
            self.caught, self.timed_out, self.missed, self.dropped, self.left
        )?;
        write!(
            f,
            "noticed: {noticed} of {tried}, {:.0} % (95 % interval {:.0} to {:.0} %)",
            per_cent(noticed as f64 / tried.max(1) as f64),
            per_cent(low),
            per_cent(high)
        )
    }
}

/// The interval that holds a share with 95 % confidence when `hits` of `tried` were seen (Wilson,
/// "Probable Inference, the Law of Succession, and Statistical Inference", 1927).
pub(crate) fn wilson(hits: usize, tried: usize) -> (f64, f64) {
    if tried == 0 {
        return (0.0, 1.0);
    }
    let (z, n) = (1.959_964, tried as f64);
    let share = hits as f64 / n;
    let middle = share + z * z / (2.0 * n);
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + z * z / n;
    (((middle - spread) / whole).max(0.0), ((middle + spread) / whole).min(1.0))
}
