//! What Meta sends: notifications, and leads as the Graph API gives them.
//!
//! A notification holds ids only, many of them at a time. They are kept as text from the first byte on: printed samples show bare
//! numbers, real traffic texts, and an ad's id has more digits than a floating-point number holds (reference, 1.3).

use crate::json::{self, Node};
use emanet_core::lead::{Problem, RawLead};
use jiff::Timestamp;
use serde_json::Value;

/// One change of a notification.
pub(super) struct Change<'a> {
    /// Indexes of entry and change.
    pub(super) pointer: String,
    /// Id of the page the entry is for.
    entry_id: Option<&'a str>,
    change: &'a Node,
}

/// The notification of a lead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeadNotice {
    pub(super) leadgen_id: String,
    pub(super) page_id: Option<String>,
    pub(super) form_id: Option<String>,
    /// When the person submitted.
    pub(super) created_at: Option<Timestamp>,
}

/// Reads a body.
pub(super) fn parse(body: &[u8]) -> Result<Node, &'static str> {
    let text = std::str::from_utf8(body).map_err(|_| "not_json")?;
    let node = json::parse(text).map_err(json::Broken::reason)?;
    matches!(node, Node::Object(_))
        .then_some(node)
        .ok_or("not_an_object")
}

/// Every change of every entry, in order.
pub(super) fn changes(body: &Node) -> Vec<Change<'_>> {
    let entries = body.get("entry").map(Node::elements).unwrap_or_default();
    let mut changes = Vec::new();
    for (e, entry) in entries.iter().enumerate() {
        let list = entry.get("changes").map(Node::elements).unwrap_or_default();
        for (c, change) in list.iter().enumerate() {
            changes.push(Change {
                pointer: format!("{e}/{c}"),
                entry_id: entry.get("id").and_then(Node::text),
                change,
            });
        }
    }
    changes
}

impl Change<'_> {
    /// Whether it is about a lead.
    pub(super) fn is_lead(&self) -> bool {
        self.change.get("field").and_then(Node::text) == Some("leadgen")
    }

    /// The lead it is about. `None`: its id is not there, or stands there twice.
    pub(super) fn lead(&self) -> Option<LeadNotice> {
        let value = self.change.get("value")?;
        let id = |key: &str| {
            let id = value.get(key)?.text()?;
            (is_word(id) && !value.doubled().contains(key)).then(|| id.to_owned())
        };
        let seconds = value.get("created_time").and_then(Node::text);
        let seconds = seconds.and_then(|t| t.parse().ok());
        Some(LeadNotice {
            leadgen_id: id("leadgen_id")?,
            page_id: id("page_id").or_else(|| self.entry_id.map(str::to_owned)),
            form_id: id("form_id"),
            created_at: seconds.and_then(|s| Timestamp::from_second(s).ok()),
        })
    }

    /// What a change says, without what differs when Meta sends it again (`entry[].time`).
    pub(super) fn content(&self) -> String {
        format!(
            "{} {}",
            self.entry_id.unwrap_or_default(),
            self.change.canonical()
        )
    }
}

/// What can stand in an address as it is. Meta's ids are digits; those that `emanet send` makes up need not be.
fn is_word(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
}

/// Facts of the campaign, as Meta names them.
const ATTRIBUTION: [&str; 10] = [
    "ad_id",
    "ad_name",
    "adset_id",
    "adset_name",
    "campaign_id",
    "campaign_name",
    "form_id",
    "is_organic",
    "partner_name",
    "platform",
];
/// What is asked of the Graph API. Without naming fields it gives the id alone.
pub(super) const LEAD_FIELDS: &str = "id,created_time,ad_id,ad_name,adset_id,adset_name,campaign_id,campaign_name,form_id,\
     is_organic,platform,partner_name,field_data,custom_disclaimer_responses";
/// What Meta's tool for test leads fills fields with; there is no flag (reference, 1.8).
const DUMMY_TEXT: &str = "<test lead: dummy data for";
const DUMMY_EMAILS: [&str; 2] = ["test@meta.com", "test@fb.com"];

/// Reads a fetched lead.
pub(super) fn lead(fetched: &Value) -> RawLead {
    let mut lead = RawLead {
        created_at: fetched.get("created_time").and_then(time),
        consent: list(fetched, "custom_disclaimer_responses")
            .iter()
            .filter_map(consent)
            .collect(),
        ..RawLead::default()
    };
    for field in list(fetched, "field_data") {
        let Some(name) = field.get("name").and_then(Value::as_str) else {
            continue;
        };
        if lead.fields.iter().any(|(n, _)| n == name) {
            lead.problems.push(Problem::note(name, "duplicate_key"));
        }
        let values = list(field, "values").iter().filter_map(text).collect();
        lead.fields.push((name.to_owned(), values));
    }
    for name in ATTRIBUTION {
        if let Some(value) = fetched.get(name).and_then(text) {
            lead.attribution.insert(name.to_owned(), value);
        }
    }
    lead.is_test = lead
        .fields
        .iter()
        .flat_map(|(_, values)| values)
        .any(|v| is_dummy(v));
    lead
}

fn is_dummy(value: &str) -> bool {
    value.starts_with(DUMMY_TEXT) || DUMMY_EMAILS.contains(&value)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `{checkbox_key, is_checked}`, where ticked is `"1"` and not ticked is `""`. Anything else is not taken for consent.
fn consent(response: &Value) -> Option<(String, bool)> {
    let key = response.get("checkbox_key")?.as_str()?.to_owned();
    let is_checked = response.get("is_checked").and_then(text);
    Some((key, matches!(is_checked.as_deref(), Some("1" | "true"))))
}

/// `2026-01-01T00:00:00+0000`: the zone has no colon.
fn time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", text).ok(),
        _ => Timestamp::from_second(value.as_i64()?).ok(),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// JSON in ASCII: everything else as `\uXXXX` with lower-case digits, the way Meta writes and signs it (reference, 1.2).
pub(super) fn ascii(json: &Value) -> String {
    let mut ascii = String::new();
    for c in json.to_string().chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            let units = c.encode_utf16(&mut [0; 2]).to_vec();
            ascii.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    ascii
}
