//! Reading values that can be written short as a string or in full as a table.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Reads a string by its `FromStr`.
pub(super) fn text<'de, D, T>(deserializer: D, expecting: &'static str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: fmt::Display,
{
    deserializer.deserialize_any(Short::<T, Never>(PhantomData, expecting))
}

/// A value that is only ever a string.
pub(super) enum Never {}

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom("a table is not possible here"))
    }
}

/// Reads `T` from a string, or from a table or list as `Long`.
pub(super) struct Short<T, Long>(pub(super) PhantomData<(T, Long)>, pub(super) &'static str);

impl<'de, T, Long> Visitor<'de> for Short<T, Long>
where
    T: FromStr + FromLong<Long>,
    T::Err: fmt::Display,
    Long: Deserialize<'de>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    // Numbers go the same way, so that the message says which unit was forgotten.
    fn visit_i64<E: de::Error>(self, n: i64) -> Result<T, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<T, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        Long::deserialize(MapAccessDeserializer::new(map)).map(T::from_long)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        Long::deserialize(SeqAccessDeserializer::new(seq)).map(T::from_long)
    }
}

/// From the form in full.
pub(super) trait FromLong<Long> {
    fn from_long(long: Long) -> Self;
}

impl<T> FromLong<Never> for T {
    fn from_long(long: Never) -> Self {
        match long {}
    }
}
