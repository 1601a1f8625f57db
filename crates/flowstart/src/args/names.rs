//! Arguments that are names: read, and completed by the shell.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use flowstart_race::Contestant;
use flowstart_scenario::{PROFILES, Profile};

/// Reads contestants, and has names to complete: the short ones, and every start with every
/// avoidance.
#[derive(Clone)]
pub(crate) struct ContestantParser;

impl TypedValueParser for ContestantParser {
    type Value = Contestant;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Contestant, clap::Error> {
        (|text: &str| text.parse::<Contestant>()).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Contestant::names().into_iter().map(PossibleValue::new)))
    }
}

/// Reads profiles, and has the names of the built-in ones to complete.
#[derive(Clone)]
pub(super) struct ProfileParser;

impl TypedValueParser for ProfileParser {
    type Value = Profile;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Profile, clap::Error> {
        (|text: &str| text.parse::<Profile>()).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(PROFILES.iter().copied().map(PossibleValue::new)))
    }
}
