//! Reads the description of a CRM's interface.

use crate::rest::{
    self, Alternative, ErrorRow, Errors, Format, LookUp, Object, OnFound, Query, ReadBack, Spec,
    Write,
};
use crate::settings::{self, Secrets, Table, field};
use emanet_core::call::{HeaderValue, Method};
use emanet_core::classify::{Class, Effect, Meaning, Row, Scope};
use emanet_core::field::{Field, Invalid, Settings};
use emanet_core::mapping::Mapping;
use emanet_core::secret::Secret;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// Its settings, as people see them.
pub(super) const FIELDS: &[Field] = &[
    Field {
        required: true,
        ..field(
            "base_url",
            "Address",
            "Adres",
            "What every path below is put behind: https://crm.example.com.",
        )
    },
    Field {
        secret: true,
        ..field(
            "token",
            "Token",
            "Erişim belirteci",
            "Sent with every call, in the header that auth names.",
        )
    },
    field(
        "auth",
        "How the token is sent",
        "Belirtecin gönderilme biçimi",
        "A table: header (default Authorization) and scheme (default Bearer; an empty one for none).",
    ),
    field(
        "headers",
        "Further headers",
        "Diğer başlıklar",
        "A table of names and values, sent with every call. No secrets.",
    ),
    field(
        "probe",
        "Check",
        "Deneme",
        "A table with the path of a GET that changes nothing; doctor makes it. Default: a look-up.",
    ),
    Field {
        required: true,
        ..field(
            "objects",
            "Objects",
            "Nesneler",
            "What can be created there, a table each: objects.lead, objects.task.",
        )
    },
    field(
        "errors",
        "Errors",
        "Hatalar",
        "Where its answers carry code and field, and what they mean.",
    ),
];

const METHODS: [(&str, Method); 4] = [
    ("GET", Method::Get),
    ("POST", Method::Post),
    ("PUT", Method::Put),
    ("PATCH", Method::Patch),
];

/// Reads the settings.
pub(super) fn read(settings: &Settings) -> Result<Spec, Vec<Invalid>> {
    settings::read(settings, |table, secrets| {
        let base_url = table.required("base_url");
        if !base_url.is_empty() && !is_base(&base_url) {
            table.wrong(
                "base_url",
                "must be an address like https://crm.example.com, without credentials, ? or #",
            );
        }
        let mut headers = auth(table, secrets);
        headers.extend(plain_headers(table));
        let probe = table.table("probe").map(|mut probe| {
            let path = path(&mut probe, "path", &[]);
            probe.finish();
            path
        });
        let objects: BTreeMap<_, _> = table
            .named_tables("objects")
            .into_iter()
            .map(|(name, t)| (name, object(t)))
            .collect();
        if objects.is_empty() {
            table.wrong("objects", "is missing; describe at least objects.lead");
        }
        Spec {
            base_url: base_url.trim_end_matches('/').into(),
            headers,
            errors: errors(table, &objects),
            objects,
            probe,
        }
    })
}

fn is_base(url: &str) -> bool {
    settings::is_web_address(url)
        && url::Url::parse(url).is_ok_and(|url| {
            url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
                && url.password().is_none()
        })
}

/// The header that carries the token, if there is one.
fn auth(table: &mut Table<'_>, secrets: &Secrets<'_>) -> Vec<(String, HeaderValue)> {
    let (mut header, mut scheme) = ("authorization".to_owned(), "Bearer".to_owned());
    if let Some(mut auth) = table.table("auth") {
        if let Some(name) = auth.text("header") {
            if !is_header_name(&name) {
                auth.wrong("header", "is no name of a header");
            }
            header = name.to_ascii_lowercase();
        }
        // An empty scheme has a meaning: the token alone.
        match auth.value("scheme") {
            None => {}
            Some(Value::String(text)) => text.trim().clone_into(&mut scheme),
            Some(_) => auth.wrong("scheme", "must be a text in quotes"),
        }
        auth.finish();
    }
    let token = secrets.get("token");
    let value =
        token.map(|token| Secret::new(format!("{scheme} {}", token.expose().trim()).trim_start()));
    value
        .map(|value| (header, HeaderValue::Secret(value)))
        .into_iter()
        .collect()
}

fn plain_headers(table: &mut Table<'_>) -> Vec<(String, HeaderValue)> {
    const SECRET: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];
    const OURS: [&str; 5] = [
        "host",
        "content-length",
        "content-type",
        "connection",
        "transfer-encoding",
    ];
    let pairs = table.pairs("headers");
    for (name, value) in &pairs {
        let key = format!("headers.{name}");
        let lower = name.to_ascii_lowercase();
        if !is_header_name(name) || value.chars().any(char::is_control) {
            table.wrong(&key, "is no header that can be sent");
        }
        if SECRET.contains(&lower.as_str()) {
            table.wrong(&key, "would be stored and shown; give the secret as token, and name the header in auth.header");
        }
        if OURS.contains(&lower.as_str()) {
            table.wrong(&key, "is set by Emanet");
        }
    }
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), HeaderValue::Plain(value)))
        .collect()
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&b))
}

fn object(mut table: Table<'_>) -> Object {
    let look_up = table.table("look_up").map(look_up);
    let matches = look_up.as_ref().map(|l| l.query.matches.clone());
    let by = table
        .named_tables("by")
        .into_iter()
        .map(|(name, t)| (name, alternative(t, matches.clone())))
        .collect();
    let create = match table.table("create") {
        Some(create) => write(create, Method::Post, &[]),
        None => {
            table.wrong("create", "is missing");
            write_nothing()
        }
    };
    let update = table
        .table("update")
        .map(|update| write(update, Method::Patch, &["id"]));
    let read_back = table.table("read_back").map(read_back);
    let missing_data = table.table("missing_data").map(missing_data);
    let object = Object {
        external_id_field: table.text("external_id_field"),
        idempotency_header: table
            .text("idempotency_header")
            .map(|h| h.to_ascii_lowercase()),
        on_found: table.choice(
            "on_found",
            &[("update", OnFound::Update), ("link", OnFound::Link)],
        ),
        links: table.pairs("links"),
        json_fields: table.texts("json_fields"),
        fields: table.pairs("fields"),
        look_up,
        by,
        create,
        update,
        read_back,
        missing_data,
    };
    check(&table, &object);
    table.finish();
    object
}

/// What must fit together.
fn check(table: &Table<'_>, object: &Object) {
    let sends_external_id =
        object.external_id_field.is_some() || object.create.path.contains("{external_id}");
    if object.look_up.is_some() && !sends_external_id {
        table.wrong(
            "external_id_field",
            "is missing: without it a record could not be found again by look_up",
        );
    }
    if object.read_back.is_some() && !sends_external_id {
        table.wrong(
            "external_id_field",
            "is missing: without it read_back has nothing to compare",
        );
    }
    if object.look_up.is_none() && object.create.id.is_none() {
        table.wrong(
            "create.id",
            "is missing: without an id and without look_up nothing proves that a record was made",
        );
    }
    if object
        .idempotency_header
        .as_deref()
        .is_some_and(|header| !is_header_name(header))
    {
        table.wrong("idempotency_header", "is no name of a header");
    }
    for error in Mapping::compile(&object.fields, None)
        .err()
        .unwrap_or_default()
    {
        table.wrong(&format!("fields.{}", error.field), &error.message);
    }
}

/// Search at CRMs runs behind by seconds; one that nobody has said anything about gets this much time.
const LOOK_UP_LAG: Duration = Duration::from_secs(10);

fn look_up(mut table: Table<'_>) -> LookUp {
    let query = query(&mut table, "external_id");
    let absent = match table.value("absent_status") {
        None => Vec::new(),
        Some(value) => {
            let one = std::slice::from_ref(value);
            let list = value.as_array().map_or(one, Vec::as_slice);
            let statuses: Vec<_> = list.iter().filter_map(status).collect();
            if statuses.len() != list.len() {
                table.wrong(
                    "absent_status",
                    "must be a status like 404, or a list of them",
                );
            }
            statuses
        }
    };
    let is_search = table.flag("search", false);
    let lag = table
        .number("lag_seconds", 0..=3_600)
        .map_or(LOOK_UP_LAG, Duration::from_secs);
    table.finish();
    LookUp {
        query,
        absent,
        is_search,
        lag,
    }
}

fn alternative(mut table: Table<'_>, external_id: Option<String>) -> Alternative {
    let alternative = Alternative {
        query: query(&mut table, "value"),
        field: table.required("field"),
        external_id: pointer(&mut table, "external_id").or(external_id),
    };
    table.finish();
    alternative
}

/// A query for `wanted`, which has to stand in its path or body. Without `rows` the answer itself is the list, or the record.
fn query(table: &mut Table<'_>, wanted: &str) -> Query {
    let body = table.value("body").cloned();
    if let Some(Err(message)) = body.as_ref().map(check_texts) {
        table.wrong("body", &message);
    }
    let is_in_body = body
        .as_ref()
        .is_some_and(|body| body.to_string().contains(&format!("{{{wanted}}}")));
    let needed: &[&str] = if is_in_body { &[] } else { &[wanted] };
    let rows = pointers(table, "rows");
    let default = if body.is_some() {
        Method::Post
    } else {
        Method::Get
    };
    Query {
        method: table.choice("method", &METHODS).unwrap_or(default),
        path: path(table, "path", needed),
        body,
        rows: if rows.is_empty() {
            vec![String::new()]
        } else {
            rows
        },
        id: pointer(table, "id").unwrap_or_else(|| "/id".into()),
        matches: required_pointer(table, "match"),
    }
}

fn check_texts(body: &Value) -> Result<(), String> {
    match body {
        Value::String(text) => rest::placeholders(text).map(drop),
        Value::Array(list) => list.iter().try_for_each(check_texts),
        Value::Object(map) => map.values().try_for_each(check_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn write(mut table: Table<'_>, default: Method, needed: &[&str]) -> Write {
    let methods = METHODS.get(1..).unwrap_or_default();
    let write = Write {
        method: table.choice("method", methods).unwrap_or(default),
        path: path(&mut table, "path", needed),
        format: table
            .choice("format", &[("json", Format::Json), ("form", Format::Form)])
            .unwrap_or(Format::Json),
        under: table.text("under"),
        fixed: table.map("fixed"),
        id: pointer(&mut table, "id"),
    };
    if write.format == Format::Form && write.under.is_some() {
        table.wrong(
            "under",
            "has no meaning for a form; write the names as the other side wants them",
        );
    }
    table.finish();
    write
}

fn write_nothing() -> Write {
    Write {
        method: Method::Post,
        path: String::new(),
        format: Format::Json,
        under: None,
        fixed: Map::new(),
        id: None,
    }
}

fn read_back(mut table: Table<'_>) -> ReadBack {
    let read_back = ReadBack {
        path: path(&mut table, "path", &["id"]),
        matches: required_pointer(&mut table, "match"),
    };
    table.finish();
    read_back
}

fn missing_data(mut table: Table<'_>) -> (String, Value) {
    let field = table.required("field");
    let value = table.value("value").cloned();
    if value.is_none() {
        table.wrong(
            "value",
            "is missing: what marks the record, like \"missing data: {missing}\"",
        );
    }
    table.finish();
    (field, value.unwrap_or_default())
}

/// A path with only placeholders that stand for something, and all that are needed.
fn path(table: &mut Table<'_>, key: &str, needed: &[&str]) -> String {
    let path = table.required(key);
    if path.is_empty() {
        return path;
    }
    if !path.starts_with('/') || path.chars().any(|c| c.is_whitespace() || c.is_control()) {
        table.wrong(key, "must begin with / and have no spaces");
    }
    match rest::placeholders(&path) {
        Err(message) => table.wrong(key, &message),
        Ok(names) => {
            for name in needed.iter().filter(|name| !names.contains(name)) {
                table.wrong(key, &format!("must say where {{{name}}} goes"));
            }
        }
    }
    path
}

fn pointers(table: &mut Table<'_>, key: &str) -> Vec<String> {
    let pointers = table.texts(key);
    if pointers.iter().any(|p| !p.starts_with('/')) {
        table.wrong(key, NO_POINTER);
    }
    pointers
}

fn pointer(table: &mut Table<'_>, key: &str) -> Option<String> {
    let pointer = table.text(key)?;
    if !pointer.starts_with('/') {
        table.wrong(key, NO_POINTER);
    }
    Some(pointer)
}

fn required_pointer(table: &mut Table<'_>, key: &str) -> String {
    if table.value(key).is_none() {
        table.wrong(key, "is missing");
    }
    pointer(table, key).unwrap_or_default()
}

const NO_POINTER: &str = "must be a place in the answer, its names behind slashes: /lead/id";

fn errors(table: &mut Table<'_>, objects: &BTreeMap<String, Object>) -> Errors {
    let Some(mut table) = table.table("errors") else {
        return Errors::default();
    };
    let errors = Errors {
        code: pointers(&mut table, "code"),
        field: pointers(&mut table, "field"),
        rows: table
            .tables("rows")
            .into_iter()
            .map(|row| error_row(row, objects))
            .collect(),
    };
    let asks_code = errors.rows.iter().any(|row| row.code.is_some());
    if asks_code && errors.code.is_empty() {
        table.wrong(
            "code",
            "is missing: rows compare a code, but it is not said where answers have it",
        );
    }
    table.finish();
    errors
}

/// What `class` in a row says; `link` is no class: it says that the record is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Class(Class),
    Link,
}

fn error_row(mut table: Table<'_>, objects: &BTreeMap<String, Object>) -> ErrorRow {
    const CLASSES: [(&str, Said); 5] = [
        ("transient", Said::Class(Class::Transient)),
        ("permanent_data", Said::Class(Class::PermanentData)),
        ("permanent_config", Said::Class(Class::PermanentConfig)),
        ("unknown", Said::Class(Class::Unknown)),
        ("link", Said::Link),
    ];
    const EFFECTS: [(&str, Effect); 3] = [
        ("not_applied", Effect::NotApplied),
        ("maybe_applied", Effect::MaybeApplied),
        ("applied", Effect::Applied),
    ];
    let given = table.value("status");
    if given.is_some_and(|s| status(s).is_none()) {
        table.wrong("status", "must be a status like 400");
    }
    if table.value("class").is_none() {
        table.wrong("class", "is missing");
    }
    let said = table.choice("class", &CLASSES);
    let effect = table.choice("effect", &EFFECTS);
    if said == Some(Said::Link) && effect.is_some() {
        table.wrong(
            "effect",
            "follows from the look-up where class is link; leave it out",
        );
    }
    let by = table.text("by");
    if by
        .as_ref()
        .is_some_and(|by| !objects.values().any(|o| o.by.contains_key(by)))
    {
        table.wrong(
            "by",
            "names no look-up of an object (objects.<object>.by.<name>)",
        );
    }
    if by.is_some() && said != Some(Said::Link) {
        table.wrong("by", "goes with class = \"link\" only");
    }
    let row = ErrorRow {
        status: given.and_then(status),
        code: table.text("code"),
        contains: table.text("contains"),
        content_type: table.text("content_type").map(|t| t.to_ascii_lowercase()),
        reading: Row {
            meaning: match said {
                Some(Said::Link) => Meaning::Link,
                Some(Said::Class(class)) => Meaning::Failure(class, effect),
                None => Meaning::Failure(Class::Unknown, None),
            },
            hint: table.required("hint"),
            scope: table
                .choice("scope", &[("target", Scope::Target), ("lead", Scope::Lead)])
                .unwrap_or(Scope::Lead),
        },
        by,
    };
    if row.status.is_none()
        && row.code.is_none()
        && row.contains.is_none()
        && row.content_type.is_none()
    {
        table.wrong("status", "is missing, and so are code, contains and content_type: the row would fit every answer");
    }
    table.finish();
    row
}

fn status(value: &Value) -> Option<u16> {
    value
        .as_u64()
        .and_then(|s| u16::try_from(s).ok())
        .filter(|s| (100..600).contains(s))
}
