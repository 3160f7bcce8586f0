//! How a document is shown: its keys and values, secrets covered; and how two documents differ.

use super::document::Document;
use super::problem::join;
use super::toml_tree;
use emanet_core::field::Field;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What stands for a secret.
const COVER: &str = "[secret]";

impl Document {
    /// The document as a tree, every secret that stands in the file itself covered. References (`{ env }`, `{ file }`) are
    /// shown: they say where the secret is, not what it is.
    pub fn masked(&self) -> Value {
        let mut tree = self.tree();
        self.cover(&mut tree);
        Value::Object(tree)
    }

    /// How `newer` differs from this document: one line per key that went (`-`), came (`+`) or changed its secret (`~`).
    pub fn differences(&self, newer: &Document) -> Vec<String> {
        let (old, new) = (self.facts(), newer.facts());
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        let mut lines = Vec::new();
        for key in keys {
            match (old.get(key), new.get(key)) {
                (Some(old), Some(new)) if old.value == new.value => {}
                (Some(old), Some(new)) if old.shown == new.shown => {
                    lines.push(format!("~ {key} = {} (changed)", new.shown));
                }
                (old, new) => {
                    lines.extend(old.map(|fact| format!("- {key} = {}", fact.shown)));
                    lines.extend(new.map(|fact| format!("+ {key} = {}", fact.shown)));
                }
            }
        }
        lines
    }

    fn tree(&self) -> Map<String, Value> {
        toml_tree::read(&self.places.file, self.text.expose())
            .map(|(tree, _)| tree)
            .expect("the document was read from this very text")
    }

    fn cover(&self, tree: &mut Map<String, Value>) {
        for (name, source) in &self.sources {
            cover_one(tree, "sources", name, source.kind.fields);
        }
        for (name, destination) in &self.destinations {
            cover_one(tree, "destinations", name, destination.kind.fields);
        }
    }

    fn facts(&self) -> BTreeMap<String, Fact> {
        let plain = self.tree();
        let mut covered = plain.clone();
        self.cover(&mut covered);
        let mut facts = BTreeMap::new();
        flatten(
            "",
            &Value::Object(plain),
            &Value::Object(covered),
            &mut facts,
        );
        facts
    }
}

/// A value of the document, and how it is shown. Never printed as a whole.
struct Fact {
    value: Value,
    shown: String,
}

fn cover_one(tree: &mut Map<String, Value>, section: &str, name: &str, fields: &[Field]) {
    let Some(table) = tree
        .get_mut(section)
        .and_then(|section| section.get_mut(name))
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let secret = fields.iter().filter(|field| field.secret).map(|f| f.key);
    for key in secret.chain((section == "sources").then_some("token")) {
        if let Some(value @ Value::String(_)) = table.get_mut(key) {
            *value = Value::String(COVER.into());
        }
    }
}

fn flatten(path: &str, value: &Value, shown: &Value, facts: &mut BTreeMap<String, Fact>) {
    match (value, shown) {
        (Value::Object(values), Value::Object(showns)) if !values.is_empty() => {
            for ((key, value), shown) in values.iter().zip(showns.values()) {
                flatten(&join(path, key), value, shown, facts);
            }
        }
        (Value::Array(values), Value::Array(showns)) if values.iter().any(Value::is_object) => {
            for (n, (value, shown)) in values.iter().zip(showns).enumerate() {
                flatten(&format!("{path}[{n}]"), value, shown, facts);
            }
        }
        _ => {
            let fact = Fact {
                value: value.clone(),
                shown: shown.to_string(),
            };
            facts.insert(path.to_owned(), fact);
        }
    }
}
