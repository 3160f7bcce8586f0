//! Reads a parsed table key by key: asking for a key makes it known, and what nobody asked for is refused with the nearest
//! known key. Every mistake is noted, none ends the reading.

use super::problem::{Problems, choices, did_you_mean, join};
use super::secret::Reference;
use serde_json::{Map, Value};
use std::str::FromStr;

/// One table of the document.
pub(super) struct Table<'a> {
    /// Its path.
    pub(super) path: String,
    entries: &'a Map<String, Value>,
    known: Vec<&'static str>,
    problems: &'a Problems,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        path: impl Into<String>,
        entries: &'a Map<String, Value>,
        problems: &'a Problems,
    ) -> Self {
        Self {
            path: path.into(),
            entries,
            known: Vec::new(),
            problems,
        }
    }

    /// Path of a key of this table.
    pub(super) fn key(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Notes a mistake at a key of this table.
    pub(super) fn wrong(&self, key: &str, message: impl Into<String>) {
        self.problems.add(self.key(key), message);
    }

    /// Notes a mistake at a key of a table below this one.
    pub(super) fn wrong_below(&self, key: &str, below: &str, message: impl Into<String>) {
        self.problems.add(join(&self.key(key), below), message);
    }

    /// The value of a key, which is known from now on.
    pub(super) fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.entries.get(key)
    }

    /// The value of a key, if `read` can make something of it; `expected` says what it wants.
    fn typed<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let made = read(value);
        if made.is_none() {
            self.wrong(
                key,
                format!("expected {expected}, found {}", name_of(value)),
            );
        }
        made
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.typed(key, "a text in quotes", |v| v.as_str().map(str::to_owned))
    }

    /// A text that must be there.
    pub(super) fn required_text(&mut self, key: &'static str, example: &str) -> Option<String> {
        if !self.entries.contains_key(key) {
            self.known.push(key);
            self.problems.add(
                self.path.clone(),
                format!("`{key}` is missing; add {key} = {example}"),
            );
            return None;
        }
        self.text(key)
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.typed(key, "true or false", Value::as_bool)
    }

    /// A whole number within bounds.
    pub(super) fn number(&mut self, key: &'static str, least: u64, most: u64) -> Option<u64> {
        let expected = format!("a whole number from {least} to {most}");
        self.typed(key, &expected, |v| {
            v.as_u64().filter(|n| (least..=most).contains(n))
        })
    }

    /// A number that is not below `least`.
    pub(super) fn at_least(&mut self, key: &'static str, least: f64) -> Option<f64> {
        self.typed(key, &format!("a number of at least {least}"), |v| {
            v.as_f64().filter(|n| n.is_finite() && *n >= least)
        })
    }

    /// A text that parses.
    pub(super) fn parsed<T: FromStr>(&mut self, key: &'static str, expected: &str) -> Option<T> {
        self.typed(key, expected, |v| v.as_str()?.parse().ok())
    }

    /// A list of texts, each of which `read` takes. `None` if the key is absent.
    pub(super) fn list<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.typed(
            key,
            &format!("a list, each entry {expected}"),
            Value::as_array,
        )?;
        let mut all = Vec::with_capacity(items.len());
        for (n, item) in items.iter().enumerate() {
            match item.as_str().and_then(&read) {
                Some(one) => all.push(one),
                None => self.problems.add(
                    format!("{}[{n}]", self.key(key)),
                    format!("expected {expected}, found {}", name_of(item)),
                ),
            }
        }
        Some(all)
    }

    /// A table of texts.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<(String, String)>> {
        let table = self.typed(key, "a table of texts", Value::as_object)?;
        let path = self.key(key);
        let mut all = Vec::with_capacity(table.len());
        for (name, value) in table {
            match value.as_str() {
                Some(text) => all.push((name.clone(), text.to_owned())),
                None => self.problems.add(
                    join(&path, name),
                    format!("expected a text in quotes, found {}", name_of(value)),
                ),
            }
        }
        Some(all)
    }

    /// A table below this one.
    pub(super) fn table(&mut self, key: &'static str) -> Option<Table<'a>> {
        let entries = self.typed(key, "a table", Value::as_object)?;
        Some(Table::new(self.key(key), entries, self.problems))
    }

    /// The tables of a table of tables, by name.
    pub(super) fn named_tables(&mut self, key: &'static str) -> Vec<(String, Table<'a>)> {
        let Some(outer) = self.typed(key, "a table of tables", Value::as_object) else {
            return Vec::new();
        };
        let path = self.key(key);
        let mut tables = Vec::new();
        for (name, value) in outer {
            let path = join(&path, name);
            if name.trim() != name || name.is_empty() || name.chars().count() > 64 {
                self.problems.add(
                    &path,
                    "a name has 1 to 64 characters and no space at its ends",
                );
            } else if name.chars().any(char::is_control) {
                self.problems.add(&path, "a name has no control characters");
            } else if let Some(entries) = value.as_object() {
                tables.push((name.clone(), Table::new(path, entries, self.problems)));
            } else {
                self.problems
                    .add(path, format!("expected a table, found {}", name_of(value)));
            }
        }
        tables
    }

    /// The tables of a list of tables.
    pub(super) fn listed_tables(&mut self, key: &'static str) -> Vec<Table<'a>> {
        let Some(items) = self.typed(key, "a list of tables", Value::as_array) else {
            return Vec::new();
        };
        let path = self.key(key);
        let mut tables = Vec::new();
        for (n, item) in items.iter().enumerate() {
            let path = format!("{path}[{n}]");
            match item.as_object() {
                Some(entries) => tables.push(Table::new(path, entries, self.problems)),
                None => self
                    .problems
                    .add(path, format!("expected a table, found {}", name_of(item))),
            }
        }
        tables
    }

    /// A secret: a text, `{ env = "NAME" }` or `{ file = "/path" }`.
    pub(super) fn secret(&mut self, key: &'static str) -> Option<Reference> {
        let value = self.value(key)?;
        match Reference::read(value) {
            Ok(reference) => Some(reference),
            Err(message) => {
                self.wrong(key, message);
                None
            }
        }
    }

    /// Every key that nobody has asked for yet: the connector's own. Known to the connector are `theirs`.
    pub(super) fn rest(&mut self, theirs: &[&'static str]) -> Map<String, Value> {
        let rest = self
            .entries
            .iter()
            .filter(|(key, _)| theirs.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        self.known.extend_from_slice(theirs);
        rest
    }

    /// Ends the reading: refuses every key that is not known.
    pub(super) fn finish(self) {
        for key in self.entries.keys() {
            if self.known.contains(&key.as_str()) {
                continue;
            }
            let hint = did_you_mean(key, self.known.iter().copied()).unwrap_or_else(|| {
                format!(" Known here: {}.", choices(self.known.iter().copied()))
            });
            self.wrong(key, format!("unknown key.{hint}"));
        }
    }

    /// Ends the reading of a table that cannot be understood as a whole, without a word about its other keys.
    pub(super) fn abandon(self) {}
}

/// What a value is, for "found …".
fn name_of(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(_) | Value::Number(_) => format!("{value}"),
        Value::String(text) => shown_text(text),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a table".into(),
    }
}

/// A short text as it stands; a long one only by its length. Only used for keys that are no secrets.
fn shown_text(text: &str) -> String {
    if text.chars().count() <= 60 {
        format!("{text:?}")
    } else {
        format!("a text of {} characters", text.chars().count())
    }
}
