use super::*;
use crate::connector::Destination;
use crate::contract::{self, Given, Ran, json, run};
use emanet_core::call::Call;
use emanet_core::call::{Answer, HeaderValue};
use emanet_core::classify::{Class, Effect};
use serde_json::{Value, json as value};
use std::collections::BTreeMap;

fn sandbox(values: Value) -> Box<dyn Destination> {
    (KIND.build)(&contract::settings(KIND.fields, values)).expect("right settings")
}

fn lead() -> Given {
    Given::lead(&[("full_name", "Ayşe Yılmaz"), ("phone", "+905321234567")])
}

fn task() -> Given {
    Given {
        object: "task",
        external_id: "src_1:L-1:task".into(),
        links: BTreeMap::from([("lead".into(), "7".into())]),
        ..Given::lead(&[("title", "Call")])
    }
}

/// Answers of the sandbox: none found, then created.
fn empty(call: &Call) -> Answer {
    match call.name.as_str() {
        "look_up" => json(200, &value!({"leads": [], "tasks": []})),
        _ => json(201, &value!({"id": "7"})),
    }
}

/// It holds the lead already.
fn holding(call: &Call) -> Answer {
    match call.name.as_str() {
        "look_up" | "confirm" => json(
            200,
            &value!({"leads": [{"id": "7", "external_id": "src_1:L-1"}]}),
        ),
        _ => json(200, &value!({"id": "7"})),
    }
}

fn body(ran: &Ran, name: &str) -> Value {
    let call = ran
        .calls
        .iter()
        .find(|c| c.name == name)
        .expect("the call was made");
    serde_json::from_slice(&call.body).expect("JSON")
}

#[test]
fn it_keeps_the_contract() {
    let incomplete = Given {
        missing: vec!["phone".into()],
        ..lead()
    };
    let doubtful = Given {
        maybe_applied: true,
        ..lead()
    };
    for values in [
        value!({}),
        value!({"look_up": false}),
        value!({"look_up": false, "native_key": false}),
    ] {
        contract::destination_keeps_the_contract(
            &KIND,
            &values,
            &[lead(), task(), incomplete.clone(), doubtful.clone()],
        );
    }
}

/// ID-2: looked up first, then created, under key and external id.
#[test]
fn a_new_lead_is_looked_up_and_created() {
    let ran = run(
        &*sandbox(value!({"destination_id": "dst_1"})),
        &lead(),
        empty,
    );
    assert_eq!(ran.names(), ["look_up", "create"]);
    assert_eq!(ran.delivered(), ("created", "7"));
    assert_eq!(
        ran.calls[0].url,
        "sandbox://crm/leads?external_id=src_1%3AL-1"
    );
    assert_eq!(ran.calls[1].url, "sandbox://crm/leads");
    let plain = |text: &str| HeaderValue::Plain(text.into());
    for header in [
        ("x-emanet-sandbox", plain("dst_1")),
        ("idempotency-key", plain("src_1:L-1:crm")),
    ] {
        assert!(
            ran.calls[1].headers.contains(&(header.0.into(), header.1)),
            "{}",
            header.0
        );
    }
    assert_eq!(
        body(&ran, "create"),
        value!({"external_id": "src_1:L-1", "full_name": "Ayşe Yılmaz", "phone": "+905321234567"})
    );
}

/// ID-2, and the salesperson's changes after a doubtful attempt.
#[test]
fn a_lead_that_is_there_is_updated_or_after_a_doubt_linked() {
    let ran = run(&*sandbox(value!({})), &lead(), holding);
    assert_eq!(
        (ran.names(), ran.delivered()),
        (vec!["look_up", "update"], ("updated", "7"))
    );
    assert_eq!(ran.calls[1].url, "sandbox://crm/leads/7");
    let doubtful = Given {
        maybe_applied: true,
        ..lead()
    };
    let ran = run(&*sandbox(value!({})), &doubtful, holding);
    assert_eq!(
        (ran.names(), ran.delivered()),
        (vec!["look_up"], ("linked", "7"))
    );
}

/// DL-4, and the task's link to its lead.
#[test]
fn what_is_missing_is_tagged_and_a_task_names_its_lead() {
    let incomplete = Given {
        missing: vec!["phone".into()],
        ..lead()
    };
    let ran = run(&*sandbox(value!({})), &incomplete, empty);
    assert_eq!(body(&ran, "create")["tags"], value!(["missing data"]));
    let ran = run(&*sandbox(value!({})), &task(), empty);
    assert_eq!(ran.calls[1].url, "sandbox://crm/tasks");
    assert_eq!(
        body(&ran, "create"),
        value!({"external_id": "src_1:L-1:task", "lead_id": "7", "title": "Call"})
    );
}

/// ID-4: what is played is declared; without any means a doubtful step must stop.
#[test]
fn its_means_against_doubles_can_be_taken_away() {
    let repeat = |values| {
        let repeat = sandbox(values).repeat("lead");
        (repeat.look_up, repeat.native_key, repeat.is_safe())
    };
    assert_eq!(
        repeat(value!({"faults": {"slow": 0.5}})),
        (true, true, true)
    );
    assert_eq!(repeat(value!({"look_up": false})), (false, true, true));
    assert_eq!(
        repeat(value!({"look_up": false, "native_key": false})),
        (false, false, false)
    );
    let bare = sandbox(value!({"look_up": false, "native_key": false}));
    let ran = run(&*bare, &lead(), empty);
    assert_eq!(ran.names(), ["create"]);
    assert!(
        ran.calls[0]
            .headers
            .iter()
            .all(|(name, _)| name != "idempotency-key")
    );
}

/// ERR-6: the code goes before the status.
#[test]
fn its_codes_have_class_and_effect() {
    contract::answers_mean_what_is_recorded(include_str!("fixtures/errors.json"), |answer| {
        let ran = run(&*sandbox(value!({})), &lead(), |call| {
            if call.name == "create" {
                answer.clone()
            } else {
                empty(call)
            }
        });
        ran.failure().clone()
    });
}

/// The same answer to a look-up changed nothing.
#[test]
fn a_failed_look_up_changed_nothing() {
    let ran = run(&*sandbox(value!({})), &lead(), |_| {
        contract::answer(500, "", b"")
    });
    assert_eq!(
        (ran.failure().class, ran.failure().effect),
        (Class::Transient, Effect::NotApplied)
    );
}

/// F38, H64: twenty answers that say success and prove nothing: looked for in the same run, never created again.
#[test]
fn a_success_without_proof_is_looked_up() {
    let bodies: [&[u8]; 20] = [
        b"",
        b" ",
        b"{",
        b"{}",
        b"[]",
        b"null",
        b"true",
        b"7",
        b"\"7\"",
        b"{\"id\":\"\"}",
        b"{\"id\":\" \"}",
        b"{\"id\":null}",
        b"{\"id\":[]}",
        b"{\"id\":{}}",
        b"{\"ID\":\"7\"}",
        b"{\"id\":\"4",
        b"<html>ok</html>",
        b"\x1f\x8b\x08\x00\x00",
        b"\xff\xfe{\0}\0",
        b"{\"id\":\"7\"}\0",
    ];
    for body in bodies {
        let unproven = contract::answer(200, "application/json", body);
        let after = |confirm: fn(&Call) -> Answer| {
            run(&*sandbox(value!({})), &lead(), |call| {
                match call.name.as_str() {
                    "create" => unproven.clone(),
                    "confirm" => confirm(call),
                    _ => empty(call),
                }
            })
        };
        let there = after(holding);
        assert_eq!(there.names(), ["look_up", "create", "confirm"], "{body:?}");
        assert_eq!(there.delivered(), ("created", "7"));
        let gone = after(|_| json(200, &value!({"leads": []})));
        assert_eq!(gone.names(), ["look_up", "create", "confirm"], "{body:?}");
        assert_eq!(gone.failure().class, Class::Unknown);
        let bare = sandbox(value!({"look_up": false, "native_key": false}));
        let ran = run(&*bare, &lead(), |_| unproven.clone());
        assert_eq!(
            (ran.failure().class, ran.failure().effect),
            (Class::Unknown, Effect::MaybeApplied)
        );
    }
}
