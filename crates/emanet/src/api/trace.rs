//! What every request carries with it: a trace id (W3C `traceparent`, taken over or made) and the caller's language; and the
//! promise that a panic in a handler is an answer, not a dead connection.
//!
//! Neither paths nor queries are logged here: an intake path is a secret.

use super::error::{self, ApiError};
use crate::env::Env;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use emanet_core::error_code::Language;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use tracing::Instrument;

/// Name of the header of <https://www.w3.org/TR/trace-context/>.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Identity and language of the request being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    id: [u8; 16],
    span: [u8; 8],
    flags: u8,
    /// The caller's language.
    pub language: Language,
}

tokio::task_local! {
    static CURRENT: Trace;
}

impl Trace {
    /// The trace of the request this task serves; `None` outside of one.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|trace| *trace).ok()
    }

    /// The trace id as it stands in answers and logs: 32 hexadecimal digits.
    pub fn id(&self) -> String {
        hexadecimal(&self.id)
    }

    /// The value of the `traceparent` header for our answer and for calls made on behalf of this request.
    pub fn traceparent(&self) -> String {
        format!(
            "00-{}-{}-{:02x}",
            self.id(),
            hexadecimal(&self.span),
            self.flags
        )
    }

    fn of(headers: &HeaderMap, env: &Env) -> Self {
        let (id, flags) = text(headers, &TRACEPARENT)
            .and_then(parse_traceparent)
            .unwrap_or_else(|| (env.bytes(), 0));
        Self {
            id,
            span: env.bytes(),
            flags,
            language: text(headers, &header::ACCEPT_LANGUAGE)
                .map(preferred)
                .unwrap_or_default(),
        }
    }
}

/// Completes a router: unknown routes and methods get the envelope of API-1, every answer a trace, every panic a 500.
/// Call it last, on the whole of what one listener serves.
pub fn traced(router: Router, env: Env) -> Router {
    router
        .fallback(error::no_such_endpoint)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(middleware::from_fn_with_state(env, trace))
}

async fn trace(State(env): State<Env>, request: Request, next: Next) -> Response {
    let trace = Trace::of(request.headers(), &env);
    let span = tracing::info_span!("request", trace.id = %trace.id());
    let mut response = CURRENT
        .scope(trace, async {
            caught(next.run(request))
                .await
                .unwrap_or_else(|Panicked| ApiError::internal("a handler panicked").into_response())
        })
        .instrument(span)
        .await;
    let value = HeaderValue::from_str(&trace.traceparent())
        .expect("hexadecimal digits and hyphens are valid in a header");
    response.headers_mut().insert(TRACEPARENT, value);
    response
}

/// A handler panicked; the panic hook has said where.
struct Panicked;

/// Nothing of a request outlives it, so no state can be seen half-changed after its panic.
async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(_) => Poll::Ready(Err(Panicked)),
        },
    )
    .await
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Trace id and flags of a valid `traceparent`; a later version may have more parts (section 3.2 of the recommendation).
fn parse_traceparent(value: &str) -> Option<([u8; 16], u8)> {
    let mut parts = value.trim().split('-');
    let [version] = bytes::<1>(parts.next()?)?;
    let id = bytes::<16>(parts.next()?)?;
    let parent = bytes::<8>(parts.next()?)?;
    let [flags] = bytes::<1>(parts.next()?)?;
    let is_valid = version != 0xff
        && id != [0; 16]
        && parent != [0; 8]
        && (version != 0 || parts.next().is_none());
    is_valid.then_some((id, flags & 1))
}

/// Exactly N bytes in lower-case hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if text.len() != 2 * N || !text.bytes().all(is_hexadecimal) {
        return None;
    }
    let mut bytes = [0; N];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .map(|half| char::from(DIGITS[usize::from(half)]))
        .collect()
}

/// The language of ours that an `Accept-Language` value likes best; English if it likes none or both the same.
fn preferred(value: &str) -> Language {
    let (mut tr, mut en) = (0.0_f32, 0.0_f32);
    for range in value.split(',') {
        let mut parts = range.split(';');
        let tag = parts.next().unwrap_or_default().trim();
        let primary = tag.split('-').next().unwrap_or_default();
        let weight = parts
            .find_map(|p| p.trim().strip_prefix("q="))
            .map_or(1.0, |q| q.trim().parse().unwrap_or(0.0));
        if primary.eq_ignore_ascii_case("tr") {
            tr = tr.max(weight);
        } else if primary.eq_ignore_ascii_case("en") {
            en = en.max(weight);
        }
    }
    if tr > en { Language::Tr } else { Language::En }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_traceparent_is_taken_over_and_nothing_else() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let check = |value: String, valid: bool| {
            let parsed = parse_traceparent(&value).map(|(id, _)| hexadecimal(&id));
            assert_eq!(parsed.as_deref(), valid.then_some(id), "{value}");
        };
        check(format!("00-{id}-00f067aa0ba902b7-01"), true);
        check(format!("cc-{id}-00f067aa0ba902b7-01-what-comes"), true);
        check(format!("00-{id}-00f067aa0ba902b7-01-more"), false);
        check(format!("ff-{id}-00f067aa0ba902b7-01"), false);
        check(format!("00-{id}-0000000000000000-01"), false);
        check(format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), false);
        check(
            format!("00-{}-00f067aa0ba902b7-01", id.to_uppercase()),
            false,
        );
        check(format!("00-{id}-00f067aa0ba902b7"), false);
        check(format!("00-{id}é-00f067aa0ba902b7-01"), false);
        check(String::new(), false);
    }

    #[test]
    fn the_language_asked_for_most_wins() {
        for (value, language) in [
            ("tr", Language::Tr),
            ("tr-TR,tr;q=0.9,en;q=0.8", Language::Tr),
            ("en-US,en;q=0.9,tr;q=0.8", Language::En),
            ("en;q=0.2, TR;q=0.3", Language::Tr),
            ("de, fr", Language::En),
            ("tr;q=nonsense", Language::En),
            ("", Language::En),
            (";;,,;q=", Language::En),
        ] {
            assert_eq!(preferred(value), language, "{value}");
        }
    }
}
