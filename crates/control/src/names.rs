//! Names of algorithms as people write them, and what to say when one is not known.

use alloc::borrow::ToOwned;
use alloc::string::String;

use core::fmt;

#[cfg(feature = "std")]
use strsim::levenshtein;

/// A name that no algorithm of this kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    known: &'static [&'static str],
}

impl UnknownName {
    /// Nothing of `kind` is called `name`; these names are `known`.
    #[must_use]
    pub fn new(kind: &'static str, name: &str, known: &'static [&'static str]) -> Self {
        Self { kind, name: name.to_owned(), known }
    }

    /// The known name that is probably meant, if one is near.
    #[must_use]
    #[cfg(feature = "std")]
    pub fn nearest(&self) -> Option<&'static str> {
        let name = canonical(&self.name);
        // Up to a third of the letters wrong still looks like a typing error; "bbr" for "reno" does
        // not.
        let near = |known: &&str| levenshtein(&name, known) <= (known.len() / 3).max(1);
        let prefix = |known: &&str| name.len() >= 3 && known.starts_with(&name);
        let by_distance = self.known.iter().copied().filter(near).min_by_key(|known| levenshtein(&name, known));
        by_distance.or_else(|| self.known.iter().copied().find(prefix))
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} {:?}", self.kind, self.name)?;
        #[cfg(feature = "std")]
        if let Some(nearest) = self.nearest() {
            write!(f, ", did you mean {nearest:?}?")?;
        }
        write!(f, " (known: {})", self.known.join(", "))
    }
}

impl core::error::Error for UnknownName {}

/// The spelling that names are compared in: lower case, words joined by underscores, "++" in words.
#[must_use]
pub fn canonical(name: &str) -> String {
    name.trim().to_lowercase().replace("++", "_plus_plus").replace(['-', ' '], "_")
}

/// A value of a configuration outside its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidConfig {
    /// The field, as written in a scenario file.
    pub field: &'static str,
    /// What the field must be.
    pub must: &'static str,
}

impl InvalidConfig {
    /// `Ok` if `holds`, else the complaint that `field` must be `must`.
    /// # Errors
    /// If it does not hold.
    pub fn unless(holds: bool, field: &'static str, must: &'static str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { field, must }) }
    }
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}", self.field, self.must)
    }
}

impl core::error::Error for InvalidConfig {}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["slow_start", "hystart", "hystart_plus_plus"];

    #[test]
    fn a_typing_error_is_answered_with_the_nearest_name() {
        let error = UnknownName::new("flow start", "hystrat", KNOWN);
        assert_eq!(error.nearest(), Some("hystart"));
        assert_eq!(
            error.to_string(),
            "unknown flow start \"hystrat\", did you mean \"hystart\"? (known: slow_start, hystart, hystart_plus_plus)"
        );
    }

    #[test]
    fn a_name_far_from_all_gets_no_suggestion() {
        assert_eq!(UnknownName::new("flow start", "bbr", KNOWN).nearest(), None);
        assert_eq!(UnknownName::new("flow start", "", KNOWN).nearest(), None);
    }

    #[test]
    fn the_beginning_of_a_name_suggests_it() {
        assert_eq!(UnknownName::new("flow start", "slow", KNOWN).nearest(), Some("slow_start"));
    }

    #[test]
    fn names_are_compared_in_lower_case_with_underscores_and_plus_in_words() {
        assert_eq!(canonical(" HyStart++ "), "hystart_plus_plus");
        assert_eq!(canonical("Slow-Start"), "slow_start");
        assert_eq!(canonical("paced chirping"), "paced_chirping");
    }

    #[test]
    fn two_letters_suggest_nothing_and_three_do() {
        assert_eq!(UnknownName::new("flow start", "sl", KNOWN).nearest(), None);
        assert_eq!(UnknownName::new("flow start", "slo", KNOWN).nearest(), Some("slow_start"));
    }

    #[test]
    fn a_value_out_of_range_is_named_with_what_it_must_be() {
        assert_eq!(InvalidConfig::unless(true, "mss", "at least 1"), Ok(()));
        let error = InvalidConfig::unless(false, "mss", "at least 1").unwrap_err();
        assert_eq!(error.to_string(), "mss must be at least 1");
    }
}
