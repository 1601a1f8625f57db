//! Rough paths: the kinds of the rough grid, from `rough.toml` and the profiles.

use std::sync::{LazyLock, Mutex, PoisonError};

use serde::Deserialize;

use flowstart_scenario::{PathSpec, Profile};
use flowstart_units::Rate;

/// A kind of rough path.
#[derive(Debug)]
pub(crate) struct Rough {
    /// Its name.
    pub(crate) name: String,
    /// The largest capacity at which it makes sense.
    pub(crate) most: Rate,
    profile: Profile,
}

impl Rough {
    /// The path at this capacity.
    pub(crate) fn path(&self, capacity: Rate) -> PathSpec {
        self.profile.with_capacity(capacity)
    }

    /// The path as its file has it.
    pub(crate) fn as_is(&self) -> &PathSpec {
        &self.profile.path
    }
}

/// The file of kinds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kind: Vec<Kind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    #[serde(default = "unlimited")]
    most: Rate,
    path: PathSpec,
}

fn unlimited() -> Rate {
    Rate::UNLIMITED
}

/// The kinds of the grid, and behind them the profiles under their names.
static ROUGH: LazyLock<(Vec<Rough>, usize)> = LazyLock::new(|| {
    let file: Result<File, _> = toml::from_str(include_str!("../rough.toml"));
    let kinds = file.map_or_else(|_| Vec::new(), |file| file.kind);
    let mut rough: Vec<Rough> = kinds
        .into_iter()
        .map(|kind| {
            let profile = Profile { name: kind.name.clone(), about: String::new(), path: kind.path };
            Rough { name: kind.name, most: kind.most, profile }
        })
        .collect();
    let own = rough.len();
    rough.extend(Profile::all().into_iter().map(|profile| Rough {
        name: profile.name.clone(),
        most: Rate::UNLIMITED,
        profile,
    }));
    (rough, own)
});

/// The kinds of the rough grid.
pub(crate) fn kinds() -> &'static [Rough] {
    &ROUGH.0[..ROUGH.1]
}

/// The profiles.
pub(crate) fn profiles() -> &'static [Rough] {
    &ROUGH.0[ROUGH.1..]
}

/// Kinds and profiles.
pub(crate) fn all() -> &'static [Rough] {
    &ROUGH.0
}

/// The names of the rough grid's paths: its kinds, and behind them the profiles.
#[must_use]
pub fn rough_names() -> Vec<&'static str> {
    all().iter().map(|rough| rough.name.as_str()).collect()
}

/// The path of one of [`rough_names`], at a capacity of one's own or at that of its file. A kind
/// that makes no sense at such a capacity has the largest at which it does.
#[must_use]
pub fn rough_path(name: &str, capacity: Option<Rate>) -> Option<PathSpec> {
    let rough = all().iter().find(|rough| rough.name == name)?;
    Some(match capacity {
        Some(capacity) => rough.path(capacity.min(rough.most)),
        None => rough.profile.path.clone(),
    })
}

/// Profiles from files, as long as the program runs.
static OWN: Mutex<Vec<&'static Rough>> = Mutex::new(Vec::new());

/// The profile in a file, from now on known by the file's name.
pub(crate) fn from_file(file: &str) -> Result<&'static str, String> {
    let profile: Profile = file.parse()?;
    let rough: &'static Rough = Box::leak(Box::new(Rough { name: file.to_owned(), most: Rate::UNLIMITED, profile }));
    OWN.lock().unwrap_or_else(PoisonError::into_inner).push(rough);
    Ok(&rough.name)
}

/// That of this name.
pub(crate) fn named(name: &str) -> Option<&'static Rough> {
    let own = || OWN.lock().unwrap_or_else(PoisonError::into_inner).iter().find(|rough| rough.name == name).copied();
    all().iter().find(|rough| rough.name == name).or_else(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_the_capacity_that_is_asked_for_if_it_makes_sense() {
        let nominal = |name, capacity| rough_path(name, capacity).unwrap().capacity.nominal();
        assert_eq!(nominal("wifi", None), Rate::from_mbps(150));
        let bounded = kinds().iter().find(|kind| !kind.most.is_unlimited()).unwrap();
        for name in rough_names() {
            let most = named(name).unwrap().most;
            assert_eq!(nominal(name, Some(Rate::from_mbps(7))), Rate::from_mbps(7).min(most), "{name}");
        }
        assert_eq!(nominal(&bounded.name, Some(Rate::from_mbps(100_000))), bounded.most);
        assert!(rough_path("none", None).is_none());
    }
}
