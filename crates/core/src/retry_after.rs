//! Reading `Retry-After` (ERR-4): whole seconds or one of HTTP's three date forms (RFC 9110, 10.2.3 and 5.6.7).
//!
//! What cannot be read is absent, so that the usual backoff applies (H21); it must never become a zero or a NaN that lets a
//! tight loop through. There are no floating-point numbers here for that reason.

use jiff::Span;
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest wait that is believed; a longer one is clamped and flagged (ERR-4).
pub const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the other side asks to be left alone, already clamped to 0 … 24 h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryAfter {
    /// How long to wait, counted from the answer.
    #[serde(rename = "wait_seconds", with = "seconds")]
    pub wait: Duration,
    /// The value was absurd (negative, or over 24 h) and was clamped; a person should hear of it.
    pub clamped: bool,
}

impl RetryAfter {
    /// A wait of so many seconds, clamped; for vendors that say it in the body or in a header of their own.
    pub fn from_seconds(seconds: i64) -> Self {
        match u64::try_from(seconds) {
            Ok(seconds) => Self::clamp(Duration::from_secs(seconds)),
            Err(_) => Self {
                wait: Duration::ZERO,
                clamped: true,
            },
        }
    }

    fn clamp(wait: Duration) -> Self {
        Self {
            wait: wait.min(WAIT_MAX),
            clamped: wait > WAIT_MAX,
        }
    }
}

mod seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(wait: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(wait.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        u64::deserialize(d).map(Duration::from_secs)
    }
}

/// Reads the header's value: seconds, or any of the three HTTP date forms. `None` for what cannot be read (H21).
pub fn parse(value: &str, now: jiff::Timestamp) -> Option<RetryAfter> {
    let value = value.trim_matches([' ', '\t']);
    if let Some(digits) = value.strip_prefix('-') {
        return is_number(digits).then(|| RetryAfter::from_seconds(-1));
    }
    if is_number(value) {
        // More digits than fit are a number all the same, and an absurd one.
        return Some(RetryAfter::from_seconds(value.parse().unwrap_or(i64::MAX)));
    }
    let now = Offset::UTC.to_datetime(now);
    let then = date(value, now)?;
    // A past date is no wait; it is not absurd, clocks differ. Rounded up: never earlier than the other side said.
    let wait = then.duration_since(now);
    let seconds = wait.as_secs() + i64::from(wait.subsec_nanos() > 0);
    Some(RetryAfter::from_seconds(seconds.max(0)))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// An HTTP date, in UTC as all three forms are. A name of the day that does not fit the date is overlooked; another zone is not.
fn date(value: &str, now: DateTime) -> Option<DateTime> {
    const IMF_FIXDATE: &str = "%a, %d %b %Y %H:%M:%S GMT";
    const RFC_850: &str = "%A, %d-%b-%y %H:%M:%S GMT";
    const ASCTIME: &str = "%a %b %e %H:%M:%S %Y";

    let read = |format| {
        let mut parts = BrokenDownTime::parse(format, value).ok()?;
        parts.set_weekday(None);
        Some(parts)
    };
    if let Some(parts) = read(IMF_FIXDATE).or_else(|| read(ASCTIME)) {
        return parts.to_datetime().ok();
    }
    let mut parts = read(RFC_850)?;
    let in_year = |parts: &mut BrokenDownTime, year: i16| {
        parts.set_year(Some(year)).ok()?;
        parts.to_datetime().ok()
    };
    // RFC 9110, 5.6.7: of the years with these two digits, the latest that is not over 50 years ahead.
    let latest = now.checked_add(Span::new().years(50)).ok()?;
    let year = latest.year() - (latest.year() - parts.year()?).rem_euclid(100);
    match in_year(&mut parts, year) {
        Some(then) if then > latest => in_year(&mut parts, year - 100),
        then => then,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use proptest::prelude::*;

    const NOW: &str = "2026-10-21T07:00:00Z";

    fn check(cases: &[(&str, Option<(u64, bool)>)]) {
        check_at(NOW, cases);
    }

    fn check_at(now: &str, cases: &[(&str, Option<(u64, bool)>)]) {
        for (value, expected) in cases {
            let read = parse(value, now.parse().unwrap());
            let read = read.map(|r| (r.wait.as_secs(), r.clamped));
            assert_eq!(read, *expected, "{value:?} at {now}");
        }
    }

    /// ERR-4: seconds, and absurd ones clamped and flagged; F39.
    #[test]
    fn seconds_are_read_and_clamped() {
        check(&[
            ("0", Some((0, false))),
            ("120", Some((120, false))),
            (" 120\t", Some((120, false))),
            ("007", Some((7, false))),
            ("86400", Some((86_400, false))),
            ("86401", Some((86_400, true))),
            ("1000000000", Some((86_400, true))),
            ("99999999999999999999999999", Some((86_400, true))),
            ("-1", Some((0, true))),
            ("-99999999999999999999999999", Some((0, true))),
        ]);
    }

    /// ERR-4: all three date forms of RFC 9110; a past one is no wait.
    #[test]
    fn dates_are_read() {
        check(&[
            ("Wed, 21 Oct 2026 07:02:00 GMT", Some((120, false))),
            ("Wednesday, 21-Oct-26 07:02:00 GMT", Some((120, false))),
            ("Wed Oct 21 07:02:00 2026", Some((120, false))),
            ("Wed, 21 Oct 2026 07:00:00 GMT", Some((0, false))),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some((0, false))),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some((0, false))),
            ("Sun Nov  6 08:49:37 1994", Some((0, false))),
            ("Thu, 22 Oct 2026 07:00:00 GMT", Some((86_400, false))),
            ("Thu, 22 Oct 2026 07:00:01 GMT", Some((86_400, true))),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some((86_400, true))),
            // The name of the day is wrong; the date is not.
            ("Mon, 21 Oct 2026 07:02:00 GMT", Some((120, false))),
        ]);
        // A leap second, and a fraction of ours: never earlier than said.
        check_at(
            "2026-12-31T23:59:57.250Z",
            &[("Thu, 31 Dec 2026 23:59:60 GMT", Some((2, false)))],
        );
    }

    /// RFC 9110, 5.6.7: two-digit years stand for the latest year that is at most 50 years ahead.
    #[test]
    fn two_digit_years_follow_the_50_year_rule() {
        check(&[
            ("Friday, 01-Jan-27 00:00:00 GMT", Some((86_400, true))),
            ("Thursday, 31-Dec-99 00:00:00 GMT", Some((0, false))),
            ("Wednesday, 21-Oct-76 07:00:00 GMT", Some((86_400, true))),
            ("Wednesday, 21-Oct-76 07:00:01 GMT", Some((0, false))),
        ]);
        check_at(
            "2099-12-31T23:59:00Z",
            &[("Friday, 01-Jan-00 00:00:00 GMT", Some((60, false)))],
        );
    }

    /// H21: what cannot be read is absent; the usual backoff applies.
    #[test]
    fn what_cannot_be_read_is_absent() {
        check(&[
            ("", None),
            (" ", None),
            ("-", None),
            ("--1", None),
            ("+5", None),
            ("1.5", None),
            ("1e9", None),
            ("0x10", None),
            ("NaN", None),
            ("inf", None),
            ("soon", None),
            ("120, 130", None),
            ("120s", None),
            ("١٢٠", None),
            ("Wed, 99 Foo 2026", None),
            ("Wed, 99 Oct 2026 07:02:00 GMT", None),
            ("Wed, 29 Feb 2027 07:02:00 GMT", None),
            ("Wed, 21 Oct 2026 24:00:00 GMT", None),
            ("Wed, 21 Oct 2026 10:02:00 +0300", None),
            ("Wed, 21 Oct 2026 10:02:00 EEST", None),
            ("Wed, 21 Oct 2026 07:02:00", None),
            ("2026-10-21T07:02:00Z", None),
            ("Çar, 21 Eki 2026 07:02:00 GMT", None),
        ]);
    }

    proptest! {
        /// F39: whatever stands there, the wait is within the clamp; and nothing panics.
        #[test]
        fn the_wait_is_always_within_the_clamp(value in ".{0,40}", now in any_time()) {
            if let Some(read) = parse(&value, now) {
                prop_assert!(read.wait <= WAIT_MAX);
            }
        }

        /// ERR-4: each date form says the same as the seconds would.
        #[test]
        fn dates_say_the_same_as_seconds(wait in 0_i64..90_000, form in 0_usize..3, now in any_time()) {
            let format = [
                "%a, %d %b %Y %H:%M:%S GMT",
                "%A, %d-%b-%y %H:%M:%S GMT",
                "%a %b %e %H:%M:%S %Y",
            ][form];
            let then = Offset::UTC.to_datetime(now + jiff::SignedDuration::from_secs(wait));
            let text = then.strftime(format).to_string();
            prop_assert_eq!(parse(&text, now), Some(RetryAfter::from_seconds(wait)), "{}", text);
        }

        /// Garbage that looks like a date does not panic either, at either end of time.
        #[test]
        fn near_dates_do_not_panic(
            value in "[A-Z][a-z]{2,8},? [0-9]{1,2}[ -](Jan|Feb|Dec)[ -][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
            now in prop_oneof![Just(Timestamp::MIN), Just(Timestamp::MAX), any_time()],
        ) {
            let _ = parse(&value, now);
        }
    }

    fn any_time() -> impl Strategy<Value = Timestamp> {
        // 1971 … 2121, to the second.
        (31_536_000_i64..4_765_132_800).prop_map(|s| Timestamp::from_second(s).unwrap())
    }
}
