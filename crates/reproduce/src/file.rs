//! Files of figures: scenario, variants, claims and pictures.

use std::path::Path as FilePath;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use flowstart_scenario::{Problem, Scenario, ScenarioError, read};

use super::figure::{ClaimSpec, Figure, Subject, Variant, chosen, short_hash};
use super::picture::PictureSpec;
use super::probing::{ProbeSpec, Probing};
use super::replication::Replications;
use super::variants;

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
    /// Names of factors that the paper leaves open: each of their levels is a way to read it. A
    /// claim that holds in some readings only is under-specified.
    #[serde(default)]
    open: Vec<String>,
    /// How often every variant is run, and what differs from run to run.
    #[serde(default)]
    replications: Replications,
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

/// The key under which a figure's probing stands.
const PROBE: &str = "probe";

/// Hash of what stands in the file about the runs. It does not change when the program learns a new
/// key, as that of the effective parameters does.
fn run_hash(text: &str) -> String {
    let mut table: toml::Table = toml::from_str(text).unwrap_or_default();
    table.retain(|key, _| ["scenario", "vary", "probe", "replications"].contains(&key));
    if let Some(toml::Value::Table(replications)) = table.get_mut("replications") {
        replications.remove("because");
    }
    short_hash(blake3::hash(table.to_string().as_bytes()))
}

impl Figure {
    /// Reads a file of a figure; `name` is used in errors and becomes the figure's name. Files that
    /// its scenario names are read relative to `folder`; without one they are refused.
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
        spec.replications.check().map_err(|problem| locate(problem.within("replications")))?;
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
                spec.replications.prepare(&mut scenario).map_err(locate)?;
                scenario.title = chosen.iter().map(|level| level.title.as_str()).collect::<Vec<_>>().join(", ");
                Ok(scenario)
            };
            let subject = match probe {
                None => Subject::Scenario(Box::new(scenario()?)),
                Some(probe) => {
                    let spec = ProbeSpec::deserialize(toml::de::ValueDeserializer::from(probe))
                        .map_err(|error| ScenarioError::from_toml(name, text, &error))?;
                    let scenario = spec.through.is_none().then(scenario).transpose()?;
                    let probing = Probing { spec, scenario, seed: 1 };
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
            replications: spec.replications.clone(),
            variants: all,
            claims: Vec::new(),
            pictures: Vec::new(),
            hash: short_hash(hasher.finalize()),
            run_hash: run_hash(text),
        };
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
}
