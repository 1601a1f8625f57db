//! Whether other seeds give the same verdicts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evidence::{ERROR, exact_interval};
use super::verdict::Verdict::{Differs, Reproduced};
use super::verdict::{FigureResult, Verdict};

/// Whether other seeds give the same verdicts, figure by figure: long ones are run in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stability {
    /// Seeds 1 to this one.
    pub seeds: u64,
    /// With the whole budget (`--full`) or without.
    pub full: bool,
    /// By name; those without anything random do not count.
    pub figures: BTreeMap<String, FigureStability>,
}

/// Whether other seeds give the same verdicts on a figure's claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureStability {
    /// Hash of what stands in the figure's file about the runs.
    pub hash: String,
    /// Claims that were decided, reproduced or different, with at least one seed.
    pub decided: usize,
    /// Those of them with the same verdict with every seed.
    pub same: usize,
    /// Those of them that were reproduced with one seed and different with another.
    pub opposite: usize,
    /// Ids of those that changed, and the verdict with each seed.
    pub changed: BTreeMap<String, Vec<String>>,
}

impl Stability {
    /// From the results with seeds 1, 2, ... over the same figures.
    #[must_use]
    pub fn of(results: &[Vec<FigureResult>], full: bool) -> Self {
        let first = results.first().map_or(&[][..], Vec::as_slice);
        let random = first.iter().enumerate().filter(|(_, figure)| !figure.looks.certain);
        let of_figure = |(place, figure): (usize, &FigureResult)| {
            let seeds: Vec<&FigureResult> = results.iter().filter_map(|seed| seed.get(place)).collect();
            (figure.figure.name.clone(), FigureStability::of(&seeds))
        };
        Self { seeds: results.len() as u64, full, figures: random.map(of_figure).collect() }
    }

    /// Takes in what other figures gave, or the same ones later. With other seeds or another budget
    /// it is another question: only the new ones stay.
    pub fn add(&mut self, later: Self) {
        if (self.seeds, self.full) == (later.seeds, later.full) {
            self.figures.extend(later.figures);
        } else {
            *self = later;
        }
    }

    /// Without figures whose runs have changed since, or which are not among these.
    #[must_use]
    pub fn still_true(mut self, results: &[FigureResult]) -> Self {
        let hash =
            |name: &str| results.iter().find(|result| result.figure.name == name).map(|result| &result.figure.run_hash);
        self.figures.retain(|name, figure| hash(name) == Some(&figure.hash));
        self
    }

    /// Decided claims, those with the same verdict with every seed, and those with opposite ones.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let of = |count: fn(&FigureStability) -> usize| self.figures.values().map(count).sum();
        (of(|figure| figure.decided), of(|figure| figure.same), of(|figure| figure.opposite))
    }

    /// The share of decided claims with the same verdict with every seed, and its 95 % interval as
    /// if claims had nothing to do with one another; `None` if none was decided.
    #[must_use]
    pub fn share(&self) -> Option<(f64, f64, f64)> {
        let (decided, same, _) = self.counts();
        let share = same as f64 / decided as f64;
        let (low, high) = exact_interval(share, decided, ERROR).filter(|_| decided > 0)?;
        Some((share, low, high))
    }
}

impl FigureStability {
    /// From the results with each seed.
    fn of(seeds: &[&FigureResult]) -> Self {
        let Some(first) = seeds.first() else { return Self::default() };
        let mut figure = Self { hash: first.figure.run_hash.clone(), ..Self::default() };
        for (number, claim) in first.claims.iter().enumerate() {
            let verdicts: Vec<Verdict> =
                seeds.iter().filter_map(|seed| seed.claims.get(number)).map(|claim| claim.verdict).collect();
            let (reproduced, differs) = (verdicts.contains(&Reproduced), verdicts.contains(&Differs));
            if !reproduced && !differs {
                continue;
            }
            figure.decided += 1;
            figure.opposite += usize::from(reproduced && differs);
            if verdicts.iter().all(|verdict| *verdict == claim.verdict) {
                figure.same += 1;
            } else {
                let words = verdicts.iter().map(|verdict| verdict.name().to_owned()).collect();
                figure.changed.insert(claim.claim.spec.id.clone(), words);
            }
        }
        figure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, decided: usize, same: usize) -> Stability {
        let figure = FigureStability { hash: "a".to_owned(), decided, same, ..FigureStability::default() };
        Stability { seeds: 5, full: false, figures: [(name.to_owned(), figure)].into() }
    }

    #[test]
    fn figures_that_were_run_in_turn_count_together_and_each_once() {
        let mut all = one("a", 10, 9);
        all.add(one("b", 30, 30));
        assert_eq!((all.counts(), all.figures.len()), ((40, 39, 0), 2));
        all.add(one("a", 10, 10));
        assert_eq!(all.counts(), (40, 40, 0));
        // Other seeds or another budget cannot be counted together with these.
        all.add(Stability { seeds: 3, ..one("c", 7, 6) });
        assert_eq!(all.counts(), (7, 6, 0));
        all.add(Stability { seeds: 3, full: true, ..one("d", 2, 1) });
        assert_eq!(all.counts(), (2, 1, 0));
    }

    #[test]
    fn the_share_has_an_interval_and_none_without_claims() {
        let (share, low, high) = one("a", 139, 134).share().unwrap();
        assert!((share - 0.9640).abs() < 1e-4 && low < 0.919 && high > 0.988 && low > 0.91, "{low} {high}");
        assert_eq!(one("a", 0, 0).share(), None);
    }
}
