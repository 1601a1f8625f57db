//! Keys and values of a scenario's tables.

use toml::{Table, Value};

/// Sets a key.
pub(crate) fn put(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

pub(crate) fn nanos(n: u64) -> Value {
    Value::String(format!("{n} ns"))
}

pub(crate) fn bytes(n: u64) -> Value {
    Value::String(format!("{n} B"))
}

pub(crate) fn bits(n: u64) -> Value {
    Value::String(format!("{n} bit/s"))
}

/// Appends to a list of tables.
pub(crate) fn append(scenario: &mut Table, key: &str, table: Table) {
    let list = scenario.entry(key.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.push(Value::Table(table));
    }
}

/// The table of a configuration.
pub(crate) fn table_of(config: &impl serde::Serialize) -> Table {
    match Value::try_from(config) {
        Ok(Value::Table(table)) => table,
        _ => Table::new(),
    }
}
