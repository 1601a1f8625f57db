//! Dropping parts of a scenario that fails, as long as it still fails.

use toml::{Table, Value};

use crate::judge::{Judgement, Limits, judge};

/// One step on the way to a part of a table.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Place(usize),
}

/// All parts of a value, the outer ones first.
fn parts(value: &Value, way: &mut Vec<Step>, all: &mut Vec<Vec<Step>>) {
    let mut visit = |step: Step, inner: &Value| {
        way.push(step);
        all.push(way.clone());
        parts(inner, way, all);
        way.pop();
    };
    match value {
        Value::Table(table) => table.iter().for_each(|(key, inner)| visit(Step::Key(key.clone()), inner)),
        Value::Array(list) => list.iter().enumerate().for_each(|(place, inner)| visit(Step::Place(place), inner)),
        _ => {}
    }
}

/// Without the part at the end of this way.
fn without(value: &mut Value, way: &[Step]) {
    match (value, way) {
        (Value::Table(table), [Step::Key(key)]) => {
            table.remove(key);
        }
        (Value::Array(list), [Step::Place(place)]) if *place < list.len() => {
            list.remove(*place);
        }
        (Value::Table(table), [Step::Key(key), rest @ ..]) => {
            if let Some(inner) = table.get_mut(key) {
                without(inner, rest);
            }
        }
        (Value::Array(list), [Step::Place(place), rest @ ..]) => {
            if let Some(inner) = list.get_mut(*place) {
                without(inner, rest);
            }
        }
        _ => {}
    }
}

/// The smallest scenario found that fails in the same way as this one (`kind` of
/// [`Judgement::Violated`]), after at most `attempts`.
#[must_use]
pub fn shrink(table: &Table, kind: &str, limits: Limits, attempts: usize) -> Table {
    let mut smallest = table.clone();
    let mut left = attempts;
    loop {
        let mut all = Vec::new();
        parts(&Value::Table(smallest.clone()), &mut Vec::new(), &mut all);
        let smaller = all.iter().find_map(|way| {
            left = left.checked_sub(1)?;
            let mut candidate = Value::Table(smallest.clone());
            without(&mut candidate, way);
            let Value::Table(candidate) = candidate else { return None };
            let fails = matches!(judge(&candidate, limits), Judgement::Violated { kind: found, .. } if found == kind);
            fails.then_some(candidate)
        });
        match smaller {
            Some(smaller) => smallest = smaller,
            None => return smallest,
        }
    }
}
