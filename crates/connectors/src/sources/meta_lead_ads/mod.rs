//! Meta Lead Ads: instant forms on Facebook and Instagram.
//!
//! Meta posts ids, many at a time and signed; what the person entered is fetched from the Graph API in a step of its own
//! (reference, 1). The signature is made over the bytes as they travel, escapes included (H26): nothing is parsed before it is
//! checked, and nothing but those bytes is ever checked.

mod config;
mod errors;
mod fetch;
mod wire;

use crate::connector::{FetchInput, Next, Received, Reply, Sample, Source, SourceKind, Unreadable};
use crate::signature;
use config::Config;
use emanet_core::call::Exchange;
use emanet_core::classify::Failure;
use emanet_core::event::{Fate, Inbound, Item};
use emanet_core::lead::RawLead;
use jiff::Timestamp;
use serde_json::{Value, json};
use wire::{Change, LeadNotice};

/// The kind `meta_lead_ads`.
pub(super) const KIND: SourceKind = SourceKind {
    kind: "meta_lead_ads",
    title: "Meta Lead Ads",
    module: "ADS",
    fields: config::FIELDS,
    docs: include_str!("docs.md"),
    build: |settings| Ok(Box::new(MetaLeadAds(Config::read(settings)?))),
};

/// The lead id that the dashboard's "Test" button makes up; it can never be fetched (reference, 1.8).
const TEST_BUTTON_ID: &str = "444444444444";
/// The longest challenge echoed.
const CHALLENGE_BYTES_MAX: usize = 256;

#[derive(Debug)]
struct MetaLeadAds(Config);

impl Source for MetaLeadAds {
    fn receive(&self, request: &Inbound, _now: Timestamp) -> Received {
        if request.method == "GET" {
            return self.handshake(&request.query);
        }
        if let Err(reason) = self.authenticate(request) {
            return Received::Refused {
                status: 401,
                reason,
            };
        }
        Received::Events {
            items: self.items(&request.body),
            reply: Reply::Text("ok".into()),
        }
    }

    fn read(
        &self,
        request: &Inbound,
        pointer: &str,
        fetched: Option<&Value>,
    ) -> Result<RawLead, Unreadable> {
        let notice = notice_at(&request.body, pointer).map_err(unreadable)?;
        let mut lead = wire::lead(fetched.ok_or_else(|| unreadable("not_fetched"))?);
        if lead.fields.is_empty() {
            return Err(unreadable("no_fields"));
        }
        lead.created_at = lead.created_at.or(notice.created_at);
        for (name, id) in [
            ("leadgen_id", Some(notice.leadgen_id)),
            ("page_id", notice.page_id),
            ("form_id", notice.form_id),
        ] {
            if let Some(id) = id {
                lead.attribution.entry(name.into()).or_insert(id);
            }
        }
        Ok(lead)
    }

    fn needs_fetch(&self) -> bool {
        true
    }

    fn fetch(&self, item: &FetchInput<'_>, run: &[Exchange], now: Timestamp) -> Next {
        match notice_at(&item.request.body, item.pointer) {
            Ok(notice) => fetch::next(&self.0, &notice, run, now),
            Err(reason) => Next::Fail(Failure::internal(format!(
                "the stored notification cannot be read: {reason}"
            ))),
        }
    }

    /// Meta's notification holds no more than ids; the sample's fields are what the Graph API has to answer with.
    fn compose(&self, sample: &Sample) -> Inbound {
        let page = self.0.page_ids.first().map_or("1029384756", String::as_str);
        let time = sample.created_at.as_second();
        let value = json!({
            "leadgen_id": sample.source_ref, "page_id": page, "form_id": "5544332211009988", "created_time": time,
        });
        let notification = json!({
            "object": "page",
            "entry": [{"id": page, "time": time, "changes": [{"field": "leadgen", "value": value}]}],
        });
        let body = wire::ascii(&notification).into_bytes();
        Inbound {
            method: "POST".into(),
            query: String::new(),
            headers: vec![
                ("content-type".into(), "application/json".into()),
                (
                    "x-hub-signature-256".into(),
                    signature::sign(&self.0.app_secret, &body),
                ),
            ],
            body,
        }
    }
}

impl MetaLeadAds {
    /// Meta asks once, when the subscription is saved; the answer is the bare challenge.
    fn handshake(&self, query: &str) -> Received {
        let refused = |reason| Received::Refused {
            status: 403,
            reason,
        };
        let parameters: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
        let single = |name: &str| {
            let mut values = parameters
                .iter()
                .filter(|(n, _)| n == name)
                .map(|(_, v)| v.as_ref());
            values.next().filter(|_| values.next().is_none())
        };
        if single("hub.mode") != Some("subscribe") {
            return refused("no_handshake");
        }
        if !single("hub.verify_token")
            .is_some_and(|token| signature::is_same(token, &self.0.verify_token))
        {
            return refused("wrong_verify_token");
        }
        match single("hub.challenge").filter(|challenge| is_challenge(challenge)) {
            Some(challenge) => Received::Handshake(Reply::Text(challenge.into())),
            None => refused("bad_challenge"),
        }
    }

    fn authenticate(&self, request: &Inbound) -> Result<(), &'static str> {
        let mut headers = request.headers_named("x-hub-signature-256").peekable();
        headers.peek().ok_or("no_signature")?;
        let secrets: Vec<_> = std::iter::once(&self.0.app_secret)
            .chain(&self.0.previous_app_secret)
            .collect();
        signature::is_signed(headers, &secrets, &request.body)
            .then_some(())
            .ok_or("bad_signature")
    }

    fn items(&self, body: &[u8]) -> Vec<Item> {
        let whole = |fate| {
            vec![item(
                signature::digest([b"body", body]),
                String::new(),
                fate,
            )]
        };
        let node = match wire::parse(body) {
            Ok(node) => node,
            Err(reason) => return whole(Fate::Unreadable(reason.into())),
        };
        let items: Vec<_> = wire::changes(&node)
            .iter()
            .map(|change| self.item(change))
            .collect();
        if items.is_empty() {
            return whole(Fate::Ignore("no_changes".into()));
        }
        items
    }

    fn item(&self, change: &Change<'_>) -> Item {
        let apart = |fate| {
            item(
                signature::digest([b"change", change.content().as_bytes()]),
                change.pointer.clone(),
                fate,
            )
        };
        if !change.is_lead() {
            return apart(Fate::Ignore("unrelated_change".into()));
        }
        let Some(notice) = change.lead() else {
            return apart(Fate::Unreadable("no_leadgen_id".into()));
        };
        if notice.leadgen_id == TEST_BUTTON_ID {
            return apart(Fate::Ignore("test_notification".into()));
        }
        let fate = if self.is_foreign(&notice) {
            // Whoever lists pages wants those and no others. The event is kept and counted; it is no work item for anybody here.
            Fate::Ignore("foreign_page".into())
        } else {
            Fate::Process
        };
        Item {
            created_at: notice.created_at,
            ..item(notice.leadgen_id, change.pointer.clone(), fate)
        }
    }

    fn is_foreign(&self, notice: &LeadNotice) -> bool {
        let is_listed = |page: &String| self.0.page_ids.contains(page);
        !self.0.page_ids.is_empty() && !notice.page_id.as_ref().is_some_and(is_listed)
    }
}

/// The lead's notification at a place of a stored body.
fn notice_at(body: &[u8], pointer: &str) -> Result<LeadNotice, &'static str> {
    let node = wire::parse(body)?;
    let changes = wire::changes(&node);
    let change = changes
        .iter()
        .find(|change| change.pointer == pointer)
        .ok_or("no_such_change")?;
    change.lead().ok_or("no_leadgen_id")
}

fn item(source_ref: String, pointer: String, fate: Fate) -> Item {
    Item {
        source_ref,
        pointer,
        created_at: None,
        fate,
    }
}

/// What can be echoed without harm, whoever asked.
fn is_challenge(challenge: &str) -> bool {
    (1..=CHALLENGE_BYTES_MAX).contains(&challenge.len())
        && challenge
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn unreadable(reason: &str) -> Unreadable {
    let hint = match reason {
        "not_fetched" => "The lead was not fetched from Meta. Replay it.",
        "no_fields" => "The lead has no answers. See the form at Meta.",
        "no_leadgen_id" => {
            "The notification names no lead, or two of them. See the stored body; the lead can be found at Meta by form and time."
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
