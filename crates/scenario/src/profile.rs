//! Profiles: paths as people have them, each a file with the sources of its numbers.

use std::path::Path as FilePath;
use std::str::FromStr;

use serde::Deserialize;

use flowstart_units::{Rate, Span};

use super::error::{ScenarioError, SpecError};
use super::{PathSpec, RateSpec, Scenario, StepSpec, nearest};

/// Makes the list of built-in profiles from the files in `profiles`.
macro_rules! profiles {
    ($($name:literal),*) => {
        /// Names and files of the built-in profiles.
        const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../profiles/", $name, ".toml")))),*];

        /// The names of the built-in profiles.
        pub const PROFILES: &[&str] = &[$($name),*];
    };
}

profiles!["wifi", "cable", "dsl", "fibre", "lte", "starlink", "geo", "datacentre"];

/// A path with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The name of a built-in one, or the file it came from.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// The path.
    pub path: PathSpec,
}

/// What stands in the file of a profile.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    about: String,
    path: PathSpec,
}

/// A flow that makes a scenario of a path.
pub(super) const SCENARIO: &str = "[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[flow]]\n";

impl Profile {
    /// Reads a profile; the files it names are read relative to `folder`.
    fn parse(name: &str, text: &str, folder: &FilePath) -> Result<Self, ScenarioError> {
        let table = toml::de::DeTable::parse(text).map_err(|error| ScenarioError::from_toml(name, text, &error))?;
        let file: ProfileFile = super::error::read(name, text, table)?;
        let mut scenario = Scenario::parse(name, SCENARIO)?;
        scenario.path = Some(file.path.clone());
        scenario.resolve(folder)?;
        scenario.check().map_err(|problem| problem.locate(name, text))?;
        Ok(Self { name: name.to_owned(), about: file.about, path: scenario.path.unwrap_or(file.path) })
    }

    /// All built-in profiles.
    #[must_use]
    pub fn all() -> Vec<Self> {
        PROFILES.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// The path with another capacity; see [`PathSpec::scaled_to`].
    #[must_use]
    pub fn with_capacity(&self, capacity: Rate) -> PathSpec {
        self.path.scaled_to(capacity)
    }
}

/// Round trips over which the mean of a capacity is taken that changes and does not repeat: as long
/// as races watch newcomers.
const WATCHED_RTTS: u64 = 40;

impl PathSpec {
    /// The capacity in the mean: over a period if it repeats, else over the first 40 round trips.
    /// The largest if nothing passes in that time.
    #[must_use]
    pub fn mean_capacity(&self) -> Rate {
        let mean = self.capacity.mean(Span::ZERO, self.rtt * WATCHED_RTTS);
        if mean == Rate::ZERO { self.capacity.nominal() } else { mean }
    }

    /// The path with another [mean capacity](Self::mean_capacity): everything that goes with it
    /// (the steps of a trace, the rate of the way back, of policers and of the wires behind
    /// shapers) changes in proportion.
    #[must_use]
    pub fn scaled_to(&self, capacity: Rate) -> Self {
        let mut path = self.clone();
        let before = path.mean_capacity();
        let scale = |rate: Rate| {
            // Silent seconds stay silent.
            if before.as_bps() == 0 || rate.as_bps() == 0 || rate.is_unlimited() {
                return rate;
            }
            rate.mul_f64(capacity.as_bps() as f64 / before.as_bps() as f64).max(Rate::from_bps(1))
        };
        let step = |step: &StepSpec| StepSpec { rate: scale(step.rate), at: step.at };
        let scaled = |rate: &RateSpec, nominal: Rate| match rate {
            RateSpec::Steps(steps, period) => RateSpec::Steps(steps.iter().map(step).collect(), *period),
            other => other.with_nominal(nominal),
        };
        path.capacity = scaled(&path.capacity, capacity);
        path.reverse_capacity = path.reverse_capacity.map(|rate| scaled(&rate, scale(rate.nominal())));
        for way in &mut path.ways {
            way.capacity = way.capacity.take().map(|rate| scaled(&rate, scale(rate.nominal())));
        }
        let ways = path.ways.iter_mut().filter_map(|way| way.medium.as_mut());
        for medium in [&mut path.medium, &mut path.reverse_medium].into_iter().chain(ways) {
            if let Some(shaper) = &mut medium.shaper {
                (shaper.peak, shaper.line) = (shaper.peak.map(scale), shaper.line.map(scale));
            }
            if let Some(policer) = &mut medium.policer {
                policer.rate = scale(policer.rate);
            }
        }
        path
    }
}

impl FromStr for Profile {
    type Err = SpecError;

    /// The built-in profile of this name, or that of a file, whose name ends in `.toml`.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let trimmed = text.trim();
        let path = FilePath::new(trimmed);
        if path.extension().is_some_and(|ending| ending == "toml") {
            let folder = path.parent().unwrap_or(FilePath::new("."));
            let text = super::files::read(path)?;
            return Ok(Self::parse(trimmed, &text, folder)?);
        }
        let wanted = trimmed.to_lowercase().replace(['-', '_', ' '], "");
        match BUILT_IN.iter().find(|(name, _)| *name == wanted) {
            Some((name, text)) => Ok(Self::parse(name, text, FilePath::new("."))?),
            None => {
                let meant = nearest(&wanted, PROFILES.iter().copied())
                    .map(|meant| format!("; did you mean \"{meant}\"?"))
                    .unwrap_or_default();
                let known = PROFILES.join(", ");
                Err(SpecError::new(format!(
                    "there is no profile \"{trimmed}\"; there are {known}, and files that end in .toml{meant}"
                )))
            }
        }
    }
}

impl RateSpec {
    /// The same kind of rate with another nominal one; steps and traces become constant.
    #[must_use]
    pub fn with_nominal(&self, rate: Rate) -> Self {
        match self {
            Self::Fading(fading) => Self::Fading(super::FadingSpec { mean: rate, ..*fading }),
            _ => Self::Constant(rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_can_be_simulated_at_its_own_and_at_other_capacities() {
        assert_eq!(Profile::all().len(), PROFILES.len());
        for (name, text) in BUILT_IN {
            let profile = Profile::parse(name, text, FilePath::new(".")).unwrap_or_else(|error| panic!("{error}"));
            assert!(text.contains("# Sources."), "{name} says where its numbers come from");
            assert!(!profile.about.is_empty() && profile.about.len() < 120, "{name}");
            for mbps in [5, 20, 100, 400] {
                let path = profile.with_capacity(Rate::from_mbps(mbps));
                assert_eq!(path.capacity.nominal(), Rate::from_mbps(mbps), "{name}");
                let mut scenario = Scenario::parse(name, SCENARIO).unwrap();
                scenario.path = Some(path);
                scenario.check().unwrap_or_else(|problem| panic!("{name} at {mbps}: {}", problem.locate(name, "")));
            }
        }
    }

    #[test]
    fn another_capacity_takes_the_way_back_along() {
        let cable: Profile = "cable".parse().unwrap();
        let path = cable.with_capacity(Rate::from_mbps(100));
        assert_eq!(path.reverse_capacity, Some(RateSpec::Constant(Rate::from_mbps(10))));
        assert_eq!(path.medium.shaper.unwrap().line, Some(Rate::from_mbps(500)));
    }

    fn own(path: &str) -> Profile {
        Profile::parse("own.toml", &format!("about = \"own\"\n[path]\n{path}"), FilePath::new(".")).unwrap()
    }

    fn rates(spec: &RateSpec) -> Vec<f64> {
        match spec {
            RateSpec::Steps(steps, _) => steps.iter().map(|step| step.rate.as_mbps_f64()).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn another_capacity_is_the_mean_of_one_in_steps_and_keeps_its_shape() {
        let path = own(r#"
            capacity = { period = "1 s", steps = [{ at = "0 s", rate = "10 Mbit/s" }, { at = "600 ms", rate = "0 bit/s" }] }
            rtt = "20 ms"
            reverse_capacity = [{ at = "0 s", rate = "1 Mbit/s" }, { at = "5 s", rate = "2 Mbit/s" }]
        "#);
        // 6 Mbit/s in the mean.
        assert_eq!(path.path.mean_capacity(), Rate::from_mbps(6));
        let path = path.with_capacity(Rate::from_mbps(30));
        assert_eq!(path.mean_capacity(), Rate::from_mbps(30));
        assert_eq!(rates(&path.capacity), [50.0, 0.0]);
        assert_eq!(rates(&path.reverse_capacity.unwrap()), [5.0, 10.0]);
    }

    #[test]
    fn what_does_not_repeat_has_the_mean_of_the_first_40_round_trips() {
        // 0.8 s: half of it each; the last step comes after it.
        let path = own(r#"
            capacity = [{ at = "0 s", rate = "10 Mbit/s" }, { at = "400 ms", rate = "30 Mbit/s" }, { at = "2 s", rate = "1 Mbit/s" }]
            rtt = "20 ms"
        "#);
        assert_eq!(rates(&path.with_capacity(Rate::from_mbps(40)).capacity), [20.0, 60.0, 2.0]);
        // Silent for so long: the largest counts.
        let silent = own(r#"
            capacity = [{ at = "0 s", rate = "0 bit/s" }, { at = "2 s", rate = "30 Mbit/s" }, { at = "3 s", rate = "10 Mbit/s" }]
            rtt = "20 ms"
        "#);
        assert_eq!(rates(&silent.with_capacity(Rate::from_mbps(60)).capacity), [0.0, 60.0, 20.0]);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_a_missing_file_with_its_name() {
        let error = "wify".parse::<Profile>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"wifi\"?") && error.contains("starlink"), "{error}");
        assert!("no/such.toml".parse::<Profile>().unwrap_err().to_string().contains("no/such.toml"));
        assert_eq!("Wi-Fi".parse::<Profile>().unwrap().name, "wifi");
    }
}
