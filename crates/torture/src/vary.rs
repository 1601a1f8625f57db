//! Varying the constants of a configuration, whatever it is: numbers and values with units of its
//! table.

use flowstart_units::{Bytes, Rate, Span};
use toml::Value;

use crate::chance::{Chance, Wildness};

/// Fields whose values are names, with the names.
const NAMES: &[(&str, &[&str])] = &[
    ("ecn", &["off", "classic", "dctcp", "accurate"]),
    ("loss_detection", &["rack", "new_reno"]),
    ("reduction", &["proportional", "proportional_rfc9937", "immediate"]),
    ("rto_rule", &["linux", "rfc6298"]),
    ("ack_counting", &["bytes", "packets"]),
];

/// Changes about `percent` of a hundred values in the table and the tables in it.
pub(crate) fn vary(chance: &mut Chance, table: &mut toml::Table, percent: u64) {
    for (key, value) in table.iter_mut() {
        match value {
            Value::Table(inner) => vary(chance, inner, percent),
            _ if !chance.percent(percent) => {}
            Value::String(text) => {
                if let Some((_, names)) = NAMES.iter().find(|(name, _)| name == key) {
                    *text = chance.pick(names).to_owned();
                } else if let Some(other) = quantity(chance, text) {
                    *text = other;
                }
            }
            Value::Integer(n) => *n = integer(chance, *n),
            Value::Float(x) => *x = float(chance, *x),
            Value::Boolean(flag) => *flag = !*flag,
            Value::Array(_) | Value::Datetime(_) => {}
        }
    }
}

fn integer(chance: &mut Chance, n: i64) -> i64 {
    let extreme = chance.wild == Wildness::Extreme;
    match chance.below(if extreme { 12 } else { 8 }) {
        0 => 0,
        1 => 1,
        2 => n.saturating_sub(1),
        3 => n.saturating_add(1),
        4 => n / 2,
        5 => n.saturating_mul(2),
        6 => n.saturating_mul(10),
        7 => chance.below(200) as i64,
        8 => i64::from(u32::MAX),
        9 => i64::from(u16::MAX),
        10 => i64::MAX,
        _ => 2,
    }
}

fn float(chance: &mut Chance, x: f64) -> f64 {
    let extreme = chance.wild == Wildness::Extreme;
    match chance.below(if extreme { 10 } else { 6 }) {
        0 => x / 2.0,
        1 => x * 2.0,
        2 => x * (0.9 + 0.2 * chance.share()),
        3 => 1.0,
        4 => chance.share(),
        5 => x * 10.0,
        6 => 0.0,
        7 => 1e300,
        8 => 1e-300,
        _ => -x,
    }
}

/// A factor from a thousandth to a thousand, or 0, or more than anything.
fn scaled(chance: &mut Chance, n: u64) -> u64 {
    match chance.below(10) {
        0 if chance.wild == Wildness::Extreme => 0,
        1 if chance.wild == Wildness::Extreme => u64::MAX,
        2 if chance.wild == Wildness::Extreme => 1,
        3..6 => n / chance.between(1, 1000),
        _ => n.saturating_mul(chance.between(1, 1000)),
    }
}

/// Another value with the same kind of unit.
fn quantity(chance: &mut Chance, text: &str) -> Option<String> {
    if let Ok(span) = text.parse::<Span>() {
        return Some(format!("{} ns", scaled(chance, span.as_nanos())));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        return Some(format!("{} bit/s", scaled(chance, rate.as_bps())));
    }
    let bytes = text.parse::<Bytes>().ok()?;
    Some(format!("{} B", scaled(chance, bytes.get())))
}
