//! Algorithms in scenario files: a plain name (`start = "hystart"`) or a table with constants
//! (`start = { name = "hystart", delay_detector = false }`).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use core::fmt;
use core::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::UnknownName;

/// A kind of algorithm that is chosen by name.
pub trait Named: Sized {
    /// What the error messages call it.
    const KIND: &'static str;

    /// The algorithm of this name with its default constants.
    fn with_defaults(name: &str) -> Result<Self, UnknownName>;

    /// The algorithm of this name with the constants that `fields` give.
    fn with_fields<'de, D: Deserializer<'de>>(name: &str, fields: D) -> Result<Self, D::Error>;
}

/// The table of an algorithm that has no constants.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoFields {}

/// Reads a [`Named`] from a string or a table.
pub fn deserialize<'de, T: Named, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(NamedVisitor(PhantomData))
}

struct NamedVisitor<T>(PhantomData<T>);

impl<'de, T: Named> Visitor<'de> for NamedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of a {} or a table with its `name`", T::KIND)
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        T::with_defaults(name).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        // Which fields are right depends on the name, so those before it wait. Those after it are
        // read in place: their errors keep their position in the file.
        let mut early = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "name" {
                let name: String = map.next_value()?;
                T::with_defaults(&name).map_err(de::Error::custom)?;
                let fields = Fields { early: early.into_iter(), value: None, rest: map };
                return T::with_fields(&name, MapAccessDeserializer::new(fields));
            }
            early.push((key, map.next_value::<Value>()?));
        }
        Err(de::Error::custom(format_args!("this table needs the `name` of a {}", T::KIND)))
    }
}

/// The fields of a table without its name: first those read before the name was known, then the
/// rest.
struct Fields<A> {
    early: alloc::vec::IntoIter<(String, Value)>,
    value: Option<Value>,
    rest: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        match self.early.next() {
            Some((key, value)) => {
                self.value = Some(value);
                seed.deserialize(key.into_deserializer()).map(Some)
            }
            None => self.rest.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value.take() {
            Some(value) => seed.deserialize(value).map_err(de::Error::custom),
            None => self.rest.next_value_seed(seed),
        }
    }
}

/// The schema of a [`Named`]: one of the names, or one of the tables.
pub fn schema(names: &[&str], tables: Vec<Schema>) -> Schema {
    let mut any = vec![json_schema!({ "type": "string", "enum": names })];
    any.extend(tables);
    json_schema!({ "anyOf": any })
}

/// The schema of the table of one algorithm: its constants and its name.
pub fn table<T: JsonSchema>(generator: &mut SchemaGenerator, name: &str) -> Schema {
    let mut schema = T::json_schema(generator);
    add_name(&mut schema, name);
    schema
}

/// The schema of the table of an algorithm that has no constants.
pub fn bare_table(name: &str) -> Schema {
    let mut schema = json_schema!({ "type": "object", "additionalProperties": false });
    add_name(&mut schema, name);
    schema
}

fn add_name(schema: &mut Schema, name: &str) {
    let object = schema.ensure_object();
    let properties = object.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    if let Value::Object(properties) = properties {
        properties.insert("name".into(), serde_json::json!({ "const": name }));
    }
    object.insert("required".into(), serde_json::json!(["name"]));
}
