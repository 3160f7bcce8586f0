//! Placeholders in paths and look-up bodies: `{external_id}`, `{id}`, `{value}`, `{links.lead}`.

use serde_json::Value;
use std::collections::BTreeMap;

/// What placeholders stand for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values<'a> {
    pub(super) external_id: &'a str,
    pub(super) id: &'a str,
    pub(super) value: &'a str,
    pub(super) links: Option<&'a BTreeMap<String, String>>,
}

impl<'a> Values<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        let value = match name {
            "external_id" => self.external_id,
            "id" => self.id,
            "value" => self.value,
            _ => self.links?.get(name.strip_prefix("links.")?)?,
        };
        (!value.is_empty()).then_some(value)
    }
}

/// The names of a text's placeholders, or what is wrong with it.
pub(crate) fn placeholders(text: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        let (name, tail) = after.split_once('}').ok_or("has a { without its }")?;
        let is_known = matches!(name, "external_id" | "id" | "value") || name.starts_with("links.");
        if !is_known {
            return Err(format!(
                "has {{{name}}}, which stands for nothing; there are {{external_id}}, {{id}}, {{value}} and {{links.<object>}}"
            ));
        }
        names.push(name);
        rest = tail;
    }
    Ok(names)
}

/// Fills a path, everything percent-encoded. `Err` names what is not there.
pub(super) fn fill(path: &str, values: &Values<'_>) -> Result<String, String> {
    replace(path, values, encode)
}

/// Fills the texts of a JSON body.
pub(super) fn fill_json(body: &Value, values: &Values<'_>) -> Result<Value, String> {
    Ok(match body {
        Value::String(text) => Value::String(replace(text, values, str::to_owned)?),
        Value::Array(list) => Value::Array(
            list.iter()
                .map(|v| fill_json(v, values))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(map) => {
            let members = map
                .iter()
                .map(|(k, v)| Ok((k.clone(), fill_json(v, values)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

fn replace(text: &str, values: &Values<'_>, write: fn(&str) -> String) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, tail)) = after.split_once('}') else {
            return Err(after.to_owned());
        };
        filled.push_str(&write(values.get(name).ok_or_else(|| name.to_owned())?));
        rest = tail;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Everything but the letters that need no escape anywhere in an address (RFC 3986, unreserved).
fn encode(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}
