//! How one CRM does what all of them do.

use super::answer::{self, Errors, Finding};
use super::body::Format;
use super::template::{self, Values};
use emanet_core::call::{Answer, HeaderValue, Method};
use emanet_core::classify::Failure;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// A CRM's interface.
#[derive(Debug)]
pub(crate) struct Spec {
    /// What every path is put behind; no slash at its end.
    pub(crate) base_url: String,
    /// Sent with every call, credentials among them.
    pub(crate) headers: Vec<(String, HeaderValue)>,
    /// Its objects by name.
    pub(crate) objects: BTreeMap<String, Object>,
    /// How it says what is wrong.
    pub(crate) errors: Errors,
    /// Path of a call that changes nothing, for `doctor`.
    pub(crate) probe: Option<String>,
}

/// A kind of record.
#[derive(Debug)]
pub(crate) struct Object {
    /// Finds a record by our external id.
    pub(crate) look_up: Option<LookUp>,
    /// Other ways to find one that the other side says is there.
    pub(crate) by: BTreeMap<String, Alternative>,
    pub(crate) create: Write,
    pub(crate) update: Option<Write>,
    /// Shows whether a new record carries our external id.
    pub(crate) read_back: Option<ReadBack>,
    /// Where the external id goes; dots make nested objects.
    pub(crate) external_id_field: Option<String>,
    /// What marks a record whose lead lacks something (DL-4). `{missing}` in a text is replaced by the names.
    pub(crate) missing_data: Option<(String, Value)>,
    /// Header that carries the idempotency key of a create.
    pub(crate) idempotency_header: Option<String>,
    /// What becomes of a record that is there already; left out: what the moment asks for.
    pub(crate) on_found: Option<OnFound>,
    /// Field → object whose id, made by an earlier step, goes there.
    pub(crate) links: BTreeMap<String, String>,
    /// Fields whose rendered text is JSON (lists, numbers).
    pub(crate) json_fields: Vec<String>,
    /// Templates used where the flow names none.
    pub(crate) fields: BTreeMap<String, String>,
}

/// What becomes of a record that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnFound {
    /// It is given the lead's values.
    Update,
    /// It is left as it is.
    Link,
}

/// A call that answers with rows.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// `GET`, unless there is a body.
    pub(crate) method: Method,
    pub(crate) path: String,
    /// For interfaces that search with POST.
    pub(crate) body: Option<Value>,
    /// Where the rows are (JSON pointers): lists, or one object.
    pub(crate) rows: Vec<String>,
    /// Where a row has its id.
    pub(crate) id: String,
    /// Where a row has the value it was asked for. A row that has another one there is not taken.
    pub(crate) matches: String,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            method: Method::Get,
            path: String::new(),
            body: None,
            rows: Vec::new(),
            id: String::new(),
            matches: String::new(),
        }
    }
}

/// Finds a record by our external id.
#[derive(Clone, Debug)]
pub(crate) struct LookUp {
    pub(crate) query: Query,
    /// Statuses that say "there is none".
    pub(crate) absent: Vec<u16>,
    /// The filter is a search: rows that have nothing to do with what was asked for are no sign that it was overlooked.
    pub(crate) is_search: bool,
    /// How long a new record may stay invisible to it.
    pub(crate) lag: Duration,
}

/// Finds a record by a value of the lead.
#[derive(Debug)]
pub(crate) struct Alternative {
    pub(crate) query: Query,
    /// The rendered field that holds the value.
    pub(crate) field: String,
    /// Where a row has our external id, if it has one.
    pub(crate) external_id: Option<String>,
}

/// A call that writes.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) format: Format,
    /// The fields stand below this key.
    pub(crate) under: Option<String>,
    /// Sent along as they are.
    pub(crate) fixed: Map<String, Value>,
    /// Where the answer has the record's id.
    pub(crate) id: Option<String>,
}

impl Write {
    /// A `PUT` to an address that names the external id makes one record, however often it is sent.
    pub(crate) fn is_upsert(&self) -> bool {
        self.method == Method::Put && self.path.contains("{external_id}")
    }
}

/// Reads a new record.
#[derive(Debug)]
pub(crate) struct ReadBack {
    pub(crate) path: String,
    /// Where the answer has the external id.
    pub(crate) matches: String,
}

impl ReadBack {
    pub(super) fn query(&self) -> Query {
        Query {
            path: self.path.clone(),
            ..Query::default()
        }
    }
}

impl Spec {
    /// The headers of a call, before those of its body.
    pub(super) fn headers(&self) -> Vec<(String, HeaderValue)> {
        let accept = (
            "accept".to_owned(),
            HeaderValue::Plain("application/json".into()),
        );
        std::iter::once(accept)
            .chain(self.headers.iter().cloned())
            .collect()
    }

    /// The address of a path, or the name of what cannot be filled in.
    pub(super) fn url(&self, path: &str, values: &Values<'_>) -> Result<String, String> {
        Ok(format!(
            "{}{}",
            self.base_url,
            template::fill(path, values)?
        ))
    }
}

impl LookUp {
    /// The row that carries the external id, exactly. Where the filter was plainly overlooked, a miss means nothing and is an error.
    pub(super) fn matching(&self, answer: &Answer, external_id: &str) -> Result<Finding, Failure> {
        let rows = answer::rows(answer, &self.query)?;
        let value = |row: &Value| answer::text_at(row, &self.query.matches);
        let mut found = rows
            .iter()
            .filter(|row| value(row).as_deref() == Some(external_id));
        if let Some(row) = found.next() {
            return self.query.found(row, Some(&self.query.matches));
        }
        let has_filter = self.query.path.contains("{external_id}") || self.query.body.is_some();
        let is_foreign = |row: &Value| !value(row).is_some_and(|v| v.contains(external_id));
        if !self.is_search && has_filter && !rows.is_empty() && rows.iter().all(is_foreign) {
            return Err(answer::filter_overlooked(answer));
        }
        Ok(Finding::Absent)
    }
}

impl Alternative {
    /// The one row that has the value, in any case of letters: filters often match parts of it. Two such rows are two people's.
    pub(super) fn matching(&self, answer: &Answer, value: &str) -> Result<Finding, Failure> {
        let rows = answer::rows(answer, &self.query)?;
        let wanted = value.trim().to_lowercase();
        let is_it = |row: &&Value| {
            let given = answer::text_at(row, &self.query.matches);
            given.is_some_and(|given| given.trim().to_lowercase() == wanted)
        };
        let mut found = rows.iter().filter(is_it);
        match (found.next(), found.next()) {
            (None, _) => Ok(Finding::Absent),
            (Some(row), None) => self.query.found(row, self.external_id.as_deref()),
            (Some(_), Some(_)) => Err(answer::several(answer)),
        }
    }
}

impl Query {
    fn found(&self, row: &Value, external_id: Option<&str>) -> Result<Finding, Failure> {
        let id = answer::text_at(row, &self.id).filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| answer::no_id(&self.id))?;
        let external_id = external_id.and_then(|pointer| answer::text_at(row, pointer));
        Ok(Finding::Found(answer::Row { id, external_id }))
    }
}
