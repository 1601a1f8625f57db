//! Errors in scenario files: where, what, and what would be right.

use std::fmt;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use flowstart_units::ParseUnitError;

use crate::suggest::nearest;

/// Why a scenario cannot be used. Its `Display` is one sentence behind `file:line:column:`;
/// [`ScenarioError::snippet`] shows the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    file: String,
    place: Option<Place>,
    message: String,
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// Counted from 1.
    line: usize,
    /// Counted from 1, in characters.
    column: usize,
    /// The line itself.
    text: String,
    /// How many characters are meant.
    width: usize,
}

impl Place {
    fn new(text: &str, span: Range<usize>) -> Self {
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let last = span.end.clamp(start, end);
        let width = text.get(start..last).map_or(1, |meant| meant.chars().count()).max(1);
        Self {
            line: text[..begin].matches('\n').count() + 1,
            column: text[begin..start].chars().count() + 1,
            text: text[begin..end].trim_end_matches('\r').to_owned(),
            width,
        }
    }
}

/// What the TOML reader says, in one line, and which key was meant.
pub(super) fn in_words(error: &toml::de::Error) -> String {
    // serde lists what it expected between back quotes; the nearest of those is what was meant.
    let mut message = error.message().trim().replace('\n', "; ");
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let [wrong, known @ ..] = quoted.as_slice()
        && message.starts_with("unknown")
        && let Some(meant) = nearest(wrong, known.iter().copied())
    {
        message = format!("{message}; did you mean `{meant}`?");
    }
    // The name of a type of ours says nothing to who writes a file.
    if let Some((found, _)) = message.split_once(", expected struct ") {
        message = format!("{found}, expected a table of keys: {{ key = value, ... }}");
    }
    if let Some((found, wanted)) = message.rsplit_once(", expected ")
        && let Some(words) = wanted_in_words(wanted)
    {
        message = format!("{found}, expected {words}");
    }
    // Nor do the names that the TOML reader and serde have for what they read.
    if message == NO_NAME || message.ends_with("expected string only") {
        message = "expected a name in quotes".to_owned();
    }
    message
}

/// What must stand somewhere, instead of Rust's name for it.
fn wanted_in_words(name: &str) -> Option<String> {
    let words = match name {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "f32" | "f64" => "a number such as 0.05, without quotes".to_owned(),
        "a boolean" => "true or false, without quotes".to_owned(),
        "a string" => "text in quotes".to_owned(),
        "a sequence" => "a list: [ ... ]".to_owned(),
        "a map" => "a table of keys: { key = value, ... }".to_owned(),
        _ => return None,
    };
    Some(words)
}

/// Reads a value of a table that was parsed from `text`. Where a name must stand and something else
/// does, the error says which names there are.
pub(super) fn read<T: DeserializeOwned>(
    file: &str,
    text: &str,
    table: Spanned<DeTable<'_>>,
) -> Result<T, ScenarioError> {
    let again = table.clone();
    T::deserialize(toml::de::Deserializer::from(table)).map_err(|error| {
        let mut said = ScenarioError::from_toml(file, text, &error);
        if error.message() == NO_NAME
            && let Some(names) = error.span().and_then(|span| names_at::<T>(again, &span))
        {
            said.message = format!("a name in quotes stands here, {names}");
        }
        said
    })
}

/// What the TOML reader says of something else where a name must stand. It does not say which names
/// there are.
const NO_NAME: &str = "wanted string or table";

/// "expected ...", with the names that are possible at this place: reading says them of a name that
/// does not exist.
fn names_at<T: DeserializeOwned>(mut table: Spanned<DeTable<'_>>, place: &Range<usize>) -> Option<String> {
    let value = table.get_mut().iter_mut().find_map(|(_, value)| value_at(value, place))?;
    *value.get_mut() = DeValue::String("".into());
    let error = T::deserialize(toml::de::Deserializer::from(table)).err()?;
    Some(error.message().split_once("``, ")?.1.to_owned())
}

/// The value that stands at this place.
fn value_at<'v, 'i>(value: &'v mut Spanned<DeValue<'i>>, place: &Range<usize>) -> Option<&'v mut Spanned<DeValue<'i>>> {
    if value.span() == *place {
        return Some(value);
    }
    match value.get_mut() {
        DeValue::Table(table) => table.iter_mut().find_map(|(_, inner)| value_at(inner, place)),
        DeValue::Array(list) => list.iter_mut().find_map(|inner| value_at(inner, place)),
        _ => None,
    }
}

impl ScenarioError {
    /// An error without a place in the text, for instance a file that cannot be read.
    #[must_use]
    pub fn file(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), place: None, message: message.into() }
    }

    /// What the TOML reader says about `text`, with the place in `file`.
    #[must_use]
    pub fn from_toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let place = error.span().map(|span| Place::new(text, span));
        Self { file: file.to_owned(), place, message: in_words(error) }
    }

    /// Line of the place, counted from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.line)
    }

    /// Column of the place in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.column)
    }

    /// The line of the file with the place underlined; empty if there is none.
    #[must_use]
    pub fn snippet(&self) -> String {
        let Some(place) = &self.place else { return String::new() };
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        let indent: String =
            place.text.chars().take(place.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("{margin} |\n{number} | {}\n{margin} | {indent}{}\n", place.text, "^".repeat(place.width))
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(place) = &self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ScenarioError {}

/// Why a text or a value is none that can stand in a scenario. Its `Display` is one sentence, which
/// mostly also says what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    message: String,
}

impl SpecError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SpecError {}

impl From<ParseUnitError> for SpecError {
    fn from(error: ParseUnitError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<ScenarioError> for SpecError {
    fn from(error: ScenarioError) -> Self {
        Self::new(error.to_string())
    }
}

/// As the message of a [`Problem`].
impl From<SpecError> for String {
    fn from(error: SpecError) -> Self {
        error.message
    }
}

/// A problem found after reading, at a key path such as `flow[2].algorithm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    key: String,
    message: String,
}

impl Problem {
    /// This is wrong with the value of this key.
    #[must_use]
    pub fn at(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }

    /// The key that is wrong.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong with it.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The same problem one level further out.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        Self { key: format!("{outer}.{}", self.key), ..self }
    }

    /// Finds the key in the text; a key that is not there (a default) leads to the table it would
    /// stand in.
    #[must_use]
    pub fn locate(self, file: &str, text: &str) -> ScenarioError {
        match toml::de::DeTable::parse(text) {
            Ok(document) => self.locate_in(file, text, document.get_ref()),
            Err(_) => self.locate_in(file, text, &toml::de::DeTable::new()),
        }
    }

    /// The same in a table that was put together from parts of the text.
    #[must_use]
    pub fn locate_in(self, file: &str, text: &str, document: &toml::de::DeTable<'_>) -> ScenarioError {
        let mut span = None;
        let mut key = self.key.as_str();
        while span.is_none() && !key.is_empty() {
            span = find(document, key);
            key = key.rfind('.').map_or("", |at| &key[..at]);
        }
        ScenarioError {
            file: file.to_owned(),
            place: span.map(|span| Place::new(text, span)),
            message: format!("{}: {}", self.key, self.message),
        }
    }
}

/// Where the value of a key path stands.
fn find(document: &toml::de::DeTable<'_>, key: &str) -> Option<Range<usize>> {
    let mut parts = key.split('.');
    let mut value = None;
    let first = parts.next()?;
    for part in std::iter::once(first).chain(parts) {
        let (name, index) = match part.split_once('[') {
            Some((name, index)) => (name, Some(index.trim_end_matches(']').parse::<usize>().ok()?)),
            None => (part, None),
        };
        let next = match value {
            None => document.get(name)?,
            Some(value) => match toml::Spanned::<toml::de::DeValue<'_>>::get_ref(value) {
                toml::de::DeValue::Table(table) => table.get(name)?,
                _ => return None,
            },
        };
        value = Some(match index {
            None => next,
            Some(index) => match next.get_ref() {
                toml::de::DeValue::Array(array) => array.get(index)?,
                _ => return None,
            },
        });
    }
    value.map(toml::Spanned::span)
}
