//! The tables of ERR-2, ERR-3, ERR-5 and ERR-6, and what must hold for every answer.

use super::*;
use crate::call::BodyState;
use Class::{PermanentConfig, PermanentData, Transient, Unknown};
use Effect::{Applied, MaybeApplied, NotApplied};
use proptest::prelude::*;

fn now() -> Timestamp {
    "2026-10-21T07:00:00Z".parse().unwrap()
}

fn answered(status: u16, headers: &[(&str, &str)]) -> Answer {
    Answer {
        status,
        headers: headers
            .iter()
            .map(|(n, v)| ((*n).into(), (*v).into()))
            .collect(),
        body: Vec::new(),
        body_state: BodyState::Whole,
        reused_connection: false,
    }
}

fn failure(verdict: Verdict) -> (Failure, bool) {
    match verdict {
        Verdict::Failed(failure) => (failure, false),
        Verdict::Link(failure) => (failure, true),
    }
}

fn check(statuses: impl IntoIterator<Item = u16>, class: Class, effect: Effect, scope: Scope) {
    for status in statuses {
        let verdict = answer(&answered(status, &[]), &VendorError::default(), now());
        let (failure, is_link) = failure(verdict);
        assert_eq!(
            (failure.class, failure.effect, failure.scope),
            (class, effect, scope),
            "{status}"
        );
        assert_eq!(failure.status, Some(status));
        assert_eq!(is_link, status == 409, "{status}");
    }
}

/// ERR-2, ERR-5, ERR-6, H50: every status has its class and effect.
#[test]
fn each_status_has_its_class_and_effect() {
    check([429, 421, 425], Transient, NotApplied, Scope::Lead);
    check([500, 502, 503, 504], Transient, MaybeApplied, Scope::Lead);
    check(
        [506, 507, 508, 511, 520, 524, 599],
        Transient,
        MaybeApplied,
        Scope::Lead,
    );
    check([408], Transient, MaybeApplied, Scope::Lead);
    check(
        [401, 402, 403, 405, 415, 501, 505],
        PermanentConfig,
        NotApplied,
        Scope::Target,
    );
    check(
        [300, 301, 304, 307, 308],
        PermanentConfig,
        NotApplied,
        Scope::Target,
    );
    check([302, 303], PermanentConfig, MaybeApplied, Scope::Target);
    check([404, 410, 431], PermanentConfig, NotApplied, Scope::Lead);
    check([400, 409, 413, 422], PermanentData, NotApplied, Scope::Lead);
    check(
        [406, 407, 412, 414, 418, 423, 451, 499],
        Unknown,
        NotApplied,
        Scope::Lead,
    );
    check(
        [200, 201, 202, 204, 207, 299],
        Unknown,
        MaybeApplied,
        Scope::Lead,
    );
    check(
        [0, 100, 101, 103, 199, 600, 999, u16::MAX],
        Unknown,
        MaybeApplied,
        Scope::Lead,
    );
}

/// ERR-6: a 408 on a reused connection was sent to nobody's request; any other may have been read.
#[test]
fn a_408_on_a_reused_connection_was_not_applied() {
    let stale = Answer {
        reused_connection: true,
        ..answered(408, &[])
    };
    let (failure, _) = failure(answer(&stale, &VendorError::default(), now()));
    assert_eq!((failure.class, failure.effect), (Transient, NotApplied));
}

/// ERR-5: a 503 that says when to come back was refused; one that does not may have been half done.
#[test]
fn a_503_with_retry_after_was_not_applied() {
    for (headers, effect, wait) in [
        (&[("retry-after", "120")][..], NotApplied, Some(120)),
        (
            &[("retry-after", "Wed, 21 Oct 2026 07:02:00 GMT")],
            NotApplied,
            Some(120),
        ),
        (&[("retry-after", "soon")], MaybeApplied, None),
        (&[("retry-after", "")], MaybeApplied, None),
        (&[], MaybeApplied, None),
    ] {
        let verdict = answer(&answered(503, headers), &VendorError::default(), now());
        let (failure, _) = failure(verdict);
        let read = failure.retry_after.map(|r| r.wait.as_secs());
        assert_eq!((failure.effect, read), (effect, wait), "{headers:?}");
    }
}

/// ERR-4: the header is read on every answer; of several, the first that can be read.
#[test]
fn retry_after_is_read_from_the_header() {
    for (status, headers, expected) in [
        (429, &[("retry-after", "7")][..], Some((7, false))),
        (
            429,
            &[("retry-after", "7"), ("retry-after", "9")],
            Some((7, false)),
        ),
        (
            429,
            &[("retry-after", "soon"), ("retry-after", "9")],
            Some((9, false)),
        ),
        (500, &[("retry-after", "-1")], Some((0, true))),
        (401, &[("retry-after", "1000000000")], Some((86_400, true))),
        (429, &[("x-retry-after", "7")], None),
    ] {
        let verdict = answer(&answered(status, headers), &VendorError::default(), now());
        let read = failure(verdict).0.retry_after;
        let read = read.map(|r| (r.wait.as_secs(), r.clamped));
        assert_eq!(read, expected, "{status} {headers:?}");
    }
}

fn row(meaning: Meaning) -> VendorError {
    VendorError {
        code: Some("CODE".into()),
        field: Some("owner".into()),
        row: Some(Row {
            meaning,
            hint: "Ask Ayşe.".into(),
            scope: Scope::Target,
        }),
    }
}

/// ERR-6: the vendor's own code overrules the status, and brings its own hint.
#[test]
fn the_vendors_row_overrules_the_status() {
    let of = |class| Meaning::Failure(class, None);
    let said = |class, effect| Meaning::Failure(class, Some(effect));
    for (status, meaning, class, effect) in [
        // A 400 that says "no such property", a 403 that says "request limit exceeded".
        (400, of(PermanentConfig), PermanentConfig, NotApplied),
        (403, of(Transient), Transient, NotApplied),
        // A server error the vendor explains is a refusal; one it calls passing leaves the effect open.
        (500, of(PermanentData), PermanentData, NotApplied),
        (500, of(PermanentConfig), PermanentConfig, NotApplied),
        (500, of(Transient), Transient, MaybeApplied),
        (503, of(Transient), Transient, MaybeApplied),
        // Failure inside a success.
        (200, of(PermanentData), PermanentData, NotApplied),
        (200, of(Transient), Transient, MaybeApplied),
        (400, of(Unknown), Unknown, NotApplied),
        // What the row says of the effect goes before all of that.
        (503, said(Transient, NotApplied), Transient, NotApplied),
        (400, said(Transient, MaybeApplied), Transient, MaybeApplied),
        (500, said(PermanentData, Applied), PermanentData, Applied),
        // No fifth class: "it exists already" is a link, and permanent_data if nothing is found.
        (400, Meaning::Link, PermanentData, NotApplied),
        (409, Meaning::Link, PermanentData, NotApplied),
        (409, of(PermanentConfig), PermanentConfig, NotApplied),
    ] {
        let verdict = answer(&answered(status, &[]), &row(meaning), now());
        let (failure, is_link) = failure(verdict);
        let name = format!("{status} {meaning:?}");
        assert_eq!((failure.class, failure.effect), (class, effect), "{name}");
        assert_eq!(is_link, meaning == Meaning::Link, "{name}");
        assert_eq!(failure.hint, "Ask Ayşe.", "{name}");
        assert_eq!(failure.scope, Scope::Target, "{name}");
        assert_eq!(failure.vendor_code.as_deref(), Some("CODE"), "{name}");
        assert_eq!(failure.field.as_deref(), Some("owner"), "{name}");
    }
}

/// A code without a row is kept for the cause and the reader; the status decides.
#[test]
fn a_code_without_a_row_is_kept() {
    let vendor = VendorError {
        code: Some("NEW_ONE".into()),
        ..VendorError::default()
    };
    let (failure, _) = failure(answer(&answered(422, &[]), &vendor, now()));
    assert_eq!(failure.class, PermanentData);
    assert_eq!(failure.vendor_code.as_deref(), Some("NEW_ONE"));
}

/// ERR-3: what was never sent did nothing; a certificate or an address that is refused is for a person.
#[test]
fn what_was_never_sent_was_not_applied() {
    for (why, class, scope) in [
        (NotSent::Dns, Transient, Scope::Lead),
        (NotSent::Connect, Transient, Scope::Lead),
        (NotSent::Tls, Transient, Scope::Lead),
        (NotSent::StaleConnection, Transient, Scope::Lead),
        (NotSent::Certificate, PermanentConfig, Scope::Target),
        (NotSent::AddressRefused, PermanentConfig, Scope::Target),
        (NotSent::InvalidCall, PermanentConfig, Scope::Lead),
    ] {
        let failure = not_sent(why);
        assert_eq!((failure.class, failure.scope), (class, scope), "{why:?}");
        assert_eq!(failure.effect, NotApplied, "{why:?}");
        assert_eq!(failure.status, None, "{why:?}");
        assert_readable(&failure);
    }
}

/// ERR-3: sent and then broken is unknown, and maybe applied.
#[test]
fn what_broke_after_sending_is_unknown() {
    for why in [
        Broken::Closed,
        Broken::TimedOut,
        Broken::Garbage,
        Broken::Interrupted,
    ] {
        let failure = broken(why);
        assert_eq!(
            (failure.class, failure.effect),
            (Unknown, MaybeApplied),
            "{why:?}"
        );
        assert_readable(&failure);
    }
}

/// Both texts are sentences; a hint always says what to do.
fn assert_readable(failure: &Failure) {
    for text in [&failure.message, &failure.hint] {
        assert!(text.len() > 20 && text.ends_with('.'), "{text:?}");
        assert!(!text.contains("  "), "{text:?}");
        assert!(text.starts_with(char::is_uppercase), "{text:?}");
    }
}

proptest! {
    /// ERR-1, ERR-5: every answer has exactly one meaning; what cannot have been applied is never called maybe, and back.
    #[test]
    fn every_answer_has_a_meaning(status: u16, value in prop::option::of(".{0,12}"), reused: bool) {
        let headers: Vec<_> = value.iter().map(|v| ("retry-after", v.as_str())).collect();
        let mut given = answered(status, &headers);
        given.reused_connection = reused;
        let (failure, is_link) = failure(answer(&given, &VendorError::default(), now()));
        assert_readable(&failure);
        prop_assert_eq!(is_link, status == 409);
        prop_assert_ne!(failure.effect, Applied);
        if (400..500).contains(&status) && status != 408 {
            prop_assert_eq!(failure.effect, NotApplied);
        }
        if (200..300).contains(&status) {
            prop_assert_eq!(failure.effect, MaybeApplied);
        }
    }

    /// Invariant 7: nothing of the answer's text or headers reaches what is stored and shown.
    #[test]
    fn nothing_of_the_answer_leaks(status: u16) {
        let mut given = answered(status, &[("x-note", "ayse@example.com"), ("location", "ayse@example.com")]);
        given.body = b"ayse@example.com".to_vec();
        let (failure, _) = failure(answer(&given, &VendorError::default(), now()));
        let shown = format!("{failure:?}");
        prop_assert!(!shown.contains("ayse"), "{}", shown);
    }
}

/// The words stored and shown are the ones serde writes, for ever.
#[test]
fn words_match_their_serialised_form() {
    for class in [Transient, PermanentData, PermanentConfig, Unknown] {
        assert_eq!(serde_json::json!(class), class.as_str());
    }
    for effect in [NotApplied, MaybeApplied, Applied] {
        assert_eq!(serde_json::json!(effect), effect.as_str());
    }
}
