//! Variants: a scenario in common and the pieces in which they differ.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use flowstart_scenario::Problem;

/// What is varied, for instance the congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Its name in the file.
    pub name: String,
    /// Its levels, in order of the file.
    pub levels: Vec<Level>,
}

/// One of the values of a factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its name in the file, unique among all levels.
    pub name: String,
    /// What tables and pictures call it.
    pub title: String,
}

/// Most variants of one figure.
const MOST_VARIANTS: usize = 10_000;

/// A level's piece of a scenario, as it stands in the file.
type Piece<'i> = Spanned<DeValue<'i>>;

/// The factors of `[vary.FACTOR.LEVEL]` tables, with the pieces of scenario of their levels.
pub(super) fn factors<'i>(vary: Option<&Piece<'i>>) -> Result<(Vec<Factor>, Vec<Vec<Piece<'i>>>), Problem> {
    let mut factors: Vec<Factor> = Vec::new();
    let mut pieces = Vec::new();
    let Some(vary) = vary else { return Ok((factors, pieces)) };
    let wanted = "holds what is varied: [vary.FACTOR.LEVEL] tables with pieces of a scenario";
    let table = vary.get_ref().as_table().ok_or_else(|| Problem::at("vary", wanted))?;
    for (name, levels) in table {
        let name = name.get_ref().to_string();
        let key = format!("vary.{name}");
        let levels = levels.get_ref().as_table().ok_or_else(|| Problem::at(&key, wanted))?;
        let mut factor = Factor { name, levels: Vec::new() };
        let mut of_factor = Vec::new();
        for (name, piece) in levels {
            let name = name.get_ref().to_string();
            let key = format!("{key}.{name}");
            if piece.get_ref().as_table().is_none() {
                return Err(Problem::at(key, "is a level, which is a table with a piece of a scenario"));
            }
            let known = factors.iter().chain(std::iter::once(&factor)).flat_map(|factor| &factor.levels);
            if known.into_iter().any(|level| level.name == name) {
                return Err(Problem::at(
                    key,
                    format!("there are two levels \"{name}\"; claims could not tell them apart"),
                ));
            }
            let mut piece = piece.clone();
            let title = take(&mut piece, "title");
            let title = title.as_ref().and_then(|title| title.get_ref().as_str()).unwrap_or(&name).to_owned();
            factor.levels.push(Level { name, title });
            of_factor.push(piece);
        }
        if factor.levels.is_empty() {
            return Err(Problem::at(key, "has no level"));
        }
        factors.push(factor);
        pieces.push(of_factor);
    }
    let count = factors.iter().fold(1_usize, |count, factor| count.saturating_mul(factor.levels.len()));
    if count > MOST_VARIANTS {
        return Err(Problem::at("vary", format!("makes {count} variants; at most {MOST_VARIANTS} are run")));
    }
    Ok((factors, pieces))
}

/// Takes a key out of a table.
pub(super) fn take<'i>(value: &mut Piece<'i>, key: &str) -> Option<Piece<'i>> {
    match value.get_mut() {
        DeValue::Table(table) => table.remove(key),
        _ => None,
    }
}

/// All combinations of levels, the last factor running fastest.
pub(super) fn combinations(factors: &[Factor]) -> Vec<Vec<usize>> {
    factors.iter().fold(vec![Vec::new()], |all, factor| {
        all.iter()
            .flat_map(|chosen| {
                (0..factor.levels.len()).map(|level| chosen.iter().copied().chain([level]).collect::<Vec<_>>())
            })
            .collect()
    })
}

/// Lays a piece over a scenario: a table over a table key by key, a table over a list of tables
/// over each of them, anything else replaces.
pub(super) fn lay_over<'i>(base: &mut DeTable<'i>, piece: &DeTable<'i>) {
    for (key, value) in piece {
        match base.get_mut(key) {
            Some(below) => lay_over_value(below, value),
            None => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

fn lay_over_value<'i>(below: &mut Piece<'i>, value: &Piece<'i>) {
    if let DeValue::Table(piece) = value.get_ref() {
        match below.get_mut() {
            DeValue::Table(table) => return lay_over(table, piece),
            DeValue::Array(elements) if elements.iter().all(|element| element.get_ref().is_table()) => {
                for element in elements.iter_mut() {
                    lay_over_value(element, value);
                }
                return;
            }
            _ => {}
        }
    }
    *below = value.clone();
}

/// Names of levels: one, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels(pub Vec<String>);

impl<'de> Deserialize<'de> for Levels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Levels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a level or a list of them")
            }

            fn visit_str<E>(self, name: &str) -> Result<Levels, E> {
                Ok(Levels(vec![name.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Levels, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(Levels(names))
            }
        }
        deserializer.deserialize_any(Names)
    }
}

impl JsonSchema for Levels {
    fn schema_name() -> Cow<'static, str> {
        "Levels".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Names of levels: one, or a list.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> DeTable<'_> {
        DeTable::parse(text).unwrap().into_inner()
    }

    fn printed(table: DeTable<'_>) -> toml::Table {
        serde::Deserialize::deserialize(toml::de::Deserializer::from(Spanned::new(0..0, table))).unwrap()
    }

    #[test]
    fn a_piece_reaches_every_table_of_a_list_and_leaves_the_rest() {
        let mut base = table(
            "duration = '1 s'\n[path]\nrtt = '5 ms'\nbuffer = '1 BDP'\n[[flow]]\nname = 'a'\n[[flow]]\nname = 'b'",
        );
        lay_over(&mut base, &table("path.rtt = '9 ms'\nflow.algorithm = 'reno'\nruns = 3"));
        let expected = table(
            "duration = '1 s'\nruns = 3\npath = { rtt = '9 ms', buffer = '1 BDP' }\n\
             flow = [{ name = 'a', algorithm = 'reno' }, { name = 'b', algorithm = 'reno' }]",
        );
        assert_eq!(printed(base), printed(expected));
    }

    #[test]
    fn a_list_replaces_a_list() {
        let mut base = table("[[flow]]\nname = 'a'");
        lay_over(&mut base, &table("flow = []"));
        assert_eq!(printed(base), printed(table("flow = []")));
    }

    #[test]
    fn combinations_come_in_the_order_of_the_file() {
        let factor = |levels: usize| Factor {
            name: String::new(),
            levels: (0..levels).map(|n| Level { name: n.to_string(), title: String::new() }).collect(),
        };
        assert_eq!(combinations(&[factor(2), factor(2)]), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert_eq!(combinations(&[]), [Vec::<usize>::new()]);
    }
}
