//! Reads the bodies forms post: urlencoded, multipart, JSON; in UTF-8, else in the Turkish code page.
//!
//! Nothing is thrown away that a person may have typed: names that come twice keep both values, and of a file its name and size
//! remain (the bytes stay in the stored body).

use super::multipart;
use crate::json::{self, Node};
use emanet_core::event::Inbound;
use emanet_core::lead::Problem;
use encoding_rs::{Encoding, WINDOWS_1254};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Leads taken from one request at most.
const LEADS_MAX: usize = 1_000;
/// Fields of one lead at most.
const FIELDS_MAX: usize = 1_000;

/// What one lead's part of a body says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Submission {
    /// Names and values, in the order of the body.
    pub(super) fields: Vec<(String, Vec<String>)>,
    /// What was wrong with it.
    pub(super) problems: Vec<Problem>,
}

/// Where a lead stands, and what it says or why that cannot be read.
pub(super) type Placed = (String, Result<Submission, Reason>);

/// A stable reason why a body, or one lead of it, cannot be read.
pub(super) type Reason = &'static str;

impl Submission {
    /// The values of a field; none if it is not there.
    pub(super) fn values(&self, name: &str) -> &[String] {
        self.fields
            .iter()
            .find(|(n, _)| n == name)
            .map_or(&[], |(_, values)| values)
    }

    /// The one value of a field. One that comes with two different values has none: which of them is meant is not for us to say.
    pub(super) fn single(&self, name: &str) -> Option<&str> {
        let (first, rest) = self.values(name).split_first()?;
        let first = first.trim();
        (!first.is_empty() && rest.iter().all(|v| v.trim() == first)).then_some(first)
    }

    /// Adds values under a name, to those that are there.
    pub(super) fn add(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        match self.fields.iter_mut().find(|(n, _)| n == name) {
            Some((_, there)) => there.extend(values),
            None => self
                .fields
                .push((name.to_owned(), values.into_iter().collect())),
        }
    }

    fn note(&mut self, field: &str, code: &str) {
        let note = Problem::note(field, code);
        if self.problems.len() < FIELDS_MAX && !self.problems.contains(&note) {
            self.problems.push(note);
        }
    }

    fn checked(self) -> Result<Self, Reason> {
        match self.fields.len() {
            0 => Err("no_fields"),
            n if n > FIELDS_MAX => Err("too_many_fields"),
            _ => Ok(self),
        }
    }
}

/// Every lead of a request: where it stands (`""` for the whole body, `/3` in a list) and what it says.
pub(super) fn submissions(request: &Inbound) -> Result<Vec<Placed>, Reason> {
    match Body::of(request)? {
        Body::Fields(submission) => Ok(vec![(String::new(), submission.checked())]),
        Body::Json(text, is_guessed) => match elements(&text)? {
            None => Ok(vec![(String::new(), object(&text, is_guessed))]),
            Some(list) if list.is_empty() => Err("no_fields"),
            Some(list) if list.len() > LEADS_MAX => Err("too_many_leads"),
            Some(list) => {
                let each = list.iter().map(|raw| object(raw.get(), is_guessed));
                Ok((0..).map(|i: usize| format!("/{i}")).zip(each).collect())
            }
        },
    }
}

/// The lead at one place of a request. In a list only this one is read.
pub(super) fn submission(request: &Inbound, pointer: &str) -> Result<Submission, Reason> {
    let Some(index) = pointer.strip_prefix('/') else {
        let found = submissions(request)?
            .into_iter()
            .find(|(p, _)| p == pointer);
        return found.ok_or("no_such_lead")?.1;
    };
    let Body::Json(text, is_guessed) = Body::of(request)? else {
        return Err("no_such_lead");
    };
    let list = elements(&text)?.unwrap_or_default();
    let raw = index.parse::<usize>().ok().and_then(|i| list.get(i));
    object(raw.ok_or("no_such_lead")?.get(), is_guessed)
}

/// A body, decoded as far as its format goes.
enum Body<'a> {
    Fields(Submission),
    /// The text, and whether its encoding was guessed.
    Json(Cow<'a, str>, bool),
}

impl<'a> Body<'a> {
    /// Goes by the content type, and by the look of the body where that says nothing or says what is plainly not so: `curl -d`
    /// and hand-made templates post JSON as `x-www-form-urlencoded` or `text/plain`.
    fn of(request: &'a Inbound) -> Result<Self, Reason> {
        let content_type = request.header("content-type").unwrap_or_default();
        let (mime, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
        let mime = mime.trim().to_ascii_lowercase();
        if mime == "multipart/form-data" {
            return multipart::read(content_type, &request.body)
                .map(|parts| Self::Fields(decoded(parts, None)));
        }
        let charset = parameter(parameters, "charset");
        if mime == "application/json" || mime.ends_with("+json") || looks_like_json(&request.body) {
            let (text, is_guessed) = decode(&request.body, charset);
            return Ok(Self::Json(text, is_guessed));
        }
        if mime == "application/x-www-form-urlencoded" || looks_urlencoded(&request.body) {
            return Ok(Self::Fields(decoded(urlencoded(&request.body), charset)));
        }
        Err("unknown_format")
    }
}

/// A name and a value as bytes, in whatever encoding the form has.
pub(super) struct Part {
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Decodes a form's names and values. A form has one encoding: what it says in `_charset_` goes first, then UTF-8 if all of it is,
/// then what the header says, then the Turkish code page.
fn decoded(parts: Vec<Part>, charset: Option<&'static Encoding>) -> Submission {
    let stated = parts
        .iter()
        .find(|p| p.name == b"_charset_")
        .and_then(|p| Encoding::for_label(&p.value))
        .map(Encoding::output_encoding);
    let is_utf8 = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
    let all_utf8 = parts.iter().all(|p| is_utf8(&p.name) && is_utf8(&p.value));
    let (encoding, is_guessed) = match stated {
        Some(encoding) if encoding != encoding_rs::UTF_8 => (encoding, false),
        _ if all_utf8 => (encoding_rs::UTF_8, false),
        _ => fallback(charset),
    };
    let mut submission = Submission::default();
    for part in &parts {
        // Past the limit the lead is refused anyway, and looking every name up would take the time of a hundred leads (F28).
        if submission.fields.len() > FIELDS_MAX {
            break;
        }
        let name = encoding.decode_without_bom_handling(&part.name).0;
        let value = encoding.decode_without_bom_handling(&part.value).0;
        submission.add(name.trim_start_matches('\u{feff}'), [value.into_owned()]);
    }
    if is_guessed {
        submission.note("", "charset_fallback");
    }
    submission
}

/// Decodes a whole body: by its byte order mark, else UTF-8, else what the header says, else the Turkish code page. Says whether
/// the last was a guess.
fn decode<'a>(bytes: &'a [u8], charset: Option<&'static Encoding>) -> (Cow<'a, str>, bool) {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        let text = encoding.decode_without_bom_handling(bytes.get(mark..).unwrap_or_default());
        return (text.0, false);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Cow::Borrowed(text), false);
    }
    let (encoding, is_guessed) = fallback(charset);
    (encoding.decode_without_bom_handling(bytes).0, is_guessed)
}

/// What bytes that are no UTF-8 are taken for: Turkish sites of old send windows-1254 without saying so.
fn fallback(charset: Option<&'static Encoding>) -> (&'static Encoding, bool) {
    match charset.filter(|c| *c != encoding_rs::UTF_8) {
        Some(encoding) => (encoding, false),
        None => (WINDOWS_1254, true),
    }
}

fn parameter(parameters: &str, name: &str) -> Option<&'static Encoding> {
    let value = parameters.split(';').find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then_some(value)
    })?;
    Encoding::for_label(value.trim().trim_matches('"').as_bytes())
}

/// A bracket is what no form begins with: it would be percent-encoded.
fn looks_like_json(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Names and values with nothing in between that the encoding would have escaped.
fn looks_urlencoded(body: &[u8]) -> bool {
    body.contains(&b'=')
        && body
            .iter()
            .all(|b| !b.is_ascii_whitespace() && !b.is_ascii_control() && !b"<>{}\"".contains(b))
}

fn urlencoded(body: &[u8]) -> Vec<Part> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    body.trim_ascii_end()
        .split(|b| *b == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let mut sides = pair.splitn(2, |b| *b == b'=');
            let mut side = || unescape(sides.next().unwrap_or_default());
            Part {
                name: side(),
                value: side(),
            }
        })
        .collect()
}

/// `+` is a space, `%41` a byte; a per cent sign that begins no escape is itself.
fn unescape(escaped: &[u8]) -> Vec<u8> {
    let digit = |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16));
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match (first, digit(tail.first()), digit(tail.get(1))) {
            (b'%', Some(high), Some(low)) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = tail.get(2..).unwrap_or_default();
            }
            (b'+', _, _) => bytes.push(b' '),
            (other, _, _) => bytes.push(*other),
        }
    }
    bytes
}

fn elements(text: &str) -> Result<Option<Vec<&RawValue>>, Reason> {
    json::elements(text).map_err(json::Broken::reason)
}

/// One lead of a JSON body. Nested values get dotted names.
fn object(text: &str, is_guessed: bool) -> Result<Submission, Reason> {
    let node = json::parse(text).map_err(json::Broken::reason)?;
    if !matches!(node, Node::Object(_)) {
        return Err("not_an_object");
    }
    let mut submission = Submission::default();
    flatten("", &node, &mut submission);
    if is_guessed {
        submission.note("", "charset_fallback");
    }
    submission.checked()
}

fn flatten(name: &str, node: &Node, submission: &mut Submission) {
    let below = |key: &str| {
        if name.is_empty() {
            key.to_owned()
        } else {
            format!("{name}.{key}")
        }
    };
    match node {
        // Past the limit the lead is refused anyway.
        _ if submission.fields.len() > FIELDS_MAX => {}
        Node::Object(members) => {
            for key in node.doubled().into_iter().take(FIELDS_MAX) {
                submission.note(&below(key), "duplicate_key");
            }
            for (key, value) in members {
                flatten(&below(key), value, submission);
            }
        }
        Node::List(elements) if elements.iter().any(is_nested) => {
            for (index, element) in elements.iter().enumerate() {
                flatten(&below(&index.to_string()), element, submission);
            }
        }
        Node::List(elements) => submission.add(name, elements.iter().filter_map(scalar)),
        _ => submission.add(name, scalar(node)),
    }
}

fn is_nested(node: &Node) -> bool {
    matches!(node, Node::Object(_) | Node::List(_))
}

fn scalar(node: &Node) -> Option<String> {
    match node {
        Node::Bool(value) => Some(value.to_string()),
        _ => node.text().map(str::to_owned),
    }
}
