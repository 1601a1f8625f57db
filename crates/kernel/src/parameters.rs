//! Parameters of the programs: 32-bit integers in a read-only table that is filled before the
//! program is loaded.

use std::fmt;

use flowstart_units::{Rate, Span};

use crate::Algorithm;

/// How a parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Count,
    /// A decimal number, kept in units of 1/1024.
    Ratio,
    /// A time with its unit, kept in nanoseconds.
    Time,
    /// `on` or `off`.
    Switch,
    /// One of these words, kept as its place in the list.
    Choice(&'static [&'static str]),
}

/// Something that can be set when a program is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// How it is written.
    pub kind: Kind,
    /// What it is unless set, as it is kept.
    pub default: u32,
    /// The least it may be, as it is kept.
    pub least: u32,
    /// The most it may be, as it is kept.
    pub most: u32,
    /// What it means.
    pub help: &'static str,
}

/// Units of a ratio.
const RATIO_ONE: f64 = 1024.0;

impl Parameter {
    fn read(&self, text: &str) -> Result<u32, String> {
        let value = match self.kind {
            Kind::Count => text.parse().map_err(|_| "is not a whole number".to_owned())?,
            Kind::Ratio => {
                let ratio: f64 = text.parse().map_err(|_| "is not a number".to_owned())?;
                let scaled = (ratio * RATIO_ONE).round();
                if !(0.0..=f64::from(u32::MAX)).contains(&scaled) {
                    return Err(self.range());
                }
                scaled as u32
            }
            Kind::Time => {
                let span: Span = text.parse().map_err(|error| format!("is not a time: {error}"))?;
                u32::try_from(span.as_nanos()).map_err(|_| self.range())?
            }
            Kind::Switch => match text {
                "on" => 1,
                "off" => 0,
                _ => return Err("is neither on nor off".to_owned()),
            },
            Kind::Choice(words) => {
                // A rate has more than one spelling: "5120kbit/s" is "5.12 Mbit/s".
                let rate = text.parse::<Rate>().ok();
                let same = |word: &&str| **word == *text || rate.is_some() && word.parse().ok() == rate;
                let place = words.iter().position(same);
                place
                    .and_then(|place| u32::try_from(place).ok())
                    .ok_or_else(|| format!("is not one of these: {}", words.join(", ")))?
            }
        };
        if (self.least..=self.most).contains(&value) { Ok(value) } else { Err(self.range()) }
    }

    fn range(&self) -> String {
        format!("is not between {} and {}", self.show(self.least), self.show(self.most))
    }

    /// A value as it is kept, as it is written.
    #[must_use]
    pub fn show(&self, value: u32) -> String {
        match self.kind {
            Kind::Count => value.to_string(),
            Kind::Ratio => {
                let text = format!("{:.3}", f64::from(value) / RATIO_ONE);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            Kind::Time => Span::from_nanos(u64::from(value)).to_string(),
            Kind::Switch => if value == 0 { "off" } else { "on" }.to_owned(),
            Kind::Choice(words) => {
                words.get(value as usize).map_or_else(|| value.to_string(), |word| (*word).to_owned())
            }
        }
    }
}

/// A parameter that cannot be set so, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidParameter(String);

impl fmt::Display for InvalidParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidParameter {}

/// Of these the first is never above the second.
const ORDERED: [(&str, &str); 2] = [("min_first_gap", "max_first_gap"), ("min_delay", "max_delay")];

/// The parameters of an algorithm with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    algorithm: Algorithm,
    values: Vec<u32>,
}

impl Settings {
    /// The defaults.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, values: algorithm.parameters().iter().map(|parameter| parameter.default).collect() }
    }

    /// The defaults with these changes, each written as `name=value`.
    ///
    /// # Errors
    /// As [`set`](Self::set), and if a parameter is set twice, or a least value is above the most.
    pub fn with(algorithm: Algorithm, changes: &[impl AsRef<str>]) -> Result<Self, InvalidParameter> {
        let mut settings = Self::new(algorithm);
        for (place, change) in changes.iter().enumerate() {
            let change = change.as_ref();
            settings.set(change)?;
            let name = |text: &str| text.split('=').next().unwrap_or_default().trim().to_owned();
            if changes[..place].iter().any(|before| name(before.as_ref()) == name(change)) {
                return Err(InvalidParameter(format!("{} is set twice; give it once", name(change))));
            }
        }
        for (least, most) in ORDERED {
            let place = |name: &str| settings.algorithm.parameters().iter().position(|one| one.name == name);
            if let (Some(low), Some(high)) = (place(least), place(most))
                && settings.values[low] > settings.values[high]
            {
                let show = |place: usize| settings.algorithm.parameters()[place].show(settings.values[place]);
                return Err(InvalidParameter(format!("{least} is {}, above {most}, {}", show(low), show(high))));
            }
        }
        Ok(settings)
    }

    /// Sets what is written as `name=value`.
    ///
    /// # Errors
    /// If there is no such parameter, or it cannot have this value.
    pub fn set(&mut self, text: &str) -> Result<(), InvalidParameter> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(InvalidParameter(format!("\"{text}\" is not of the form name=value")));
        };
        let parameters = self.algorithm.parameters();
        let Some(place) = parameters.iter().position(|parameter| parameter.name == name.trim()) else {
            let names: Vec<_> = parameters.iter().map(|parameter| parameter.name).collect();
            let known =
                if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            return Err(InvalidParameter(format!("{} has no parameter \"{}\"; {known}", self.algorithm, name.trim())));
        };
        let value = value.trim();
        self.values[place] = parameters[place]
            .read(value)
            .map_err(|why| InvalidParameter(format!("{}: \"{value}\" {why}", parameters[place].name)))?;
        Ok(())
    }

    /// The algorithm they are for.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Every parameter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Parameter, u32)> + '_ {
        self.algorithm.parameters().iter().zip(self.values.iter().copied())
    }

    /// The value of the parameter of this name, as it is kept.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<u32> {
        self.iter().find(|(parameter, _)| parameter.name == name).map(|(_, value)| value)
    }

    /// The table as the program reads it.
    #[cfg(feature = "ebpf")]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    /// The parameters that a table holds; `None` if it is not of this algorithm.
    #[cfg(feature = "ebpf")]
    pub(crate) fn from_bytes(algorithm: Algorithm, bytes: &[u8]) -> Option<Self> {
        let values: Vec<u32> =
            bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect();
        (values.len() == algorithm.parameters().len()).then_some(Self { algorithm, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(algorithm: Algorithm, text: &str) -> Result<Settings, String> {
        let mut settings = Settings::new(algorithm);
        settings.set(text).map(|()| settings).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_read_in_their_units_and_shown_in_them() {
        let half = set(Algorithm::Dctcp, "initial_alpha=0.5").unwrap();
        assert_eq!(half.value("initial_alpha"), Some(512));
        let shown: Vec<_> = half.iter().map(|(parameter, value)| parameter.show(value)).collect();
        assert_eq!(shown, ["4", "0.5"]);
    }

    #[test]
    fn a_rate_of_the_table_may_be_spelled_as_everywhere_else() {
        let of = |text: &str| set(Algorithm::QuickStart, text).map(|settings| settings.value("request").unwrap());
        for same in ["request=5.12Mbit/s", "request=5.12 Mbit/s", "request=5120 kbit/s"] {
            assert_eq!(of(same), Ok(7), "{same}");
        }
        assert_eq!(of("request=1.31072 Gbit/s"), Ok(15));
        assert_eq!(of("request=none"), Ok(0));
        let other = of("request=5 Mbit/s").unwrap_err();
        assert!(other.starts_with("request: \"5 Mbit/s\" is not one of these: none, 80kbit/s"), "{other}");
    }

    #[test]
    fn a_parameter_that_is_set_twice_is_refused() {
        let of = |changes: &[&str]| Settings::with(Algorithm::Dctcp, changes).map_err(|error| error.to_string());
        let twice = of(&["gain_shift=4", "initial_alpha=1", " gain_shift =5"]);
        assert_eq!(twice, Err("gain_shift is set twice; give it once".to_owned()));
        assert_eq!(of(&["gain_shift=5", "initial_alpha=1"]).unwrap().value("gain_shift"), Some(5));
    }

    #[test]
    fn a_least_value_above_the_most_is_refused() {
        let of =
            |changes: &[&str]| Settings::with(Algorithm::PacedChirping, changes).map_err(|error| error.to_string());
        let crossed = of(&["min_first_gap=2ms", "max_first_gap=1ms"]);
        assert_eq!(crossed, Err("min_first_gap is 2 ms, above max_first_gap, 1 ms".to_owned()));
        assert!(of(&["max_delay=1ms"]).unwrap_err().contains("min_delay is 2 ms"));
        assert!(of(&["min_delay=1ms", "max_delay=1ms"]).is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_in_a_sentence_with_what_would_be_right() {
        for (text, sentence) in [
            ("gain_shift=0", "gain_shift: \"0\" is not between 1 and 10"),
            ("initial_alpha=2", "initial_alpha: \"2\" is not between 0 and 1"),
            ("initial_alpha=-1", "initial_alpha: \"-1\" is not between 0 and 1"),
            ("initial_alpha=NaN", "initial_alpha: \"NaN\" is not between 0 and 1"),
            ("gain_shift=x", "gain_shift: \"x\" is not a whole number"),
            ("gain_shift", "\"gain_shift\" is not of the form name=value"),
            ("other=1", "dctcp has no parameter \"other\"; it has gain_shift, initial_alpha"),
        ] {
            assert_eq!(set(Algorithm::Dctcp, text), Err(sentence.to_owned()));
        }
        assert!(set(Algorithm::SlowStartReno, "a=1").unwrap_err().contains("it has none"));
    }
}
