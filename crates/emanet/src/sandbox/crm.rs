//! What the sandbox does when nothing goes wrong: records of leads and tasks over a small REST interface.
//!
//! `GET /leads?external_id=…`, `GET /leads/{id}`, `POST /leads`, `PATCH /leads/{id}`, and the same for `/tasks`. Errors are
//! `{"error":{"code","message","field"}}`.

use super::fault::{Fault, Rule};
use super::{Answer, BodyState};
use crate::env::Env;
use emanet_core::call::{Call, HeaderValue, Method};
use emanet_core::ids::{DestinationId, WorkspaceId};
use emanet_store::{NewSandboxObject, Page, SandboxChange, SandboxFilter, SandboxObject, Store};
use serde_json::{Map, Value, json};
use url::Url;

/// Names the sandbox where the URL does not.
const WHICH: &str = "x-emanet-sandbox";
/// How many records a list shows.
const LISTED_MAX: u32 = 100;

/// A call, understood.
#[derive(Debug)]
pub(super) struct Request {
    /// `lead`, `task`.
    pub(super) object: String,
    pub(super) work: Work,
}

/// What is asked.
#[derive(Debug)]
pub(super) enum Work {
    LookUp {
        external_id: String,
    },
    List,
    Get {
        id: String,
    },
    Create {
        external_id: String,
        key: Option<String>,
        fields: Map<String, Value>,
    },
    Update {
        id: String,
        fields: Map<String, Value>,
    },
    /// Something that can only be refused.
    Nothing(Reply),
}

impl Work {
    pub(super) fn is_write(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Update { .. })
    }
}

impl Request {
    /// Which sandbox is meant and what is asked of it. `None` if no sandbox is meant.
    pub(super) fn read(call: &Call) -> Option<(DestinationId, Self)> {
        let url = Url::parse(&call.url).ok()?;
        let which = header(call, WHICH).or_else(|| url.host_str())?;
        let destination = which.parse().ok()?;
        let parts: Vec<&str> = url
            .path_segments()?
            .filter(|part| !part.is_empty())
            .collect();
        let (object, id) = match parts[..] {
            ["leads"] => ("lead", None),
            ["leads", id] => ("lead", Some(id)),
            ["tasks"] => ("task", None),
            ["tasks", id] => ("task", Some(id)),
            _ => ("", None),
        };
        let work = if object.is_empty() {
            Work::Nothing(Reply::unknown("path"))
        } else {
            work(call, &url, id)
        };
        let object = object.to_owned();
        Some((destination, Self { object, work }))
    }

    /// The lead or task it is about, as well as the call says.
    pub(super) fn external_id(&self) -> Option<&str> {
        match &self.work {
            Work::LookUp { external_id } | Work::Create { external_id, .. } => Some(external_id),
            Work::Get { id } | Work::Update { id, .. } => Some(id),
            Work::List | Work::Nothing(_) => None,
        }
    }

    /// Whether it writes this field; any, if none is named.
    pub(super) fn has_field(&self, field: Option<&str>) -> bool {
        match (&self.work, field) {
            (Work::Create { fields, .. } | Work::Update { fields, .. }, Some(field)) => {
                fields.contains_key(field)
            }
            _ => true,
        }
    }

    fn first_field(&self) -> Option<&str> {
        match &self.work {
            Work::Create { fields, .. } | Work::Update { fields, .. } => {
                fields.keys().next().map(String::as_str)
            }
            _ => None,
        }
    }
}

fn header<'a>(call: &'a Call, name: &str) -> Option<&'a str> {
    call.headers.iter().find_map(|(header, value)| match value {
        HeaderValue::Plain(text) if header.eq_ignore_ascii_case(name) => Some(text.as_str()),
        _ => None,
    })
}

fn work(call: &Call, url: &Url, id: Option<&str>) -> Work {
    let owned = |id: &str| id.to_owned();
    match (call.method, id) {
        (Method::Get, None) => match asked(url) {
            Some(external_id) => Work::LookUp { external_id },
            None => Work::List,
        },
        (Method::Get, Some(id)) => Work::Get { id: owned(id) },
        (Method::Post, None) => match fields(call) {
            Some((Some(external_id), fields)) => Work::Create {
                external_id,
                key: header(call, "idempotency-key").map(owned),
                fields,
            },
            Some((None, _)) => Work::Nothing(Reply::error(
                422,
                "required",
                "A record needs an external_id.",
                Some("external_id"),
            )),
            None => Work::Nothing(Reply::not_an_object()),
        },
        (Method::Patch, Some(id)) => match fields(call) {
            Some((_, fields)) => Work::Update {
                id: owned(id),
                fields,
            },
            None => Work::Nothing(Reply::not_an_object()),
        },
        _ => Work::Nothing(Reply::error(
            405,
            "method_not_allowed",
            "That cannot be done here.",
            None,
        )),
    }
}

fn asked(url: &Url) -> Option<String> {
    let mut query = url.query_pairs();
    query.find_map(|(name, value)| (name == "external_id").then(|| value.into_owned()))
}

/// The body's external id, apart, and its other fields.
fn fields(call: &Call) -> Option<(Option<String>, Map<String, Value>)> {
    let mut fields: Map<String, Value> = serde_json::from_slice(&call.body).ok()?;
    let external_id = match fields.remove("external_id") {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    Some((external_id, fields))
}

/// One sandbox and its records.
#[derive(Debug)]
pub(super) struct Crm<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) env: &'a Env,
    pub(super) workspace: WorkspaceId,
    pub(super) destination: DestinationId,
}

impl Crm<'_> {
    /// Does what is asked.
    pub(super) async fn work(&self, request: &Request) -> Reply {
        let object = &request.object;
        let done = match &request.work {
            Work::LookUp { external_id } => self.list(object, Some(external_id)).await,
            Work::List => self.list(object, None).await,
            Work::Get { id } => self.get(object, id).await,
            Work::Create {
                external_id,
                key,
                fields,
            } => self.create(object, external_id, key.clone(), fields).await,
            Work::Update { id, fields } => self.update(object, id, fields).await,
            Work::Nothing(reply) => Ok(reply.clone()),
        };
        done.unwrap_or_else(|error| Reply::of_store(&error))
    }

    async fn list(&self, object: &str, external_id: Option<&str>) -> emanet_store::Result<Reply> {
        let found = self.find(object, external_id, None).await?;
        Ok(Reply::list(object, found.iter().map(shown).collect()))
    }

    async fn get(&self, object: &str, id: &str) -> emanet_store::Result<Reply> {
        let found = self.find(object, None, Some(id)).await?;
        Ok(match found.first() {
            Some(record) => Reply::new(200, shown(record)),
            None => Reply::unknown(object),
        })
    }

    async fn create(
        &self,
        object: &str,
        external_id: &str,
        key: Option<String>,
        fields: &Map<String, Value>,
    ) -> emanet_store::Result<Reply> {
        let now = self.env.now();
        // The time is in it because a seeded random source draws the same numbers again after a restart.
        let drawn = u32::from_be_bytes(self.env.bytes());
        let new = NewSandboxObject {
            workspace: self.workspace,
            destination: self.destination,
            id: format!("{:011x}{drawn:08x}", now.as_millisecond()),
            object: object.to_owned(),
            external_id: Some(external_id.to_owned()),
            key,
            fields: fields.clone(),
            now,
        };
        let own = new.id.clone();
        let record = self.store.sandbox_create(new).await?;
        // One that was made before under the same key is answered like the first time, as the big ones do.
        let created = (record.id == own).then(|| external_id.to_owned());
        let reply = Reply::new(201, json!({"id": record.id}));
        Ok(Reply { created, ..reply })
    }

    async fn update(
        &self,
        object: &str,
        id: &str,
        fields: &Map<String, Value>,
    ) -> emanet_store::Result<Reply> {
        if self.find(object, None, Some(id)).await?.is_empty() {
            return Ok(Reply::unknown(object));
        }
        let change = SandboxChange {
            workspace: self.workspace,
            destination: self.destination,
            id: id.to_owned(),
            fields: fields.clone(),
            now: self.env.now(),
        };
        let record = self.store.sandbox_update(change).await?;
        Ok(Reply::new(200, json!({"id": record.id})))
    }

    async fn find(
        &self,
        object: &str,
        external_id: Option<&str>,
        id: Option<&str>,
    ) -> emanet_store::Result<Vec<SandboxObject>> {
        let filter = SandboxFilter {
            workspace: Some(self.workspace),
            destination: Some(self.destination),
            object: Some(object.to_owned()),
            external_id: external_id.map(str::to_owned),
            id: id.map(str::to_owned),
        };
        let page = Page {
            after: None,
            limit: LISTED_MAX,
        };
        Ok(self.store.sandbox_objects(filter, page).await?.rows)
    }
}

/// A record as a CRM shows it.
fn shown(record: &SandboxObject) -> Value {
    let mut fields = record.fields.clone();
    fields.insert("id".into(), json!(record.id));
    fields.insert("external_id".into(), json!(record.external_id));
    fields.insert("created_at".into(), json!(record.created_at));
    fields.insert("updated_at".into(), json!(record.updated_at));
    Value::Object(fields)
}

/// An answer before it is bytes.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    status: u16,
    body: Value,
    retry_after_seconds: Option<u32>,
    /// External id of the record that was made for this call.
    pub(super) created: Option<String>,
}

impl Reply {
    fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            body,
            retry_after_seconds: None,
            created: None,
        }
    }

    fn list(object: &str, records: Vec<Value>) -> Self {
        Self::new(200, json!({ (format!("{object}s")): records }))
    }

    /// A look-up that finds nothing.
    pub(super) fn nothing_found(object: &str) -> Self {
        Self::list(object, Vec::new())
    }

    /// There is no such thing.
    pub(super) fn unknown(what: &str) -> Self {
        Self::error(404, "not_found", &format!("There is no such {what}."), None)
    }

    fn not_an_object() -> Self {
        Self::error(400, "invalid_body", "The body is not a JSON object.", None)
    }

    fn error(status: u16, code: &str, message: &str, field: Option<&str>) -> Self {
        let body = json!({"error": {"code": code, "message": message, "field": field}});
        Self::new(status, body)
    }

    /// What the store's trouble looks like from outside. Whether anything was written is not certain, as with any 500.
    pub(super) fn of_store(error: &emanet_store::Error) -> Self {
        match error {
            emanet_store::Error::NotFound(what) => Self::unknown(what),
            _ => Self::error(500, "internal", "The sandbox's storage failed.", None),
        }
    }

    /// What a fault that keeps anything from being done answers.
    pub(super) fn refused(fault: Fault, rule: &Rule, request: &Request) -> Self {
        let field = rule.field.as_deref().or_else(|| request.first_field());
        let retry_after_seconds = Some(rule.retry_after_seconds());
        let maintenance = Self::error(503, "maintenance", "The CRM is in maintenance.", None);
        match fault {
            Fault::TokenExpired => {
                Self::error(401, "token_expired", "The access token has expired.", None)
            }
            Fault::RateLimited => Self {
                retry_after_seconds,
                ..Self::error(429, "rate_limited", "Too many calls.", None)
            },
            Fault::UnavailableRetryAfter => Self {
                retry_after_seconds,
                ..maintenance
            },
            Fault::DeletedField => {
                Self::error(400, "deleted_field", "There is no such field.", field)
            }
            Fault::RefuseData => {
                Self::error(422, "invalid_value", "The value is not accepted.", field)
            }
            _ => maintenance,
        }
    }

    pub(super) fn into_answer(self) -> Answer {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        if let Some(seconds) = self.retry_after_seconds {
            headers.push(("retry-after".to_owned(), seconds.to_string()));
        }
        Answer {
            status: self.status,
            headers,
            body: self.body.to_string().into_bytes(),
            body_state: BodyState::Whole,
            reused_connection: false,
        }
    }
}
