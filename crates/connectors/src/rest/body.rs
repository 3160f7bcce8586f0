//! The body of a create or update. The same lead always makes the same bytes (H2): every map is sorted.

use super::spec::{Object, Write};
use crate::connector::StepInput;
use serde_json::{Map, Value};

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Form,
}

impl Format {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Form => "application/x-www-form-urlencoded",
        }
    }
}

/// The bytes. What the mapping says goes before what is fixed.
pub(super) fn build(
    object: &Object,
    write: &Write,
    input: &StepInput<'_>,
    with_external_id: bool,
) -> Vec<u8> {
    let mut fields = Map::new();
    for (name, value) in &write.fixed {
        place(&mut fields, name, value.clone());
    }
    for (name, text) in input.fields {
        place(&mut fields, name, typed(object, name, text));
    }
    for (name, linked) in &object.links {
        if let Some(id) = input.links.get(linked) {
            place(&mut fields, name, Value::String(id.clone()));
        }
    }
    if let Some(name) = object
        .external_id_field
        .as_deref()
        .filter(|_| with_external_id)
    {
        place(&mut fields, name, Value::String(input.external_id.into()));
    }
    if let Some((name, mark)) = object
        .missing_data
        .as_ref()
        .filter(|_| !input.missing.is_empty())
    {
        tag(&mut fields, name, mark, &input.missing.join(", "));
    }
    match write.format {
        Format::Form => form(&fields),
        Format::Json => {
            let fields = Value::Object(fields);
            let whole = match &write.under {
                Some(key) => Value::Object(Map::from_iter([(key.clone(), fields)])),
                None => fields,
            };
            whole.to_string().into_bytes()
        }
    }
}

/// A field named as JSON is sent as what it reads as; as text if it does not read as JSON, for the other side to refuse by name.
fn typed(object: &Object, name: &str, text: &str) -> Value {
    let text_value = || Value::String(text.into());
    if object.json_fields.iter().any(|f| f == name) {
        serde_json::from_str(text).unwrap_or_else(|_| text_value())
    } else {
        text_value()
    }
}

/// Puts a value under a name; dots lead into nested objects. Where something else stands in the way, the name is taken as it is.
fn place(fields: &mut Map<String, Value>, name: &str, value: Value) {
    if let Some((head, tail)) = name.split_once('.') {
        let below = fields
            .entry(head)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(below) = below {
            return place(below, tail, value);
        }
    }
    fields.insert(name.into(), value);
}

fn get_mut<'a>(fields: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Value> {
    match name.split_once('.') {
        Some((head, tail)) if fields.get(head).is_some_and(Value::is_object) => {
            get_mut(fields.get_mut(head)?.as_object_mut()?, tail)
        }
        _ => fields.get_mut(name),
    }
}

/// Marks a record of which something is missing (DL-4), beside what the mapping put there: it takes nothing away.
fn tag(fields: &mut Map<String, Value>, name: &str, mark: &Value, missing: &str) {
    let mark = match mark {
        Value::String(text) => Value::String(text.replace("{missing}", missing)),
        other => other.clone(),
    };
    match (get_mut(fields, name), mark) {
        (Some(Value::String(there)), Value::String(mark)) => *there = format!("[{mark}] {there}"),
        (Some(Value::Array(there)), Value::Array(marks)) => there.extend(marks),
        (Some(Value::Array(there)), mark) => there.push(mark),
        (_, mark) => place(fields, name, mark),
    }
}

/// Names and values for a form; nested names joined with dots, lists as repeated names.
fn form(fields: &Map<String, Value>) -> Vec<u8> {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    let mut pairs = Vec::new();
    flatten("", &Value::Object(fields.clone()), &mut pairs);
    form.extend_pairs(pairs);
    form.finish().into_bytes()
}

fn flatten(name: &str, value: &Value, pairs: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let name = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                flatten(&name, value, pairs);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| flatten(name, value, pairs)),
        Value::Null => {}
        Value::String(text) => pairs.push((name.into(), text.clone())),
        other => pairs.push((name.into(), other.to_string())),
    }
}
