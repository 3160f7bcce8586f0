//! What the Graph API's codes mean (reference, 1.7 and the error catalogue). Code first, then subcode; the status only where no
//! row fits.

use emanet_core::classify::{Class, Effect, Meaning, Row, Scope};
use std::ops::RangeInclusive;

/// A row: codes, subcode (any, if none), part of the message (any, if empty), class, hint.
struct Code(
    RangeInclusive<i64>,
    Option<i64>,
    &'static str,
    Class,
    &'static str,
);

use Class::{PermanentConfig, Transient};

const THROTTLED: &str =
    "Meta limits how often leads may be read. Emanet waits as long as Meta asks.";
const DOWN: &str = "Meta's service fails for the moment. Nothing to do unless it does not pass.";
const PERMISSION: &str = "Give the app the permissions leads_retrieval, pages_manage_ads and pages_read_engagement, and the app or CRM access in the \
     business's Leads Access Manager; then replay.";
const TOKEN: &str = "Make a new long-lived page token, enter it as page_token, then replay.";

const CODES: [Code; 24] = [
    Code(0..=0, None, "", PermanentConfig, TOKEN),
    Code(1..=2, None, "", Transient, DOWN),
    Code(3..=3, None, "", PermanentConfig, PERMISSION),
    Code(4..=4, None, "", Transient, THROTTLED),
    Code(10..=10, None, "", PermanentConfig, PERMISSION),
    Code(17..=17, None, "", Transient, THROTTLED),
    Code(32..=32, None, "", Transient, THROTTLED),
    Code(
        100..=100,
        None,
        "nonexisting field",
        PermanentConfig,
        "This version of the Graph API does not know a field that is asked for. Set graph_version to one that Emanet was tried with, then replay.",
    ),
    Code(102..=102, None, "", PermanentConfig, TOKEN),
    Code(
        104..=104,
        None,
        "",
        PermanentConfig,
        "Meta says that the call had no token. Enter page_token, then replay.",
    ),
    Code(
        190..=190,
        Some(458),
        "",
        PermanentConfig,
        "The person whose token this is has removed the app. Have the app authorised again, enter the new page_token, then replay.",
    ),
    Code(
        190..=190,
        Some(459),
        "",
        PermanentConfig,
        "Facebook asks the person whose token this is to log in and confirm the account. After that, or with a new page_token, replay.",
    ),
    Code(
        190..=190,
        Some(460),
        "",
        PermanentConfig,
        "The person whose token this is has changed the password. Make a new long-lived page token, enter it as page_token, then replay.",
    ),
    Code(
        190..=190,
        Some(463),
        "",
        PermanentConfig,
        "The page token has expired. Make a new long-lived one (those derived from a long-lived user token do not expire), enter it as page_token, then replay.",
    ),
    Code(
        190..=190,
        Some(464),
        "",
        PermanentConfig,
        "The account of the person whose token this is, is not confirmed. Confirm it on Facebook, or enter another page_token; then replay.",
    ),
    Code(
        190..=190,
        Some(492),
        "",
        PermanentConfig,
        "The person whose token this is has lost the role on the page. Restore the role, or enter a token of somebody who has it; then replay.",
    ),
    Code(190..=190, None, "", PermanentConfig, TOKEN),
    Code(200..=299, None, "", PermanentConfig, PERMISSION),
    Code(341..=341, None, "", Transient, THROTTLED),
    Code(
        368..=368,
        None,
        "",
        PermanentConfig,
        "Meta has blocked the app or account for a breach of its policies. See the account's quality page at Meta; once the block is lifted, replay.",
    ),
    Code(613..=613, None, "", Transient, THROTTLED),
    Code(
        803..=803,
        None,
        "",
        PermanentConfig,
        "Meta does not know the id asked for. Please report this: the address is formed wrongly.",
    ),
    Code(
        2635..=2635,
        None,
        "",
        PermanentConfig,
        "This version of the Graph API has been switched off. Raise graph_version, then replay.",
    ),
    Code(80_001..=80_014, None, "", Transient, THROTTLED),
];

/// What a code means. Reading changes nothing, so that no effect is in doubt.
pub(super) fn row(code: i64, subcode: Option<i64>, message: &str) -> Option<Row> {
    let fits = |row: &&Code| {
        row.0.contains(&code)
            && (row.1.is_none() || row.1 == subcode)
            && message.to_lowercase().contains(row.2)
    };
    CODES
        .iter()
        .find(fits)
        .map(|row| reading(row.3, Scope::Target, row.4))
}

/// Meta says itself that it will pass.
pub(super) fn passing() -> Row {
    reading(Transient, Scope::Lead, DOWN)
}

/// "No such object, or no permission to see it": Meta does not say which (reference, 1.7).
pub(super) fn is_ambiguous(code: i64) -> bool {
    matches!(code, 33 | 100)
}

/// It cannot be told which, for the notification names no form to try.
pub(super) fn unclear() -> Row {
    reading(
        Class::Unknown,
        Scope::Lead,
        "Meta does not know the lead, or the token may not see it. Look for it in the form's export; check page_token, then replay.",
    )
}

/// The form can be read, the lead cannot: it is gone.
pub(super) fn gone() -> Row {
    reading(
        Class::PermanentData,
        Scope::Lead,
        "Meta keeps leads for 90 days, and this one can be read no longer, or was deleted. If it is in an export of the form, enter it by hand.",
    )
}

/// Neither can be read.
pub(super) fn not_visible() -> Row {
    reading(
        PermanentConfig,
        Scope::Lead,
        "The token can read neither the lead nor its form. Give the token's owner access to the page's leads (Leads Access Manager, leads_retrieval), then replay.",
    )
}

fn reading(class: Class, scope: Scope, hint: &str) -> Row {
    Row {
        meaning: Meaning::Failure(class, Some(Effect::NotApplied)),
        hint: hint.into(),
        scope,
    }
}
