//! Quantities in files: strings with a unit, both ways. A bare number is refused with the likely
//! meaning.

use alloc::string::ToString;

use alloc::borrow::Cow;
use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::{Bytes, ParseUnitError, Rate, Span, Time};

struct Quantity<T>(PhantomData<T>, &'static str);

impl<T: FromStr<Err = ParseUnitError>> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    // Numbers go the same way, so that the message names the unit that was forgotten.
    fn visit_i64<E: de::Error>(self, n: i64) -> Result<T, E> {
        n.to_string().parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<T, E> {
        n.to_string().parse().map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<T, E> {
        n.to_string().parse().map_err(E::custom)
    }
}

macro_rules! as_string {
    ($type:ident, $expecting:literal, $example:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Quantity(PhantomData, $expecting))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $expecting, "examples": [$example] })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

as_string!(Rate, "a rate such as \"100 Mbit/s\"", "100 Mbit/s");
as_string!(Span, "a time such as \"20 ms\"", "20 ms");
as_string!(Bytes, "a size such as \"100 kB\"", "100 kB");
as_string!(Time, "a time since the start of the run such as \"1.5 s\"", "1.5 s");
