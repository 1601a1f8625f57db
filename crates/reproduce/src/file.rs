//! Files of figures: scenario, variants, claims and pictures.

use std::borrow::Cow;
use std::fmt;
use std::path::Path as FilePath;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::measure::{Measure, Statistic};
use super::picture::PictureSpec;
use super::probing::{ProbeSpec, Probing};
use super::quantity::{Dimension, Expectation};
use super::variants::{self, Factor, Level};
use flowstart_scenario::nearest;
use flowstart_scenario::{Problem, Scenario, ScenarioError, read};

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
    /// Runs of every simulated variant if as many are wanted as possible.
    pub full_runs: Option<u64>,
    /// What the paper says about it.
    pub claims: Vec<Claim>,
    /// What is drawn.
    pub pictures: Vec<PictureSpec>,
    /// Hash of the effective parameters of all variants: 16 hexadecimal digits.
    pub hash: String,
    /// Hash of the file's text, claims and explanations included: 16 hexadecimal digits.
    pub file_hash: String,
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
    /// Repetitions, each with random numbers of its own.
    pub(super) fn runs(&self) -> u64 {
        match self {
            Self::Scenario(scenario) => scenario.runs,
            Self::Probing(probing) => probing.runs(),
        }
    }

    /// Simulations at most.
    fn simulations(&self) -> usize {
        match self {
            Self::Scenario(scenario) => scenario.runs as usize,
            Self::Probing(probing) => (probing.runs() as usize).saturating_mul(probing.rates().len()),
        }
    }

    /// Hash of the effective parameters.
    fn hash(&self) -> String {
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
    /// What is measured in.
    pub dimension: Dimension,
    /// What is expected, if the paper says enough.
    pub expectation: Option<Expectation>,
    /// Each variant it is about, and the one that is compared with.
    pub cases: Vec<(usize, Option<usize>)>,
    /// The reading of the paper that each case belongs to: a title for each open factor in which the cases differ.
    pub readings: Vec<Vec<String>>,
}

/// What stands in a file beside `[scenario]` and `[vary]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSpec {
    /// What it is, for headings.
    title: String,
    /// Attainable rates instead of simulations.
    #[serde(default)]
    probe: Option<ProbeSpec>,
    /// What the paper shows there, in a sentence or two.
    shows: String,
    /// How this differs from what the paper did: fewer runs, other sizes.
    #[serde(default)]
    notes: Vec<String>,
    /// Names of factors that the paper leaves open: each of their levels is a way to read it. A claim that holds in some readings only is
    /// under-specified.
    #[serde(default)]
    open: Vec<String>,
    /// Runs of every simulation with `--full`, instead of the scenario's `runs`; at least 1.
    #[serde(default)]
    full_runs: Option<u64>,
    /// What the paper says.
    #[serde(default)]
    claim: Vec<ClaimSpec>,
    /// What is drawn.
    #[serde(default)]
    picture: Vec<PictureSpec>,
}

/// The schema of what stands in a file beside `[scenario]` and `[vary]`.
pub(super) fn schema() -> schemars::Schema {
    schemars::schema_for!(FileSpec)
}

/// A claim: a sentence of the paper, what is measured to check it, and what the paper's value is.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimSpec {
    /// A short name, unique in the file: letters, digits and hyphens.
    pub id: String,
    /// Where the paper says it.
    pub source: String,
    /// What it says, in words.
    pub says: String,
    /// What is measured.
    pub measure: Measure,
    /// The variants: names of levels; of a factor of which none is named, all. The claim is about each of them.
    #[serde(default)]
    pub of: Levels,
    /// The claim is about this statistic over all of its variants together, not about each of them. With `ratio_to` or `minus` the two statistics
    /// are compared.
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
    /// What had to be assumed because the paper leaves it open; makes the verdict "under-specified".
    #[serde(default)]
    pub assumed: Option<String>,
    /// Why ours differs, if it does.
    #[serde(default)]
    pub why: Option<String>,
}

/// Names of levels: one, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels(pub Vec<String>);

impl<'de> Deserialize<'de> for Levels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Levels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a level or a list of them")
            }

            fn visit_str<E>(self, name: &str) -> Result<Levels, E> {
                Ok(Levels(vec![name.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Levels, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(Levels(names))
            }
        }
        deserializer.deserialize_any(Names)
    }
}

impl JsonSchema for Levels {
    fn schema_name() -> Cow<'static, str> {
        "Levels".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Names of levels: one, or a list.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// The key under which a figure's probing stands.
const PROBE: &str = "probe";

impl Figure {
    /// Reads a file of a figure; `name` is used in errors and becomes the figure's name. Files that its scenario names are read relative to
    /// `folder`; without one they are refused.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place in the text and what would be right.
    pub fn parse(name: &str, text: &str, folder: Option<&FilePath>) -> Result<Self, ScenarioError> {
        let document = DeTable::parse(text).map_err(|error| ScenarioError::from_toml(name, text, &error))?;
        let whole = document.get_ref().clone();
        let locate = |problem: Problem| problem.locate_in(name, text, &whole);
        let mut rest = Spanned::new(document.span(), DeValue::Table(document.into_inner()));
        let base = variants::take(&mut rest, "scenario");
        let vary = variants::take(&mut rest, "vary");
        let probe = rest.get_ref().as_table().and_then(|table| table.get(PROBE)).cloned();
        let spec = FileSpec::deserialize(toml::de::ValueDeserializer::from(rest))
            .map_err(|error| ScenarioError::from_toml(name, text, &error))?;
        let (factors, pieces) = variants::factors(vary.as_ref()).map_err(locate)?;
        let mut base = match base.as_ref().map(|base| (base.span(), base.get_ref())) {
            Some((span, DeValue::Table(table))) => Spanned::new(span, table.clone()),
            Some(_) => return Err(locate(Problem::at("scenario", "is a table, as in a scenario file"))),
            None => Spanned::new(0..0, DeTable::new()),
        };
        // The pieces of a level reach the probing as a part of the scenario.
        if let Some(probe) = probe.filter(|_| spec.probe.is_some()) {
            base.get_mut().insert(Spanned::new(probe.span(), PROBE.into()), probe);
        }
        let mut all = Vec::new();
        for levels in variants::combinations(&factors) {
            let mut table = base.clone();
            for (of_factor, level) in pieces.iter().zip(&levels) {
                if let Some(DeValue::Table(piece)) = of_factor.get(*level).map(Spanned::get_ref) {
                    variants::lay_over(table.get_mut(), piece);
                }
            }
            let chosen = chosen(&factors, &levels);
            let names: Vec<&str> = chosen.iter().map(|level| level.name.as_str()).collect();
            let probe = table.get_mut().remove(PROBE);
            let scenario = || {
                let mut scenario = Scenario::from_table(name, text, table, folder)?;
                scenario.title = chosen.iter().map(|level| level.title.as_str()).collect::<Vec<_>>().join(", ");
                Ok(scenario)
            };
            let subject = match probe {
                None => Subject::Scenario(Box::new(scenario()?)),
                Some(probe) => {
                    let spec = ProbeSpec::deserialize(toml::de::ValueDeserializer::from(probe))
                        .map_err(|error| ScenarioError::from_toml(name, text, &error))?;
                    let scenario = spec.through.is_none().then(scenario).transpose()?;
                    let probing = Probing { spec, scenario };
                    probing.check().map_err(|problem| locate(problem.within(PROBE)))?;
                    Subject::Probing(Box::new(probing))
                }
            };
            all.push(Variant { name: names.join(", "), levels, subject });
        }
        let mut hasher = blake3::Hasher::new();
        for variant in &all {
            hasher.update(variant.subject.hash().as_bytes());
        }
        let mut figure = Self {
            name: name.to_owned(),
            title: spec.title,
            shows: spec.shows,
            notes: spec.notes,
            factors,
            open: Vec::new(),
            full_runs: spec.full_runs,
            variants: all,
            claims: Vec::new(),
            pictures: Vec::new(),
            hash: short_hash(hasher.finalize()),
            file_hash: short_hash(blake3::hash(text.as_bytes())),
        };
        if spec.full_runs == Some(0) {
            return Err(locate(Problem::at("full_runs", "is at least 1")));
        }
        for (index, name) in spec.open.iter().enumerate() {
            let factor = figure.factor(&format!("open[{index}]"), name).map_err(locate)?;
            figure.open.push(factor);
        }
        for (index, claim) in spec.claim.into_iter().enumerate() {
            let claim = figure.claim(claim).map_err(|problem| locate(problem.within(&format!("claim[{index}]"))))?;
            figure.claims.push(claim);
        }
        for (index, picture) in spec.picture.into_iter().enumerate() {
            picture.check(&figure).map_err(|problem| locate(problem.within(&format!("picture[{index}]"))))?;
            figure.pictures.push(picture);
        }
        if figure.claims.is_empty() {
            return Err(locate(Problem::at("claim", "nothing is claimed; add a [[claim]]")));
        }
        Ok(figure)
    }

    /// Reads a file of a figure and the files it names, relative to its folder.
    ///
    /// # Errors
    /// A file that cannot be read, or the first thing that is wrong in it.
    pub fn load(path: &FilePath) -> Result<Self, ScenarioError> {
        let folder = path.parent().unwrap_or(FilePath::new("."));
        Self::parse(&path.display().to_string(), &read(path)?, Some(folder))
    }

    /// Simulations that one pass over the figure takes, at most: of probing rates those above the first that is refused are not needed.
    #[must_use]
    pub fn simulations(&self) -> usize {
        self.variants.iter().map(|variant| variant.subject.simulations()).sum()
    }

    /// Repetitions of a variant, each with random numbers of its own.
    pub(super) fn runs(&self, variant: &Variant, full: bool) -> u64 {
        match (&variant.subject, self.full_runs.filter(|_| full)) {
            (Subject::Scenario(_), Some(runs)) => runs,
            (subject, _) => subject.runs(),
        }
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

    /// Checks a claim and finds its cases.
    fn claim(&self, spec: ClaimSpec) -> Result<Claim, Problem> {
        let slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if spec.id.is_empty() || !spec.id.chars().all(slug) {
            return Err(Problem::at("id", "is made of small letters, digits and hyphens"));
        }
        if self.claims.iter().any(|other| other.spec.id == spec.id) {
            return Err(Problem::at("id", format!("there are two claims \"{}\"", spec.id)));
        }
        let of = self.find("of", &spec.of)?;
        let (key, reference) = match (&spec.ratio_to, &spec.minus) {
            (Some(_), Some(_)) => return Err(Problem::at("minus", "a claim has either ratio_to or minus")),
            (Some(levels), None) => ("ratio_to", Some(levels)),
            (None, Some(levels)) => ("minus", Some(levels)),
            (None, None) => ("of", None),
        };
        let reference = reference.map(|levels| self.find(key, levels)).transpose()?;
        for (number, (factor, _)) in reference.iter().flatten().enumerate() {
            if reference.iter().flatten().take(number).any(|(other, _)| other == factor) {
                let factor = &self.factors[*factor].name;
                return Err(Problem::at(key, format!("names two levels of \"{factor}\" to compare with")));
            }
        }
        let mut cases = Vec::new();
        for number in self.selected(&of) {
            let other = reference.as_ref().and_then(|reference| {
                let mut levels = self.variants[number].levels.clone();
                reference.iter().for_each(|(factor, level)| levels[*factor] = *level);
                self.variants.iter().position(|variant| variant.levels == levels)
            });
            // What is compared with everybody is not compared with itself.
            if other != Some(number) {
                cases.push((number, other));
            }
        }
        if cases.is_empty() {
            return Err(Problem::at(key, "would compare a variant with itself"));
        }
        for (number, other) in &cases {
            for variant in std::iter::once(number).chain(other) {
                self.check_measure(&spec.measure, &self.variants[*variant])
                    .map_err(|problem| problem.within("measure"))?;
            }
        }
        let dimension = if spec.ratio_to.is_some() { Dimension::Plain } else { spec.measure.dimension() };
        let expectation = match &spec.expect {
            Some(text) => Some(Expectation::parse(text, dimension).map_err(|error| Problem::at("expect", error))?),
            None if spec.assumed.is_none() => {
                let missing = "is missing; a claim without it says what had to be assumed: assumed = \"...\"";
                return Err(Problem::at("expect", missing));
            }
            None => None,
        };
        let readings = if spec.over_variants.is_some() { vec![Vec::new()] } else { self.readings(&cases) };
        Ok(Claim { spec, dimension, expectation, cases, readings })
    }

    /// The titles of the levels of the open factors in which the cases differ, for each case.
    fn readings(&self, cases: &[(usize, Option<usize>)]) -> Vec<Vec<String>> {
        let level = |case: &(usize, Option<usize>), factor: usize| self.variants[case.0].levels[factor];
        let differ = |factor: &usize| cases.iter().any(|case| level(case, *factor) != level(&cases[0], *factor));
        let open: Vec<usize> = self.open.iter().copied().filter(differ).collect();
        let title = |case, factor: &usize| self.factors[*factor].levels[level(case, *factor)].title.clone();
        cases.iter().map(|case| open.iter().map(|factor| title(case, factor)).collect()).collect()
    }

    /// Checks that a variant has what a measure names.
    fn check_measure(&self, measure: &Measure, variant: &Variant) -> Result<(), Problem> {
        let within = || if variant.name.is_empty() { String::new() } else { format!(" in \"{}\"", variant.name) };
        let scenario = match (&variant.subject, measure.is_probing()) {
            (Subject::Scenario(scenario), false) => scenario,
            (Subject::Probing(probing), true) => {
                let wrong = measure.probing_rate().filter(|rate| !probing.rates().contains(rate));
                return match wrong {
                    Some(rate) => Err(Problem::at("rate", format!("{rate} is not a probing rate{}", within()))),
                    None => Ok(()),
                };
            }
            (_, true) => return Err(Problem::at("kind", "is measured by probing; add a [probe]")),
            (_, false) => return Err(Problem::at("kind", "is not measured by probing; leave [probe] out")),
        };
        let compiled = scenario
            .simulation(0)
            .map_err(|error| Problem::at("kind", format!("no simulation{}: {error}", within())))?;
        let known = |kind: &str, name: &str, names: Vec<&str>| {
            if names.contains(&name) {
                return Ok(());
            }
            let meant = nearest(name, names.iter().copied());
            let meant = meant.map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
            Err(Problem::at(
                kind,
                format!("there is no {kind} \"{name}\"{}; there are {}{meant}", within(), names.join(", ")),
            ))
        };
        if let Some(name) = measure.flow() {
            known("flow", name, compiled.groups.iter().map(|group| group.name.as_str()).collect())?;
        }
        if let Some(name) = measure.link() {
            known("link", name, compiled.links.iter().map(String::as_str).collect())?;
        }
        if measure.needs_rtt() && scenario.path.is_none() {
            return Err(Problem::at("kind", "needs the base RTT of a [path]; with [[link]] tables give over and hold"));
        }
        let (from, until) = measure.window();
        let end = scenario.duration;
        let (key, from) = (if matches!(measure, Measure::TimeToRate { .. }) { "since" } else { "from" }, from);
        if from.is_some_and(|from| from >= until.unwrap_or(end)) {
            return Err(Problem::at(key, format!("the window of time is empty{}, which lasts {end}", within())));
        }
        Ok(())
    }
}

/// The first 16 hexadecimal digits.
fn short_hash(hash: blake3::Hash) -> String {
    hash.to_hex()[..16].to_owned()
}

/// The levels of a combination.
pub(super) fn chosen<'a>(factors: &'a [Factor], levels: &[usize]) -> Vec<&'a Level> {
    factors.iter().zip(levels).filter_map(|(factor, level)| factor.levels.get(*level)).collect()
}
