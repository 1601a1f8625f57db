//! A figure of a paper: variants, claims and pictures.

use schemars::JsonSchema;
use serde::Deserialize;

use flowstart_measure::{Dimension, Measured, Statistic};
use flowstart_scenario::{Problem, Scenario, nearest};

use super::expectation::Expectation;
use super::measure::Measure;
use super::origin::Origin;
use super::picture::PictureSpec;
use super::probing::Probing;
use super::replication::Replications;
use super::variants::{Factor, Level, Levels};

/// A figure (or table, or sentence) of a paper, ready to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Where it came from: "paced-chirping/fig6" or a file's name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// What the paper shows there.
    pub shows: String,
    /// How this differs from what the paper did.
    pub notes: Vec<String>,
    /// What is varied.
    pub factors: Vec<Factor>,
    /// Which of them the paper leaves open, by number.
    pub open: Vec<usize>,
    /// All combinations of levels.
    pub variants: Vec<Variant>,
    /// How often every variant is run, and what differs from run to run.
    pub replications: Replications,
    /// What the paper says about it.
    pub claims: Vec<Claim>,
    /// What is drawn.
    pub pictures: Vec<PictureSpec>,
    /// Hash of the effective parameters of all variants: 16 hexadecimal digits.
    pub hash: String,
    /// Hash of what stands in the file about the runs, without words and claims: 16 hexadecimal
    /// digits.
    pub run_hash: String,
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The level of each factor.
    pub levels: Vec<usize>,
    /// The names of the levels; empty if nothing is varied.
    pub name: String,
    /// What is done.
    pub subject: Subject,
}

/// What is done in a variant.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A scenario is simulated.
    Scenario(Box<Scenario>),
    /// A flow control is probed at several rates.
    Probing(Box<Probing>),
}

impl Subject {
    /// Simulations that one run takes, at most.
    fn simulations(&self) -> usize {
        match self {
            Self::Scenario(_) => 1,
            Self::Probing(probing) => probing.rates().len(),
        }
    }

    /// The same with another seed.
    fn seed(&mut self, seed: u64) {
        match self {
            Self::Scenario(scenario) => scenario.seed = seed,
            Self::Probing(probing) => probing.seed(seed),
        }
    }

    /// Hash of the effective parameters.
    pub(super) fn hash(&self) -> String {
        match self {
            Self::Scenario(scenario) => scenario.hash(),
            Self::Probing(probing) => short_hash(blake3::hash(probing.effective().as_bytes())),
        }
    }
}

/// A sentence of a paper that can be checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// As it stands in the file.
    pub spec: ClaimSpec,
    /// Whose it is.
    pub origin: Origin,
    /// What is measured in.
    pub dimension: Dimension,
    /// What is expected, if the paper says enough.
    pub expectation: Option<Expectation>,
    /// Each variant it is about, and the one that is compared with.
    pub cases: Vec<(usize, Option<usize>)>,
    /// The reading of the paper that each case belongs to: a title for each open factor in which
    /// the cases differ.
    pub readings: Vec<Vec<String>>,
    /// What a run without a value counts as.
    pub missing: Option<Measured>,
}

/// A claim: a sentence of the paper, what is measured to check it, and what the paper's value is.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimSpec {
    /// A short name, unique in the file: letters, digits and hyphens.
    pub id: String,
    /// Whose claim it is: "paper", or "ours" for what this project says beyond the paper. Required.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// Where the paper says it.
    pub source: String,
    /// What it says, in words.
    pub says: String,
    /// What is measured.
    pub measure: Measure,
    /// The variants: names of levels; of a factor of which none is named, all. The claim is about
    /// each of them.
    #[serde(default)]
    pub of: Levels,
    /// The claim is about this statistic over all of its variants together, not about each of them.
    /// With `ratio_to` or `minus` the two statistics are compared.
    #[serde(default)]
    pub over_variants: Option<Statistic>,
    /// The measure is divided by that of the variant with these levels instead, run by run.
    #[serde(default)]
    pub ratio_to: Option<Levels>,
    /// The measure of the variant with these levels instead is subtracted, run by run.
    #[serde(default)]
    pub minus: Option<Levels>,
    /// The paper's value or relation: "<= 3 ms", "> 0.8", "= 0", "5 .. 8 RTT", "15 s ± 20 %".
    #[serde(default)]
    pub expect: Option<String>,
    /// Tolerances and readings that are ours, not the paper's, although the claim itself is clear.
    #[serde(default)]
    pub reading: Option<String>,
    /// What had to be assumed because the paper leaves it open; makes the verdict
    /// "under-specified".
    #[serde(default)]
    pub assumed: Option<String>,
    /// What a run without a value counts as ("0", "> 10 s"); without this such runs leave the claim
    /// undecided, as those that have a value are not a sample of all.
    #[serde(default)]
    pub missing: Option<String>,
    /// Why ours differs, if it does. Without `shown_by` it is called a guess.
    #[serde(default)]
    pub why: Option<String>,
    /// The claim (its id, or PAPER/FIGURE#ID) that shows the cause: a variant in which it holds.
    #[serde(default)]
    pub shown_by: Option<String>,
}

impl Figure {
    /// Simulations that one run of every variant takes, at most: of probing rates those above the
    /// first that is refused are not needed.
    #[must_use]
    pub fn simulations(&self) -> usize {
        self.variants.iter().map(|variant| variant.subject.simulations()).sum()
    }

    /// Uses other random numbers than the file names.
    pub fn seed(&mut self, seed: u64) {
        self.variants.iter_mut().for_each(|variant| variant.subject.seed(seed));
    }

    /// The number of the factor of this name.
    pub(super) fn factor(&self, key: &str, name: &str) -> Result<usize, Problem> {
        let names = || self.factors.iter().map(|factor| factor.name.as_str());
        names().position(|known| known == name).ok_or_else(|| {
            let meant = nearest(name, names()).map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
            let known = names().collect::<Vec<_>>().join(", ");
            Problem::at(key, format!("there is no factor \"{name}\"; there are {known}{meant}"))
        })
    }

    /// The factor and level of each of these names.
    pub(super) fn find(&self, key: &str, names: &Levels) -> Result<Vec<(usize, usize)>, Problem> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for name in &names.0 {
            let all = || self.factors.iter().flat_map(|factor| factor.levels.iter().map(|level| level.name.as_str()));
            let place = self.factors.iter().enumerate().find_map(|(number, factor)| {
                Some((number, factor.levels.iter().position(|level| level.name == *name)?))
            });
            let Some(place) = place else {
                let known = all().collect::<Vec<_>>().join(", ");
                let known =
                    if known.is_empty() { "nothing is varied".to_owned() } else { format!("there are {known}") };
                let meant =
                    nearest(name, all()).map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
                return Err(Problem::at(key, format!("there is no level \"{name}\"; {known}{meant}")));
            };
            found.push(place);
        }
        Ok(found)
    }

    /// Numbers of the variants that have one of these levels of each factor named.
    pub(super) fn selected(&self, levels: &[(usize, usize)]) -> Vec<usize> {
        let fits =
            |variant: &Variant| levels.iter().all(|(factor, _)| levels.contains(&(*factor, variant.levels[*factor])));
        (0..self.variants.len()).filter(|number| fits(&self.variants[*number])).collect()
    }
}

/// The first 16 hexadecimal digits.
pub(super) fn short_hash(hash: blake3::Hash) -> String {
    hash.to_hex()[..16].to_owned()
}

/// The levels of a combination.
pub(super) fn chosen<'a>(factors: &'a [Factor], levels: &[usize]) -> Vec<&'a Level> {
    factors.iter().zip(levels).filter_map(|(factor, level)| factor.levels.get(*level)).collect()
}
