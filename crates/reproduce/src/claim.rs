//! Checks of a claim when its file is read.

use flowstart_measure::{Bound, Dimension, Measured};
use flowstart_scenario::{Problem, nearest};

use super::expectation::Expectation;
use super::figure::{Claim, ClaimSpec, Figure, Subject, Variant};
use super::measure::Measure;

/// What a run without a value counts as: a value, or "> VALUE" or "< VALUE".
fn read_missing(text: &str, dimension: Dimension) -> Result<Measured, String> {
    let text = text.trim();
    let (rest, bound) = match (text.strip_prefix('>'), text.strip_prefix('<')) {
        (Some(rest), _) => (rest, Bound::AtLeast),
        (_, Some(rest)) => (rest, Bound::AtMost),
        _ => (text, Bound::Exact),
    };
    Ok(Measured { value: dimension.read(rest)?, bound })
}

impl Figure {
    /// Checks a claim and finds its cases.
    pub(super) fn claim(&self, spec: ClaimSpec) -> Result<Claim, Problem> {
        let slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if spec.id.is_empty() || !spec.id.chars().all(slug) {
            return Err(Problem::at("id", "is made of small letters, digits and hyphens"));
        }
        if self.claims.iter().any(|other| other.spec.id == spec.id) {
            return Err(Problem::at("id", format!("there are two claims \"{}\"", spec.id)));
        }
        let Some(origin) = spec.origin else {
            let whose =
                "is missing; say whose claim it is: origin = \"paper\", or \"ours\" if the paper does not say it";
            return Err(Problem::at("origin", whose));
        };
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
        let missing = spec.missing.as_deref().map(|text| read_missing(text, spec.measure.dimension()));
        let missing = missing.transpose().map_err(|error| Problem::at("missing", error))?;
        let readings = if spec.over_variants.is_some() { vec![Vec::new()] } else { self.readings(&cases) };
        Ok(Claim { spec, origin, dimension, expectation, cases, readings, missing })
    }

    /// The names of a claim's cases: of its variants, or one for all of them.
    pub(super) fn names_of_cases(&self, claim: &Claim) -> Vec<String> {
        match claim.spec.over_variants {
            Some(_) => vec![format!("{} variants", claim.cases.len())],
            None => claim.cases.iter().map(|(variant, _)| self.variants[*variant].name.clone()).collect(),
        }
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
        let asks = measure.asks();
        if let Some(name) = asks.flow {
            known("flow", name, compiled.groups.iter().map(|group| group.name.as_str()).collect())?;
        }
        if let Some(name) = asks.link {
            known("link", name, compiled.links.iter().map(String::as_str).collect())?;
        }
        if asks.rtt && scenario.path.is_none() {
            return Err(Problem::at("kind", "needs the base RTT of a [path]; with [[link]] tables give over and hold"));
        }
        let end = scenario.duration;
        if let Some((key, _)) = asks.from.filter(|(_, from)| *from >= asks.until.unwrap_or(end)) {
            return Err(Problem::at(key, format!("the window of time is empty{}, which lasts {end}", within())));
        }
        Ok(())
    }
}
