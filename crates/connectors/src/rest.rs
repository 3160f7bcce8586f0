//! What a CRM with a REST interface has in common with every other: look the record up, create or update it, see that it is there.
//!
//! A [`Spec`] says how one CRM does it; `next` is the machine. Three rules it never breaks: where there is a look-up it comes
//! first (ID-2); a 2xx without proof is no success (H60, F38); and after an answer that leaves a doubt, nothing is created again
//! before the record was looked for. It knows no vendor.

mod answer;
mod body;
mod spec;
mod template;

pub(crate) use answer::{ErrorRow, Errors};
pub(crate) use body::Format;
pub(crate) use spec::{Alternative, LookUp, Object, OnFound, Query, ReadBack, Spec, Write};
pub(crate) use template::placeholders;

use crate::connector::{Destination, Next, Repeat, StepInput};
use answer::{Finding, Written};
use emanet_core::call::{Answer, Call, Exchange, HeaderValue, Method};
use emanet_core::classify::{Class, Effect, Failure, Scope};
use emanet_core::key;
use emanet_core::step::Delivered;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;
use template::Values;

/// Names of the calls. A look-up after a create goes by another name than the one before it: it answers another question.
const LOOK_UP: &str = "look_up";
const CREATE: &str = "create";
const CONFIRM: &str = "confirm";
const LOOK_UP_BY: &str = "look_up_by_";
const UPDATE: &str = "update";
const READ_BACK: &str = "read_back";
const PROBE: &str = "probe";

/// The longest key sent as it is; the alphabet and length of a header are limited, and so are vendors' columns.
const KEY_BYTES_MAX: usize = 255;
/// What `doctor` looks for; no lead has this external id.
const PROBE_ID: &str = "emanet:doctor";

/// A CRM described by a spec is a destination; the folders of connectors only describe.
impl Destination for Spec {
    fn repeat(&self, object: &str) -> Repeat {
        let object = self.objects.get(object);
        Repeat {
            native_key: object
                .is_some_and(|o| o.idempotency_header.is_some() || o.create.is_upsert()),
            look_up: object.is_some_and(|o| o.look_up.is_some()),
            lag: object
                .and_then(|o| o.look_up.as_ref())
                .map_or(Duration::ZERO, |l| l.lag),
        }
    }

    fn objects(&self) -> Vec<String> {
        self.objects.keys().cloned().collect()
    }

    fn default_fields(&self, object: &str) -> BTreeMap<String, String> {
        self.objects
            .get(object)
            .map(|o| o.fields.clone())
            .unwrap_or_default()
    }

    fn next(&self, input: &StepInput<'_>, run: &[Exchange], now: Timestamp) -> Next {
        let Some(object) = self.objects.get(input.object) else {
            return Next::Fail(unknown_object(input.object));
        };
        let step = Step {
            spec: self,
            object,
            input,
            run,
            now,
        };
        step.next().unwrap_or_else(Next::Fail)
    }

    /// The one configured, else a look-up of nothing.
    fn probe(&self) -> Option<Call> {
        let values = Values {
            external_id: PROBE_ID,
            ..Values::default()
        };
        let look_up = || self.objects.values().find_map(|o| o.look_up.as_ref());
        let query = match &self.probe {
            Some(path) => Query {
                path: path.clone(),
                ..Query::default()
            },
            None => look_up()?.query.clone(),
        };
        query_call(self, PROBE, &query, &values).ok()
    }

    fn probed(&self, exchange: &Exchange, now: Timestamp) -> Result<(), Failure> {
        let answer = &exchange.answer;
        let absent = self.objects.values().find_map(|o| o.look_up.as_ref());
        let is_absence =
            absent.is_some_and(|l| self.probe.is_none() && l.absent.contains(&answer.status));
        if is_absence || (answer.is_success() && !answer::is_page(answer)) {
            Ok(())
        } else if answer.is_success() {
            Err(answer::page_instead(answer))
        } else {
            Err(self.errors.failure(answer, now))
        }
    }
}

/// One step at one moment of one run.
struct Step<'a> {
    spec: &'a Spec,
    object: &'a Object,
    input: &'a StepInput<'a>,
    run: &'a [Exchange],
    now: Timestamp,
}

impl Step<'_> {
    /// `Err` is the end of the step with a failure, as is [`Next::Fail`]; it lets the leaves use `?`.
    fn next(&self) -> Result<Next, Failure> {
        let Some(last) = self.run.last() else {
            return self.begin();
        };
        let answer = &last.answer;
        match last.call.name.as_str() {
            LOOK_UP => self.after_look_up(answer),
            CREATE => self.after_create(answer),
            CONFIRM => self.after_confirm(answer),
            UPDATE => self.after_update(answer),
            READ_BACK => self.after_read_back(answer),
            name => match name
                .strip_prefix(LOOK_UP_BY)
                .and_then(|by| self.object.by.get(by))
            {
                Some(by) => self.after_look_up_by(by, answer),
                None => Err(Failure::internal(
                    "the run holds a call that is not of this connector",
                )),
            },
        }
    }

    fn begin(&self) -> Result<Next, Failure> {
        if self.input.fields.is_empty() {
            return Err(nothing_to_send());
        }
        match &self.object.look_up {
            Some(look_up) => self.ask(LOOK_UP, &look_up.query, self.values()),
            None => self.create(),
        }
    }

    fn after_look_up(&self, answer: &Answer) -> Result<Next, Failure> {
        match self.look(answer)? {
            Finding::Found(row) if self.input.maybe_applied => self.found(&row, OnFound::Link),
            Finding::Found(row) => self.found(&row, OnFound::Update),
            Finding::Absent => self.create(),
        }
    }

    fn create(&self) -> Result<Next, Failure> {
        let mut call = self.write(CREATE, &self.object.create, self.values(), true)?;
        if let Some(header) = &self.object.idempotency_header {
            call.headers.push((
                header.clone(),
                HeaderValue::Plain(header_key(self.input.key)),
            ));
        }
        Ok(Next::Call(call))
    }

    fn after_create(&self, answer: &Answer) -> Result<Next, Failure> {
        match self
            .spec
            .errors
            .written(answer, self.object.create.id.as_deref(), self.now)
        {
            Written::Proven(id) => match &self.object.read_back {
                Some(read_back) => self.ask(READ_BACK, &read_back.query(), self.values_of(&id)),
                None => Ok(self.done(&id, "created")),
            },
            Written::Unproven(failure) => match &self.object.look_up {
                Some(look_up) => self.ask(CONFIRM, &look_up.query, self.values()),
                None => Err(failure),
            },
            Written::Exists(failure, by) => match (&self.object.look_up, by) {
                (Some(look_up), _) => self.ask(CONFIRM, &look_up.query, self.values()),
                (None, Some(by)) => self.look_up_by(by, failure),
                (None, None) => Err(failure),
            },
            Written::Refused(failure) => Err(failure),
        }
    }

    /// The look-up after a create that proved nothing, or that said "it exists already".
    fn after_confirm(&self, answer: &Answer) -> Result<Next, Failure> {
        let created = self.answer_to(CREATE)?;
        match self
            .spec
            .errors
            .written(created, self.object.create.id.as_deref(), self.now)
        {
            Written::Exists(failure, by) => match (self.look(answer)?, by) {
                // Whoever made it, it is this event's: another attempt of ours was faster.
                (Finding::Found(row), _) => self.found(&row, OnFound::Link),
                (Finding::Absent, Some(by)) => self.look_up_by(by, failure),
                (Finding::Absent, None) => Err(nowhere(failure)),
            },
            Written::Proven(_) | Written::Unproven(_) | Written::Refused(_) => {
                match self.look(answer) {
                    Ok(Finding::Found(row)) => Ok(self.done(&row.id, "created")),
                    Ok(Finding::Absent) => Err(unproven(created)),
                    // The doubt about the create stays, whatever became of the look-up.
                    Err(failure) => Err(Failure {
                        effect: Effect::MaybeApplied,
                        ..failure
                    }),
                }
            }
        }
    }

    /// Another way to find what the other side says is there, by a value of the lead.
    fn look_up_by(&self, by: &str, failure: Failure) -> Result<Next, Failure> {
        let Some((alternative, value)) = self.alternative(by) else {
            return Err(nowhere(failure));
        };
        let values = Values {
            value,
            ..self.values()
        };
        self.ask(&format!("{LOOK_UP_BY}{by}"), &alternative.query, values)
    }

    fn after_look_up_by(&self, by: &Alternative, answer: &Answer) -> Result<Next, Failure> {
        let value = self
            .input
            .fields
            .get(&by.field)
            .map(String::as_str)
            .unwrap_or_default();
        match by.matching(answer, value) {
            Ok(Finding::Found(row)) => self.found(&row, OnFound::Update),
            Ok(Finding::Absent) => {
                let created = self.answer_to(CREATE)?;
                Err(nowhere(self.spec.errors.failure(created, self.now)))
            }
            Err(failure) => Err(self.better(answer, failure)),
        }
    }

    /// What becomes of a record that is there. `usual` is what the moment asks for; the configuration goes before it.
    ///
    /// Usual is an update, so that the record says what the lead says now. After an attempt that may have been applied it is not:
    /// the record is then almost surely this attempt's own, and what a salesperson has since changed in it is not to be undone.
    fn found(&self, row: &answer::Row, usual: OnFound) -> Result<Next, Failure> {
        match (self.object.on_found.unwrap_or(usual), &self.object.update) {
            (OnFound::Update, Some(update)) => {
                // A record that another event made keeps its external id: that event's look-up has to go on finding it.
                let is_free = row
                    .external_id
                    .as_deref()
                    .is_none_or(|id| id.is_empty() || id == self.input.external_id);
                let call = self.write(UPDATE, update, self.values_of(&row.id), is_free)?;
                Ok(Next::Call(call))
            }
            (OnFound::Update, None) | (OnFound::Link, _) => Ok(self.done(&row.id, "linked")),
        }
    }

    fn after_update(&self, answer: &Answer) -> Result<Next, Failure> {
        let row = self.found_before()?;
        let pointer = self.object.update.as_ref().and_then(|u| u.id.as_deref());
        match self.spec.errors.updated(answer, pointer, &row.id, self.now) {
            Ok(()) => Ok(self.done(&row.id, "updated")),
            Err(failure) => Err(failure),
        }
    }

    /// An undefined field is dropped without a word, and the next look-up would miss the record: this is where it shows. An
    /// answer that says neither way does not undo the proof that the create gave.
    fn after_read_back(&self, answer: &Answer) -> Result<Next, Failure> {
        let created = self.answer_to(CREATE)?;
        let Written::Proven(id) =
            self.spec
                .errors
                .written(created, self.object.create.id.as_deref(), self.now)
        else {
            return Err(Failure::internal(
                "a record was read back that was not created",
            ));
        };
        let read_back = self.object.read_back.as_ref();
        let json = answer.json().filter(|_| answer.is_success());
        match json.zip(read_back) {
            Some((json, read_back))
                if answer::text_at(&json, &read_back.matches).as_deref()
                    != Some(self.input.external_id) =>
            {
                Err(dropped(&id, self.object))
            }
            _ => Ok(self.done(&id, "created")),
        }
    }

    /// The finding of the look-up by external id.
    fn look(&self, answer: &Answer) -> Result<Finding, Failure> {
        let Some(look_up) = &self.object.look_up else {
            return Err(Failure::internal(
                "a look-up was made that is not configured",
            ));
        };
        if look_up.absent.contains(&answer.status) {
            return Ok(Finding::Absent);
        }
        look_up
            .matching(answer, self.input.external_id)
            .map_err(|failure| self.better(answer, failure))
    }

    /// The record that the update was made for.
    fn found_before(&self) -> Result<answer::Row, Failure> {
        let found = self.run.iter().rev().find_map(|exchange| {
            let finding = match exchange.call.name.as_str() {
                LOOK_UP | CONFIRM => self.look(&exchange.answer).ok()?,
                name => {
                    let by = self.object.by.get(name.strip_prefix(LOOK_UP_BY)?)?;
                    by.matching(&exchange.answer, self.input.fields.get(&by.field)?)
                        .ok()?
                }
            };
            match finding {
                Finding::Found(row) => Some(row),
                Finding::Absent => None,
            }
        });
        found.ok_or_else(|| Failure::internal("a record was updated that was not found"))
    }

    /// What an answer to a call that only reads means: the other side's own words if it refused, else what is wrong with them.
    fn better(&self, answer: &Answer, unreadable: Failure) -> Failure {
        if answer.is_success() && !self.spec.errors.explains(answer) {
            return unreadable;
        }
        Failure {
            effect: Effect::NotApplied,
            ..self.spec.errors.failure(answer, self.now)
        }
    }

    fn alternative(&self, by: &str) -> Option<(&Alternative, &str)> {
        let alternative = self.object.by.get(by)?;
        let value = self.input.fields.get(&alternative.field)?;
        Some((alternative, value))
    }

    fn answer_to(&self, name: &str) -> Result<&Answer, Failure> {
        let exchange = self.run.iter().find(|e| e.call.name == name);
        let exchange = exchange
            .ok_or_else(|| Failure::internal("the run lacks the call that this one follows"))?;
        Ok(&exchange.answer)
    }

    fn ask(&self, name: &str, query: &Query, values: Values<'_>) -> Result<Next, Failure> {
        query_call(self.spec, name, query, &values).map(Next::Call)
    }

    fn write(
        &self,
        name: &str,
        write: &Write,
        values: Values<'_>,
        with_external_id: bool,
    ) -> Result<Call, Failure> {
        let body = body::build(self.object, write, self.input, with_external_id);
        let mut headers = self.spec.headers();
        headers.push((
            "content-type".into(),
            HeaderValue::Plain(write.format.content_type().into()),
        ));
        Ok(Call {
            name: name.into(),
            method: write.method,
            url: self.spec.url(&write.path, &values).map_err(unfilled)?,
            headers,
            body,
            mutates: true,
        })
    }

    fn values(&self) -> Values<'_> {
        Values {
            external_id: self.input.external_id,
            links: Some(self.input.links),
            ..Values::default()
        }
    }

    fn values_of<'v>(&'v self, id: &'v str) -> Values<'v> {
        Values {
            id,
            ..self.values()
        }
    }

    fn done(&self, id: &str, how: &str) -> Next {
        Next::Done(Delivered {
            object: Some(self.input.object.into()),
            id: Some(id.into()),
            how: how.into(),
            data: serde_json::Value::Null,
        })
    }
}

fn query_call(
    spec: &Spec,
    name: &str,
    query: &Query,
    values: &Values<'_>,
) -> Result<Call, Failure> {
    let mut headers = spec.headers();
    let body = match &query.body {
        None => Vec::new(),
        Some(body) => {
            headers.push((
                "content-type".into(),
                HeaderValue::Plain("application/json".into()),
            ));
            template::fill_json(body, values)
                .map_err(unfilled)?
                .to_string()
                .into_bytes()
        }
    };
    Ok(Call {
        name: name.into(),
        method: if query.body.is_some() {
            query.method
        } else {
            Method::Get
        },
        url: spec.url(&query.path, values).map_err(unfilled)?,
        headers,
        body,
        mutates: false,
    })
}

/// The step's key as a header takes it.
fn header_key(key: &str) -> String {
    if key.len() <= KEY_BYTES_MAX && key.bytes().all(|b| b.is_ascii_graphic()) {
        key.to_owned()
    } else {
        key::compact(key)
    }
}

fn unknown_object(object: &str) -> Failure {
    Failure {
        class: Class::PermanentConfig,
        scope: Scope::Target,
        message: format!("This destination has no object \"{object}\"."),
        hint: "Describe the object in the destination's settings, or name another one in the flow."
            .into(),
        ..Failure::internal("")
    }
}

/// Some CRMs make a record of an empty object, and nobody ever learns whose it was.
fn nothing_to_send() -> Failure {
    Failure {
        class: Class::PermanentData,
        message: "None of the mapped fields has a value for this lead.".into(),
        hint: "Name the fields in the flow's step or in the destination's object, or enter the lead by hand.".into(),
        ..Failure::internal("")
    }
}

/// A path names something that is not there: only an id of an earlier step can be missing.
fn unfilled(name: String) -> Failure {
    Failure {
        class: Class::PermanentConfig,
        message: format!(
            "The path asks for {{{name}}}, which no earlier step of this lead has made here."
        ),
        hint: "Let this step need the one that makes the record, in the same destination.".into(),
        ..Failure::internal("")
    }
}

/// The other side says that the record exists, and shows it to nobody (a converted lead that still blocks its e-mail).
fn nowhere(failure: Failure) -> Failure {
    Failure {
        message: "The other side says that such a record exists already, but no look-up shows it."
            .into(),
        ..failure
    }
}

/// A 2xx, no id, and the look-up says that nothing is there. Creating again could make a second one if the look-up lags behind, and
/// gives the same answer if it does not; so a person looks (H60, H64, F38).
fn unproven(created: &Answer) -> Failure {
    Failure {
        status: Some(created.status),
        message: "The other side answered with success, but gave no id, and its look-up does not show the record.".into(),
        hint: "Look there for a record with this phone or e-mail: the other side may have taken it for a duplicate. Resolve with its id, or replay.".into(),
        ..Failure::internal("")
    }
}

fn dropped(id: &str, object: &Object) -> Failure {
    let field = object.external_id_field.as_deref().unwrap_or_default();
    Failure {
        class: Class::PermanentConfig,
        effect: Effect::Applied,
        scope: Scope::Target,
        field: Some(field.to_owned()),
        message: format!(
            "The record was created with the id {id}, but it does not carry the external id that was sent with it."
        ),
        hint: format!(
            "The field \"{field}\" is not defined there, so it was dropped. Define it as a text field, enter the external id in that record by hand, then replay."
        ),
        ..Failure::internal("")
    }
}
