//! Keys of a path one by one, to be laid over a path.

use std::path::Path as FilePath;
use std::str::FromStr;

use serde::Deserialize;
use toml::{Table, Value};

use flowstart_units::Rate;

use super::error::in_words;
use super::profile::SCENARIO;
use super::{PathSpec, RateSpec, Scenario, SpecError};

/// One key of a path and its value, as a profile's file would have them: `KEY = VALUE` in TOML.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPart {
    /// The key, from the table of the path inwards.
    key: Vec<String>,
    value: Value,
}

/// Keys of scenario files that are none of a path's, and who would have them.
const OF_SCENARIOS: [&str; 5] = ["link", "flow", "udp", "arrivals", "web"];
/// The table of a path, which is not written here.
const TABLE: &str = "path";

impl FromStr for PathPart {
    type Err = SpecError;

    /// Reads "jitter = \"2 ms\"" or "medium.shaper.burst = \"32 kB\"".
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let example = "such as jitter = \"2 ms\"";
        if !text.contains('=') {
            return Err(SpecError::new(format!("\"{text}\" has no value; write KEY = VALUE, {example}")));
        }
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let message = in_words(&error);
            SpecError::new(format!("{text} is no KEY = VALUE in TOML ({message}); texts need quotes, {example}"))
        })?;
        // Whether a table is a value or leads to a key is only seen in what is written.
        let key =
            key_of(text).ok_or_else(|| SpecError::new(format!("{text} is no KEY = VALUE; write one, {example}")))?;
        if key[0] == TABLE {
            return Err(SpecError::new(format!(
                "{text} names the table [path], which every key is of; leave \"path.\" out"
            )));
        }
        if let Some(other) = OF_SCENARIOS.iter().find(|other| key[0] == **other) {
            return Err(SpecError::new(format!(
                "{other} is no key of a path, which is one bottleneck and the way back; it stands in a scenario file"
            )));
        }
        let mut value = Value::Table(table);
        for name in &key {
            value = match value {
                // Whatever stands beside it is a second key.
                Value::Table(mut table) if table.len() == 1 => table.remove(name),
                _ => None,
            }
            .ok_or_else(|| {
                let line = text.replace('\n', ", ");
                SpecError::new(format!("{line} is more than one key; write one KEY = VALUE at a time"))
            })?;
        }
        Ok(Self { key, value })
    }
}

/// The parts of the key that stands before the first `=` outside of quotes.
fn key_of(text: &str) -> Option<Vec<String>> {
    let mut quote = None;
    let end = text.char_indices().find(|(_, letter)| {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(*letter),
            (Some(open), letter) if open == *letter => quote = None,
            _ => {}
        }
        quote.is_none() && *letter == '='
    })?;
    let table: Table = format!("{} = 0", &text[..end.0]).parse().ok()?;
    let mut key = Vec::new();
    let mut inner = &table;
    loop {
        let (name, value) = inner.iter().next()?;
        key.push(name.clone());
        match value {
            Value::Table(table) => inner = table,
            _ => return Some(key),
        }
    }
}

impl PathPart {
    /// The first part of its key, which is a key of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.key[0]
    }

    /// Checks that no key is said again by a later one, which alone would count.
    ///
    /// # Errors
    /// One sentence about the first two keys of which one would take the place of the other.
    pub fn each_once(parts: &[Self]) -> Result<(), SpecError> {
        for (place, later) in parts.iter().enumerate() {
            if let Some(earlier) = parts[..place].iter().find(|earlier| earlier.key.starts_with(&later.key)) {
                return Err(SpecError::new(format!(
                    "{later} would take the place of {earlier}; leave one of them out"
                )));
            }
        }
        Ok(())
    }

    /// Sets the key in the table of a path.
    fn set(&self, table: &mut Table) -> Result<(), SpecError> {
        let (last, outer) = self.key.split_last().ok_or_else(|| SpecError::new("no key"))?;
        let mut table = table;
        for (depth, name) in outer.iter().enumerate() {
            let inner = table.entry(name.clone()).or_insert_with(|| Value::Table(Table::new()));
            table = match inner {
                Value::Table(inner) => inner,
                other => {
                    let outer = self.key[..=depth].join(".");
                    return Err(SpecError::new(format!(
                        "{outer} is {other}, which has no key \"{last}\"; set {outer} as a whole"
                    )));
                }
            };
        }
        table.insert(last.clone(), self.value.clone());
        Ok(())
    }
}

impl std::fmt::Display for PathPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {}", self.key.join("."), self.value)
    }
}

impl PathSpec {
    /// The path with these keys set, one after another, whatever it has. A queue with a limit of
    /// its own goes before a buffer that is not among them, and a round-trip time before a delay.
    /// The traces they name are read relative to the working folder.
    ///
    /// # Errors
    /// One sentence about the first key or value that is wrong. What is wrong with the path as a
    /// whole is told when it is used.
    pub fn with(&self, parts: &[PathPart]) -> Result<Self, SpecError> {
        if parts.is_empty() {
            return Ok(self.clone());
        }
        self.laid_over(parts).map_err(|whole| {
            // Who is wrong alone is to blame.
            let alone = |part: &&PathPart| self.laid_over(std::slice::from_ref(*part)).is_err_and(|why| why == whole);
            match parts.iter().find(alone) {
                Some(part) => SpecError::new(format!("{part}: {whole}")),
                None => whole,
            }
        })
    }

    /// Checks what these keys were set to in this path, once everything else is set, too.
    ///
    /// # Errors
    /// One sentence if it is one of them that makes the path one that cannot be simulated.
    pub fn check_keys(&self, parts: &[PathPart]) -> Result<(), SpecError> {
        if parts.is_empty() {
            return Ok(());
        }
        let mut scenario = Scenario::parse("path", SCENARIO)?;
        scenario.path = Some(self.clone());
        let Err(problem) = scenario.check() else { return Ok(()) };
        let Some(key) = problem.key().strip_prefix("path.") else { return Ok(()) };
        let first = key.split(['.', '[']).next().unwrap_or_default();
        match parts.iter().rev().find(|part| part.name() == first) {
            Some(part) if key == first || key == part.key.join(".") => {
                Err(SpecError::new(format!("{part}: {}", problem.message())))
            }
            Some(part) => Err(SpecError::new(format!("{part}: {key}: {}", problem.message()))),
            // Something else is wrong, which is told when the path is used.
            None => Ok(()),
        }
    }

    fn laid_over(&self, parts: &[PathPart]) -> Result<Self, SpecError> {
        let named = |name: &str| parts.iter().any(|part| part.name() == name);
        let mut path = self.clone();
        // A recorded link has many steps.
        let light = RateSpec::Constant(Rate::from_mbps(1));
        let capacity = (!named("capacity")).then(|| std::mem::replace(&mut path.capacity, light));
        let mut table = Table::try_from(&path).map_err(|error| SpecError::new(error.to_string()))?;
        for part in parts {
            part.set(&mut table)?;
        }
        let mut path = Self::deserialize(table).map_err(|error| SpecError::new(in_words(&error)))?;
        if let Some(capacity) = capacity {
            path.capacity = capacity;
        }
        if named("rtt") && !named("delay") {
            path.delay = None;
        }
        let (buffer, reverse_buffer) = (path.buffer, path.reverse_buffer);
        path.heed_limits();
        if named("buffer") {
            path.buffer = buffer;
        }
        if named("reverse_buffer") {
            path.reverse_buffer = reverse_buffer;
        }
        let mut scenario = Scenario::parse("path", SCENARIO)?;
        scenario.path = Some(path);
        scenario.resolve(FilePath::new("."))?;
        scenario.path.ok_or_else(|| SpecError::new("nothing is left of the path"))
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::{Bytes, Span};

    use super::*;
    use crate::{Buffer, Profile};

    fn part(text: &str) -> PathPart {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn profile(name: &str) -> PathSpec {
        name.parse::<Profile>().unwrap().path
    }

    #[test]
    fn a_key_means_what_it_means_in_a_profile_and_leaves_the_others_alone() {
        let cable = profile("cable");
        let path = cable.with(&[part("jitter = \"2 ms\""), part("merged_acks = { within = \"2 ms\", most = 44 }")]);
        let path = path.unwrap();
        assert_eq!(path.jitter.unwrap().0.spread, Span::from_millis(2));
        assert_eq!(path.merged_acks.unwrap().most, Some(44));
        assert_eq!(PathSpec { jitter: cable.jitter, merged_acks: cable.merged_acks, ..path }, cable);
        assert_eq!(cable.with(&[]).unwrap(), cable);
    }

    #[test]
    fn a_dotted_key_is_one_of_a_table_and_a_table_takes_the_place_of_one() {
        let cable = profile("cable");
        let shaper = cable.medium.shaper.unwrap();
        let dotted = cable.with(&[part("medium.shaper.burst = \"32 kB\"")]).unwrap().medium.shaper.unwrap();
        assert_eq!((dotted.burst, dotted.line), (Bytes::new(32_000), shaper.line));
        let whole = cable.with(&[part("medium.shaper = { burst = \"32 kB\" }")]).unwrap().medium.shaper.unwrap();
        assert_eq!((whole.burst, whole.line), (Bytes::new(32_000), None));
        // Two keys that a table needs may come one after the other.
        let fading = [part("capacity = { mean = \"9 Mbit/s\", spread = 1.0, correlation = \"1 s\" }")];
        assert!(matches!(cable.with(&fading).unwrap().capacity, RateSpec::Fading(_)));
    }

    #[test]
    fn a_queue_with_a_limit_of_its_own_goes_before_a_buffer_and_a_round_trip_before_a_delay() {
        let path = PathSpec { buffer: Some(Buffer::Bdp(1.0)), delay: Some(Span::from_millis(30)), ..profile("fibre") };
        let pie = path.with(&[part("queue = \"pie\""), part("rtt = \"8 ms\"")]).unwrap();
        assert_eq!((pie.queue.0.name(), pie.buffer, pie.delay), ("pie", None, None));
        let said = path.with(&[part("rtt = \"8 ms\""), part("delay = \"1 ms\"")]).unwrap();
        assert_eq!((said.buffer, said.delay), (path.buffer, Some(Span::from_millis(1))));
    }

    #[test]
    fn a_value_out_of_range_is_told_with_the_key_that_has_it() {
        for (texts, expected) in [
            (&["medium.handover = { every = \"10 ms\", spread = \"1 ms\", outage = \"50 ms\" }"][..], "handover: "),
            (&["capacity = [{ at = \"1 s\", rate = \"3 Mbit/s\" }]"], "the first step of a rate schedule must be at"),
            (&["capacity = []"], "a rate schedule needs at least one step"),
            (&["loss = { kind = \"bernoulli\", probability = 2 }"], "2 is not a probability"),
            (&["merged_acks = { within = \"1 ms\", most = 0 }"], "merged_acks.most: at least one ACK"),
            (&["overhead = 99999", "jitter = \"1 ms\""], "99999 bytes"),
        ] {
            let parts: Vec<PathPart> = texts.iter().map(|text| part(text)).collect();
            let path = profile("fibre").with(&parts).unwrap();
            let error = path.check_keys(&parts).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{}: ", parts[0])) && error.contains(expected), "{error}");
            // Others are not to blame.
            assert_eq!(path.check_keys(&[part("mark = \"none\"")]), Ok(()));
        }
        let right = [part("jitter = \"1 ms\"")];
        assert_eq!(profile("fibre").with(&right).unwrap().check_keys(&right), Ok(()));
    }

    #[test]
    fn a_key_that_a_later_one_says_again_is_refused() {
        let of = |texts: [&str; 2]| PathPart::each_once(&texts.map(part));
        let twice = of(["jitter = \"1 ms\"", "jitter = \"2 ms\""]).unwrap_err();
        let said = "jitter = \"2 ms\" would take the place of jitter = \"1 ms\"; leave one of them out";
        assert_eq!(twice.to_string(), said);
        assert!(of(["medium.shaper.burst = \"32 kB\"", "medium.shaper = { burst = \"9 kB\" }"]).is_err());
        assert_eq!(of(["medium.shaper = { burst = \"9 kB\" }", "medium.shaper.line = \"1 Gbit/s\""]), Ok(()));
        assert_eq!(of(["medium.shaper.burst = \"9 kB\"", "medium.shaper.line = \"1 Gbit/s\""]), Ok(()));
    }

    #[test]
    fn whoever_passes_errors_on_passes_these_on() {
        fn with(text: &str) -> Result<PathSpec, Box<dyn std::error::Error + Send + Sync>> {
            Ok(text.parse::<Profile>()?.path.with(&["jitter = \"2 ms\"".parse()?])?)
        }
        assert!(with("cable").is_ok());
        assert!(with("cabel").unwrap_err().to_string().contains("did you mean \"cable\"?"));
    }

    #[test]
    fn what_is_wrong_is_one_sentence_with_the_key_and_the_nearest_right_one() {
        let wrong = |text: &str| match text.parse::<PathPart>() {
            Ok(part) => profile("wifi").with(&[self::part("jitter = \"2 ms\""), part]).unwrap_err(),
            Err(error) => error,
        };
        for (text, expected) in [
            ("jiter = \"2 ms\"", "did you mean `jitter`?"),
            ("medium.shapr.burst = \"32 kB\"", "did you mean `shaper`?"),
            ("jitter = 2 ms", "texts need quotes"),
            ("jitter = \"2 bananas\"", "2 bananas"),
            ("jitter", "has no value"),
            ("", "has no value"),
            ("overhead.size = 3", "overhead is 0, which has no key \"size\""),
            ("quick_start.middlebox = true", "expected a name in quotes"),
            ("link = []", "link is no key of a path"),
            ("path.rtt = \"1 ms\"", "leave \"path.\" out"),
            ("rtt = \"1 ms\"\ndelay = \"1 ms\"", "more than one key"),
            ("capacity = { trace = \"no/such\" }", "no/such"),
        ] {
            let error = wrong(text).to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{text}: {error}");
        }
        assert!(
            wrong("jiter = \"2 ms\"").to_string().starts_with("jiter = \"2 ms\": "),
            "the one that is wrong is named"
        );
    }
}
