//! Settings of the sandbox, and how it is spoken to.

use super::errors;
use crate::rest::{Errors, Format, LookUp, Object, Query, Spec, Write};
use crate::settings::{self, field};
use emanet_core::call::{HeaderValue, Method};
use emanet_core::field::{Field, Invalid, Settings};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Its settings, as people see them.
pub(super) const FIELDS: &[Field] = &[
    field(
        "look_up",
        "Records can be looked up",
        "Kayıtlar aranabilir",
        "false plays a CRM in which a record cannot be found by its external id. Default: true.",
    ),
    field(
        "native_key",
        "Honours an idempotency key",
        "Tekrar anahtarını tanır",
        "false plays a CRM that takes the same call twice for two. With look_up = false as well, a doubtful step stops and asks. Default: true.",
    ),
    field(
        "faults",
        "Faults",
        "Arızalar",
        "What the sandbox is to do wrong: a table of a fault's name and its probability or count.",
    ),
];

const LEAD: [(&str, &str); 8] = [
    ("full_name", "{{ lead.full_name }}"),
    ("first_name", "{{ lead.first_name }}"),
    ("last_name", "{{ lead.last_name }}"),
    ("phone", "{{ lead.phone }}"),
    ("email", "{{ lead.email }}"),
    ("city", "{{ lead.city }}"),
    ("message", "{{ lead.message }}"),
    ("source", "{{ source }}"),
];

const TASK: [(&str, &str); 3] = [
    (
        "title",
        "Call {{ lead.full_name or lead.phone or lead.email }}",
    ),
    ("phone", "{{ lead.phone }}"),
    ("note", "{{ lead.message }}"),
];

/// Reads the settings into the interface of the sandbox they describe.
pub(super) fn read(settings: &Settings) -> Result<Spec, Vec<Invalid>> {
    settings::read(settings, |table, _| {
        // The sandbox inside the server reads the faults; here they are only known to be a setting.
        table.map("faults");
        let (look_up, native_key) = (table.flag("look_up", true), table.flag("native_key", true));
        let configured = |path: &str, fields: &[(&str, &str)]| Object {
            look_up: look_up.then(|| look_up_of(path)),
            idempotency_header: native_key.then(|| "idempotency-key".to_owned()),
            ..object(path, fields)
        };
        let task = Object {
            links: BTreeMap::from([("lead_id".into(), "lead".into())]),
            ..configured("/tasks", &TASK)
        };
        Spec {
            base_url: "sandbox://crm".into(),
            headers: which(settings),
            objects: BTreeMap::from([
                ("lead".into(), configured("/leads", &LEAD)),
                ("task".into(), task),
            ]),
            errors: Errors {
                code: vec!["/error/code".into()],
                field: vec!["/error/field".into()],
                rows: errors::rows(),
            },
            probe: Some("/leads?external_id=emanet%3Adoctor".into()),
        }
    })
}

/// Every destination of this kind has a sandbox of its own; the header says which.
fn which(settings: &Settings) -> Vec<(String, HeaderValue)> {
    let id = settings
        .values
        .get("destination_id")
        .and_then(Value::as_str);
    let header = id.map(|id| {
        (
            "x-emanet-sandbox".to_owned(),
            HeaderValue::Plain(id.to_owned()),
        )
    });
    header.into_iter().collect()
}

fn look_up_of(path: &str) -> LookUp {
    LookUp {
        query: Query {
            path: format!("{path}?external_id={{external_id}}"),
            rows: vec![path.to_owned()],
            id: "/id".into(),
            matches: "/external_id".into(),
            ..Query::default()
        },
        absent: Vec::new(),
        is_search: false,
        lag: std::time::Duration::ZERO,
    }
}

fn object(path: &str, fields: &[(&str, &str)]) -> Object {
    let write = |method, path: String| Write {
        method,
        path,
        format: Format::Json,
        under: None,
        fixed: Map::new(),
        id: Some("/id".into()),
    };
    Object {
        look_up: None,
        by: BTreeMap::new(),
        create: write(Method::Post, path.to_owned()),
        update: Some(write(Method::Patch, format!("{path}/{{id}}"))),
        read_back: None,
        external_id_field: Some("external_id".into()),
        missing_data: Some(("tags".into(), json!(["missing data"]))),
        idempotency_header: None,
        on_found: None,
        links: BTreeMap::new(),
        json_fields: Vec::new(),
        fields: fields
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
    }
}
