//! The papers that come with the program.

use std::collections::BTreeMap;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use super::Figure;
use flowstart_scenario::ScenarioError;
use flowstart_scenario::nearest;

/// The folder `experiments` of the repository, as it was when the program was built.
static EXPERIMENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/experiments");

/// Name of the file about a paper.
const ABOUT: &str = "paper.toml";

/// A paper and the names of its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Name of its folder.
    pub name: String,
    /// What the paper is.
    pub about: PaperSpec,
    /// Names of its figures, in order of the paper.
    pub figures: Vec<String>,
}

/// `paper.toml`: what a paper is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperSpec {
    /// Title.
    pub title: String,
    /// Authors.
    pub authors: Vec<String>,
    /// Year of publication.
    pub year: u16,
    /// Where it was published.
    pub venue: String,
    /// Where it can be found.
    #[serde(default)]
    pub link: Option<String>,
    /// What holds for all of its figures: machines, kernels, how they were set.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Its figures in order, by file name without ending.
    pub figures: Vec<String>,
    /// Figures that continue another one: who asks for that one by its name gets these, too.
    #[serde(default)]
    pub continued: BTreeMap<String, Vec<String>>,
    /// What it says that no figure here checks.
    #[serde(default)]
    pub not_examined: Vec<NotExamined>,
}

/// A claim of a paper that is not checked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotExamined {
    /// What it says, in words.
    pub says: String,
    /// Where.
    pub source: String,
    /// Why it is not checked.
    pub why: String,
}

/// All papers, in order of their names.
///
/// # Errors
/// A file that is wrong; a test sees to it that none is.
pub fn papers() -> Result<Vec<Paper>, ScenarioError> {
    let mut papers = EXPERIMENTS.dirs().map(paper).collect::<Result<Vec<_>, _>>()?;
    papers.sort_by(|a, b| (a.about.year, &a.name).cmp(&(b.about.year, &b.name)));
    Ok(papers)
}

fn paper(folder: &Dir<'_>) -> Result<Paper, ScenarioError> {
    let name = folder.path().display().to_string();
    let file = format!("{name}/{ABOUT}");
    let text = EXPERIMENTS.get_file(&file).and_then(|file| file.contents_utf8());
    let text = text.ok_or_else(|| ScenarioError::file(&file, "is missing"))?;
    let about: PaperSpec = toml::from_str(text).map_err(|error| ScenarioError::from_toml(&file, text, &error))?;
    let figures = about.figures.iter().map(|figure| format!("{name}/{figure}")).collect();
    Ok(Paper { name, about, figures })
}

/// The figures of a paper ("paced-chirping"), one of them ("paced-chirping/fig6") with those that
/// continue it, or with an empty name all.
///
/// # Errors
/// A name that nothing has, with the nearest one that something has.
pub fn figures(wanted: &str) -> Result<Vec<Figure>, ScenarioError> {
    let papers = papers()?;
    let wanted = wanted.trim_end_matches('/');
    let all: Vec<&str> = papers.iter().flat_map(|paper| &paper.figures).map(String::as_str).collect();
    let continues = |figure: &str| {
        let (Some((paper, first)), Some((_, name))) = (wanted.split_once('/'), figure.split_once('/')) else {
            return false;
        };
        let parts = papers.iter().find(|one| one.name == paper && figure.starts_with(&format!("{paper}/")));
        parts
            .and_then(|paper| paper.about.continued.get(first))
            .is_some_and(|parts| parts.iter().any(|part| part == name))
    };
    let is_meant = |figure: &&str| {
        wanted.is_empty() || *figure == wanted || figure.split('/').next() == Some(wanted) || continues(figure)
    };
    let meant: Vec<&str> = all.iter().copied().filter(is_meant).collect();
    if meant.is_empty() {
        let names = papers.iter().map(|paper| paper.name.as_str()).chain(all);
        let meant = nearest(wanted, names).map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
        let known = papers.iter().map(|paper| paper.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(ScenarioError::file(
            wanted,
            format!(
                "there is no such paper or figure; papers are {known}, and a file of your own ends in .toml{meant}"
            ),
        ));
    }
    meant.into_iter().map(embedded).collect()
}

/// A figure that comes with the program.
fn embedded(name: &str) -> Result<Figure, ScenarioError> {
    let file = format!("{name}.toml");
    let text = EXPERIMENTS.get_file(&file).and_then(|file| file.contents_utf8());
    let text = text.ok_or_else(|| ScenarioError::file(&file, "is missing"))?;
    let mut figure = Figure::parse(&format!("experiments/{file}"), text, None)?;
    name.clone_into(&mut figure.name);
    Ok(figure)
}
