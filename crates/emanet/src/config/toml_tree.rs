//! TOML into plain values, with the line of every key kept for messages.

use super::problem::{ConfigError, Places, Problem, join};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads TOML into plain values, with the line of every key.
pub(super) fn read(file: &str, text: &str) -> Result<(Map<String, Value>, Places), ConfigError> {
    let lines = LineStarts::of(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut problems: Vec<_> = errors
            .iter()
            .map(|error| Problem {
                line: error.span().map_or(1, |span| lines.line(span.start)),
                key: String::new(),
                message: format!("this is no TOML: {}", error.message().trim()),
            })
            .collect();
        problems.sort_by_key(|problem| problem.line);
        return Err(ConfigError {
            file: file.into(),
            problems,
        });
    }
    let places = Places {
        file: file.into(),
        lines: BTreeMap::new(),
    };
    let mut reading = Reading {
        lines,
        places,
        problems: Vec::new(),
    };
    let root = reading.table(root.get_ref(), "");
    if reading.problems.is_empty() {
        Ok((root, reading.places))
    } else {
        Err(ConfigError {
            file: file.into(),
            problems: reading.problems,
        })
    }
}

struct Reading {
    lines: LineStarts,
    places: Places,
    problems: Vec<Problem>,
}

impl Reading {
    fn table(&mut self, table: &DeTable<'_>, path: &str) -> Map<String, Value> {
        let mut plain = Map::new();
        for (key, value) in table {
            let path = join(path, key.get_ref());
            let line = self.lines.line(key.span().start);
            self.places.lines.insert(path.clone(), line);
            plain.insert(key.get_ref().to_string(), self.value(value, &path));
        }
        plain
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, path: &str) -> Value {
        let number = match value.get_ref() {
            DeValue::String(text) => return Value::String(text.to_string()),
            DeValue::Boolean(flag) => return Value::Bool(*flag),
            DeValue::Datetime(time) => return Value::String(time.to_string()),
            DeValue::Array(items) => return self.array(items.iter(), path),
            DeValue::Table(table) => return Value::Object(self.table(table, path)),
            DeValue::Integer(number) => {
                i64::from_str_radix(&number.as_str().replace('_', ""), number.radix())
                    .ok()
                    .map(Value::from)
            }
            DeValue::Float(number) => number
                .as_str()
                .replace('_', "")
                .parse()
                .ok()
                .and_then(serde_json::Number::from_f64)
                .map(Value::Number),
        };
        number.unwrap_or_else(|| {
            self.problems.push(Problem {
                line: self.lines.line(value.span().start),
                key: path.to_owned(),
                message: "this number is out of range".into(),
            });
            Value::Null
        })
    }

    fn array<'v, 'i: 'v>(
        &mut self,
        items: impl Iterator<Item = &'v Spanned<DeValue<'i>>>,
        path: &str,
    ) -> Value {
        let mut plain = Vec::new();
        for (n, item) in items.enumerate() {
            let path = format!("{path}[{n}]");
            let line = self.lines.line(item.span().start);
            self.places.lines.insert(path.clone(), line);
            plain.push(self.value(item, &path));
        }
        Value::Array(plain)
    }
}

/// Where lines begin, to turn an offset into a line.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Self(breaks.map(|(at, _)| at + 1).collect())
    }

    /// Counts from 1.
    fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) + 1
    }
}
