//! Reads a connector's settings and reports everything that is wrong with them at once, each with its path.
//!
//! A person corrects a configuration in one go or not at all; so nothing here stops at the first mistake. A key that nobody asked
//! for is a mistake too: it is a slip of the pen that would otherwise be overlooked in silence.

use emanet_core::field::{Field, Invalid, Settings};
use emanet_core::secret::Secret;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// What the loader of the configuration adds to every connector's settings.
const LOADER_KEYS: [&str; 2] = ["source_id", "destination_id"];

/// Reads settings with `build`, which is handed the table of values and the secrets.
pub(crate) fn read<T>(
    settings: &Settings,
    build: impl FnOnce(&mut Table<'_>, &Secrets<'_>) -> T,
) -> Result<T, Vec<Invalid>> {
    let wrong = RefCell::new(Vec::new());
    let mut table = Table::new("", &settings.values, &wrong);
    let secrets = Secrets {
        values: &settings.secrets,
        wrong: &wrong,
    };
    let built = build(&mut table, &secrets);
    table.asked.extend(LOADER_KEYS.map(str::to_owned));
    table.finish();
    let wrong = wrong.into_inner();
    if wrong.is_empty() {
        Ok(built)
    } else {
        Err(wrong)
    }
}

/// The field of that name with nothing special about it; for the lists in `config.rs`.
pub(crate) const fn field(
    key: &'static str,
    label_en: &'static str,
    label_tr: &'static str,
    help: &'static str,
) -> Field {
    Field {
        key,
        label_en,
        label_tr,
        help,
        required: false,
        secret: false,
    }
}

/// Whether a text is a whole address of the web.
pub(crate) fn is_web_address(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// The secrets of a connector.
pub(crate) struct Secrets<'a> {
    values: &'a BTreeMap<String, Secret>,
    wrong: &'a RefCell<Vec<Invalid>>,
}

impl Secrets<'_> {
    /// The secret, if it is given. An empty one is wrong: it would let everybody in (H17).
    pub(crate) fn get(&self, key: &str) -> Option<Secret> {
        let secret = self.values.get(key)?;
        if secret.expose().trim().is_empty() {
            self.report(
                key,
                "is empty; give the secret, or leave the setting out where it is optional",
            );
            return None;
        }
        Some(secret.clone())
    }

    /// The secret, which must be given.
    pub(crate) fn required(&self, key: &str) -> Secret {
        if !self.values.contains_key(key) {
            self.report(key, "is missing");
        }
        self.get(key).unwrap_or_else(|| Secret::new(""))
    }

    fn report(&self, key: &str, message: &str) {
        self.wrong.borrow_mut().push(Invalid::new(key, message));
    }
}

/// A table of settings. Each key asked for is taken off the list; [`Table::finish`] reports what is left.
pub(crate) struct Table<'a> {
    path: String,
    values: &'a Map<String, Value>,
    asked: BTreeSet<String>,
    wrong: &'a RefCell<Vec<Invalid>>,
}

impl<'a> Table<'a> {
    fn new(path: &str, values: &'a Map<String, Value>, wrong: &'a RefCell<Vec<Invalid>>) -> Self {
        Self {
            path: path.to_owned(),
            values,
            asked: BTreeSet::new(),
            wrong,
        }
    }

    /// The value under the key, whatever it is.
    pub(crate) fn value(&mut self, key: &str) -> Option<&'a Value> {
        self.asked.insert(key.to_owned());
        self.values.get(key).filter(|v| !v.is_null())
    }

    /// A text, not empty.
    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        match self.value(key)? {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            Value::String(_) => self.report(key, "is empty"),
            _ => self.report(key, "must be a text in quotes"),
        }
    }

    /// A text that must be given; empty, and reported, if it is not.
    pub(crate) fn required(&mut self, key: &str) -> String {
        if self.value(key).is_none() {
            self.wrong(key, "is missing");
        }
        self.text(key).unwrap_or_default()
    }

    /// Yes or no.
    pub(crate) fn flag(&mut self, key: &str, default: bool) -> bool {
        match self.value(key) {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.wrong(key, "must be true or false");
                default
            }
        }
    }

    /// A whole number within a range.
    pub(crate) fn number(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?;
        let number = value.as_u64().filter(|n| range.contains(n));
        if number.is_none() {
            let message = format!(
                "must be a whole number from {} to {}",
                range.start(),
                range.end()
            );
            self.wrong(key, &message);
        }
        number
    }

    /// One of the words, and what it stands for.
    pub(crate) fn choice<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let chosen = words.iter().find(|(word, _)| *word == text);
        if chosen.is_none() {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(key, &format!("must be one of: {}", words.join(", ")));
        }
        chosen.map(|(_, value)| *value)
    }

    /// A list of texts; a single text is a list of one.
    pub(crate) fn texts(&mut self, key: &str) -> Vec<String> {
        match self.value(key) {
            None => Vec::new(),
            Some(Value::String(text)) if !text.is_empty() => vec![text.clone()],
            Some(Value::Array(list))
                if list
                    .iter()
                    .all(|v| v.as_str().is_some_and(|t| !t.is_empty())) =>
            {
                list.iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            }
            Some(_) => {
                self.wrong(key, "must be a list of texts");
                Vec::new()
            }
        }
    }

    /// A table of names and texts.
    pub(crate) fn pairs(&mut self, key: &str) -> BTreeMap<String, String> {
        let Some(mut table) = self.table(key) else {
            return BTreeMap::new();
        };
        let keys: Vec<_> = table.values.keys().cloned().collect();
        keys.into_iter()
            .filter_map(|k| table.text(&k).map(|text| (k, text)))
            .collect()
    }

    /// A table with free content.
    pub(crate) fn map(&mut self, key: &str) -> Map<String, Value> {
        match self.value(key) {
            None => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(_) => {
                self.wrong(key, "must be a table");
                Map::new()
            }
        }
    }

    /// A table below this one. Whoever asks for it must [`finish`](Table::finish) it.
    pub(crate) fn table(&mut self, key: &str) -> Option<Table<'a>> {
        match self.value(key)? {
            Value::Object(map) => Some(Table::new(&self.path_of(key), map, self.wrong)),
            _ => self.report(key, "must be a table"),
        }
    }

    /// The tables below this one by name.
    pub(crate) fn named_tables(&mut self, key: &str) -> Vec<(String, Table<'a>)> {
        let Some(mut parent) = self.table(key) else {
            return Vec::new();
        };
        let names: Vec<_> = parent.values.keys().cloned().collect();
        names
            .into_iter()
            .filter_map(|name| parent.table(&name).map(|table| (name, table)))
            .collect()
    }

    /// A list of tables.
    pub(crate) fn tables(&mut self, key: &str) -> Vec<Table<'a>> {
        let list = match self.value(key) {
            None => return Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.wrong(key, "must be a list of tables");
                return Vec::new();
            }
        };
        let mut tables = Vec::new();
        for (index, value) in list.iter().enumerate() {
            let path = format!("{key}.{index}");
            match value {
                Value::Object(map) => {
                    tables.push(Table::new(&self.path_of(&path), map, self.wrong));
                }
                _ => self.wrong(&path, "must be a table"),
            }
        }
        tables
    }

    /// Reports a setting of this table as wrong.
    pub(crate) fn wrong(&self, key: &str, message: &str) {
        self.wrong
            .borrow_mut()
            .push(Invalid::new(self.path_of(key), message));
    }

    /// Reports every key that nobody asked for.
    pub(crate) fn finish(self) {
        for key in self.values.keys().filter(|k| !self.asked.contains(*k)) {
            let known: Vec<_> = self.asked.iter().map(String::as_str).collect();
            self.wrong(
                key,
                &format!("is no setting here; there are: {}", known.join(", ")),
            );
        }
    }

    fn report<T>(&self, key: &str, message: &str) -> Option<T> {
        self.wrong(key, message);
        None
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(values: Value) -> Settings {
        Settings {
            values: values.as_object().cloned().expect("an object"),
            secrets: BTreeMap::from([
                ("empty".into(), Secret::new(" ")),
                ("good".into(), Secret::new("s3cret")),
            ]),
        }
    }

    /// Every mistake is reported, each under its own path, and none of them hides another.
    #[test]
    fn every_wrong_setting_is_reported_with_its_path() {
        let given = settings(json!({
            "source_id": "src_1",
            "name": 7,
            "count": 70,
            "slip": true,
            "inner": {"mode": "sideways", "typo": 1},
            "rows": [{"hint": "", "more": 1}, 3],
            "words": ["a", 1],
        }));
        let wrong = read(&given, |table, secrets| {
            table.text("name");
            table.number("count", 1..=60);
            table.required("gone");
            table.texts("words");
            let mut inner = table.table("inner").expect("a table");
            inner.choice("mode", &[("up", 1), ("down", 2)]);
            inner.finish();
            for mut row in table.tables("rows") {
                row.text("hint");
                row.finish();
            }
            secrets.get("empty");
            secrets.required("absent");
        })
        .expect_err("much is wrong");
        let keys: Vec<_> = wrong.iter().map(|w| w.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "name",
                "count",
                "gone",
                "words",
                "inner.mode",
                "inner.typo",
                "rows.1",
                "rows.0.hint",
                "rows.0.more",
                "empty",
                "absent",
                "slip"
            ]
        );
    }

    #[test]
    fn right_settings_are_read() {
        let given = settings(json!({"on": true, "n": 3, "one": "a", "pairs": {"x": "y"}}));
        let read = read(&given, |table, secrets| {
            (
                table.flag("on", false),
                table.number("n", 1..=5),
                table.texts("one"),
                table.pairs("pairs"),
                secrets.required("good").expose().to_owned(),
            )
        });
        let pairs = BTreeMap::from([("x".to_owned(), "y".to_owned())]);
        assert_eq!(
            read,
            Ok((
                true,
                Some(3),
                vec!["a".to_owned()],
                pairs,
                "s3cret".to_owned()
            ))
        );
    }
}
