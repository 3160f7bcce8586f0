//! A web form: any page that posts fields, and any program that posts JSON.
//!
//! A form has no id of its own for what it sends. Where the page carries our script, or a program sends an id, that one is taken;
//! else the content itself within a time window stands for it (IN-6).

mod config;
mod multipart;
mod page;
mod wire;

use crate::connector::{Received, Reply, Sample, Source, SourceKind, Unreadable};
use crate::signature;
use config::Config;
use emanet_core::event::{Fate, Inbound, Item};
use emanet_core::lead::RawLead;
use jiff::Timestamp;
use std::collections::BTreeMap;
use wire::Submission;

/// The kind `web_form`.
pub(super) const KIND: SourceKind = SourceKind {
    kind: "web_form",
    title: "Web form",
    module: "FORM",
    fields: config::FIELDS,
    docs: include_str!("docs.md"),
    build: |settings| Ok(Box::new(WebForm(Config::read(settings)?))),
};

/// The submission id our script puts into a form.
const ID_FIELD: &str = "emanet_id";
/// Fields that may carry the id of a submission, in this order.
const ID_FIELDS: [&str; 2] = [ID_FIELD, "source_ref"];
/// The longest id taken as it is; of a longer one the digest is.
const ID_CHARS_MAX: usize = 200;
/// Fields of browsers, frameworks and captchas that say nothing about the lead and differ from one sending to the next.
const MACHINERY: [&str; 11] = [
    "_charset_",
    "_csrf",
    "_token",
    "_wpnonce",
    "authenticity_token",
    "cf-turnstile-response",
    "csrf_token",
    "csrfmiddlewaretoken",
    "g-recaptcha-response",
    "h-captcha-response",
    "_wp_http_referer",
];
/// What hidden fields of Contact Form 7 begin with.
const CF7_PREFIX: &str = "_wpcf7";

#[derive(Debug)]
struct WebForm(Config);

impl Source for WebForm {
    fn receive(&self, request: &Inbound, now: Timestamp) -> Received {
        if matches!(request.method.as_str(), "GET" | "HEAD") {
            return Received::Handshake(self.page(request));
        }
        if let Err(reason) = self.authenticate(request) {
            return Received::Refused {
                status: 401,
                reason,
            };
        }
        Received::Events {
            items: self.items(request, now),
            reply: self.reply(request),
        }
    }

    fn read(
        &self,
        request: &Inbound,
        pointer: &str,
        _fetched: Option<&serde_json::Value>,
    ) -> Result<RawLead, Unreadable> {
        let submission = wire::submission(request, pointer).map_err(unreadable)?;
        let is_consent = |name: &String| self.0.consent_fields.contains(name);
        let consent = self.0.consent_fields.iter();
        let consent = consent.map(|name| (name.clone(), is_ticked(submission.values(name))));
        let lead = RawLead {
            consent: consent.collect(),
            fields: submission
                .fields
                .iter()
                .filter(|(name, _)| !self.is_machinery(name) && !is_consent(name))
                .cloned()
                .collect(),
            problems: submission.problems,
            ..RawLead::default()
        };
        if lead.fields.is_empty() {
            return Err(unreadable("no_fields"));
        }
        Ok(lead)
    }

    fn compose(&self, sample: &Sample) -> Inbound {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.append_pair(ID_FIELD, &sample.source_ref);
        body.extend_pairs(&sample.fields);
        let body = body.finish().into_bytes();
        let mut headers = vec![
            header("content-type", "application/x-www-form-urlencoded"),
            header("accept", "application/json"),
        ];
        if let Some(secret) = &self.0.secret {
            headers.push(header("x-emanet-secret", secret.expose()));
        }
        if let Some(secret) = &self.0.hmac_secret {
            headers.push(header(
                "x-emanet-signature",
                &signature::sign(secret, &body),
            ));
        }
        Inbound {
            method: "POST".into(),
            query: String::new(),
            headers,
            body,
        }
    }
}

impl WebForm {
    fn page(&self, request: &Inbound) -> Reply {
        let mut query = url::form_urlencoded::parse(request.query.as_bytes());
        if query.any(|(name, _)| name == "script") {
            Reply::Script(page::SCRIPT.into())
        } else {
            Reply::Text(page::ABOUT.into())
        }
    }

    /// Every check that is configured must pass; one does not stand in for the other (H62).
    fn authenticate(&self, request: &Inbound) -> Result<(), &'static str> {
        if let Some(secret) = &self.0.secret {
            let given = given_secret(request).ok_or("no_secret")?;
            if !signature::is_same(given, secret) {
                return Err("wrong_secret");
            }
        }
        if let Some(secret) = &self.0.hmac_secret {
            let mut headers = request.headers_named("x-emanet-signature").peekable();
            headers.peek().ok_or("no_signature")?;
            if !signature::is_signed(headers, &[secret], &request.body) {
                return Err("bad_signature");
            }
        }
        Ok(())
    }

    /// The events of an authentic request.
    fn items(&self, request: &Inbound, now: Timestamp) -> Vec<Item> {
        let unreadable = |pointer: &str, reason: &str| Found {
            pointer: pointer.to_owned(),
            source_ref: signature::digest([b"body", request.body.as_slice(), pointer.as_bytes()]),
            content: String::new(),
            fate: Fate::Unreadable(reason.into()),
        };
        if request.body.trim_ascii().is_empty() {
            let fate = Fate::Ignore("empty_body".into());
            return separate([Found {
                fate,
                ..unreadable("", "")
            }]);
        }
        match wire::submissions(request) {
            Err(reason) => separate([unreadable("", reason)]),
            Ok(submissions) => {
                let is_alone = submissions.len() == 1;
                separate(
                    submissions
                        .into_iter()
                        .map(|(pointer, submission)| match submission {
                            Ok(submission) => {
                                self.found(request, pointer, &submission, is_alone, now)
                            }
                            Err(reason) => unreadable(&pointer, reason),
                        }),
                )
            }
        }
    }

    fn found(
        &self,
        request: &Inbound,
        pointer: String,
        submission: &Submission,
        is_alone: bool,
        now: Timestamp,
    ) -> Found {
        let is_trapped = submission
            .values(&self.0.honeypot)
            .iter()
            .any(|v| !v.trim().is_empty());
        let from_field = ID_FIELDS
            .iter()
            .find_map(|name| submission.single(name))
            .map(str::to_owned);
        let from_header = || {
            request
                .header("idempotency-key")
                .map(|key| format!("{}{pointer}", key.trim()))
        };
        let id = from_field.or_else(from_header);
        // What it says stands for a missing id, and tells it from its neighbours; else nobody asks.
        let content = match &id {
            Some(_) if is_alone => String::new(),
            _ => self.content(submission),
        };
        Found {
            source_ref: match id {
                Some(id) => clean_id(id),
                None => self.windowed(&content, now),
            },
            fate: if is_trapped {
                Fate::Ignore("honeypot".into())
            } else {
                Fate::Process
            },
            content,
            pointer,
        }
    }

    /// Digest of what a submission says, whatever the order of its fields.
    fn content(&self, submission: &Submission) -> String {
        let mut fields: Vec<_> = submission
            .fields
            .iter()
            .filter(|(name, _)| !self.is_volatile(name))
            .collect();
        fields.sort();
        let count = |values: &Vec<String>| values.len().to_be_bytes();
        let counts: Vec<_> = fields.iter().map(|(_, values)| count(values)).collect();
        signature::digest(
            fields
                .iter()
                .zip(&counts)
                .flat_map(|((name, values), count)| {
                    [name.as_bytes(), count.as_slice()]
                        .into_iter()
                        .chain(values.iter().map(String::as_bytes))
                }),
        )
    }

    /// The id of content that carries none: the same within a window of time, another one in the next.
    ///
    /// Whatever is derived from content and clock alone has an edge somewhere: two sendings on either side of it are two leads,
    /// however close. Where the edge lies is drawn from the content, so that no moment splits everybody's double clicks at once; a
    /// double click a second apart is split once in 600 at the default window. The error is always a second lead, which a person
    /// sees, never a lost one; a submission id (our script, `Idempotency-Key`) has no edge.
    fn windowed(&self, content: &str, now: Timestamp) -> String {
        let window = self.0.dedup_window_seconds.max(1);
        let phase = content
            .bytes()
            .fold(0_i64, |phase, byte| (phase * 31 + i64::from(byte)) % window);
        let number = now.as_second().saturating_add(phase).div_euclid(window);
        signature::digest([
            b"content".as_slice(),
            content.as_bytes(),
            &number.to_be_bytes(),
        ])
    }

    /// Fields that are not part of what the person said.
    fn is_machinery(&self, name: &str) -> bool {
        name.starts_with(CF7_PREFIX)
            || name == self.0.honeypot
            || MACHINERY.contains(&name)
            || ID_FIELDS.contains(&name)
    }

    /// Fields that may differ when one and the same submission is sent again.
    fn is_volatile(&self, name: &str) -> bool {
        self.is_machinery(name) || self.0.volatile_fields.iter().any(|v| v == name)
    }

    fn reply(&self, request: &Inbound) -> Reply {
        match &self.0.thank_you_url {
            _ if !page::is_browser(request) => Reply::Json,
            Some(url) => Reply::SeeOther(url.clone()),
            None => Reply::Html(page::thanks(request).into()),
        }
    }
}

/// An event found in a request, before ids are compared.
struct Found {
    pointer: String,
    source_ref: String,
    content: String,
    fate: Fate,
}

/// Keeps leads apart that say different things under one id in one request: a slip of the sender, for which none is dropped.
fn separate(found: impl IntoIterator<Item = Found>) -> Vec<Item> {
    let mut contents: BTreeMap<String, String> = BTreeMap::new();
    let items = found.into_iter().map(|mut found| {
        let first = contents
            .entry(found.source_ref.clone())
            .or_insert_with(|| found.content.clone());
        if *first != found.content {
            found.source_ref =
                signature::digest([found.source_ref.as_bytes(), found.content.as_bytes()]);
        }
        Item {
            source_ref: found.source_ref,
            pointer: found.pointer,
            created_at: None,
            fate: found.fate,
        }
    });
    items.collect()
}

/// An id as it can be stored, shown and sent on; the digest of one that cannot.
fn clean_id(id: String) -> String {
    if id.is_empty() || id.chars().count() > ID_CHARS_MAX || id.chars().any(char::is_control) {
        signature::digest([b"id", id.as_bytes()])
    } else {
        id
    }
}

/// The shared secret as given. One that is given twice is none.
fn given_secret(request: &Inbound) -> Option<&str> {
    let own = request.headers_named("x-emanet-secret");
    let bearer = request
        .headers_named("authorization")
        .map(|value| value.strip_prefix("Bearer ").unwrap_or(value));
    let mut given = own.chain(bearer);
    given.next().filter(|_| given.next().is_none())
}

/// Whether a box was ticked: browsers send its value or nothing; programs send words.
fn is_ticked(values: &[String]) -> bool {
    const NO: [&str; 7] = ["", "0", "false", "no", "off", "hayır", "hayir"];
    values
        .last()
        .is_some_and(|value| !NO.contains(&value.trim().to_lowercase().as_str()))
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

fn unreadable(reason: &str) -> Unreadable {
    let hint = match reason {
        "not_json" => {
            "The body is no valid JSON. A template that pastes texts without escaping them is the usual cause; send the form's fields as they are instead."
        }
        "not_multipart" | "no_boundary" => {
            "The body is no valid multipart form, perhaps cut off on its way. See the stored body, and enter the lead by hand."
        }
        "no_fields" => "Nothing was filled in. Check that the form's inputs have names.",
        "not_an_object" => "Send each lead as a JSON object of names and values.",
        "too_deep" | "too_many_fields" | "too_many_leads" => {
            "The body is beyond the limits. Send fewer leads or fields at a time, then enter these by hand."
        }
        "unknown_format" => {
            "Send the form as JSON, as application/x-www-form-urlencoded or as multipart/form-data."
        }
        _ => "See the stored body.",
    };
    Unreadable {
        reason: reason.into(),
        hint: hint.into(),
    }
}

#[cfg(test)]
mod tests;
