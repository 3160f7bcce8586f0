//! What people read.

use crate::cli::{client, looking, story};
use serde_json::json;

#[test]
fn a_story_reads_from_top_to_bottom() {
    let told = story::text(&json!({
        "id": "evt_1", "workspace": "default", "source": "web", "source_ref": "77", "state": "dead", "processing": false,
        "received_at": "2026-11-30T12:00:00.123Z", "created_at": null, "deliveries": 2, "revision": 1,
        "request": {"receipt": "rcp_1", "method": "POST", "headers": [["content-type", "application/json"]], "body_bytes": 42},
        "lead": {
            "full_name": "Ayşe Yılmaz", "phone": {"raw": "0555 000 11 22", "e164": "+905550001122"}, "is_test": false,
            "answers": [{"name": "bütçe", "values": ["1", "2"]}],
            "problems": [{"field": "email", "code": "missing"}],
        },
        "steps": [{
            "name": "crm", "state": "dead", "object": "lead", "target": {"name": "acme"},
            "tries": [{
                "number": 1, "started_at": "2026-11-30T12:00:01Z", "ended_at": "2026-11-30T12:00:02Z", "counts": true,
                "failure": {"class": "permanent_data", "effect": "not_applied", "message": "Refused.", "hint": "Correct it."},
                "calls": [{"name": "create", "request": "POST https://crm.example/leads", "outcome": "422", "millis": 35}],
                "answer": "{\"error\":\"phone\"}",
            }],
        }],
        "dead_letters": [], "links": [],
    }));
    let expected = r#"evt_1  dead
  workspace  default
  source     web 77
  received   2026-11-30 12:00:00Z
  delivered  2 times; kept once
  request    POST with 42 bytes, receipt rcp_1
             content-type: application/json
  revision   1

lead
  name       Ayşe Yılmaz
  phone      +905550001122
  bütçe: 1, 2
  note       email: missing

step crm  dead  (lead to acme)
  #1 2026-11-30 12:00:01Z  permanent_data, not_applied
       create  POST https://crm.example/leads  → 422 in 35 ms
       what: Refused.
       to do: Correct it.
       answer: {"error":"phone"}
"#;
    assert_eq!(told, expected);
}

/// A lead's text cannot forge lines or move the cursor.
#[test]
fn control_characters_of_others_are_not_written() {
    let told = story::text(&json!({
        "id": "evt_1", "source": "web\u{1b}[2J", "lead": {"full_name": "a\nstep crm done"},
    }));
    assert!(
        !told.contains('\u{1b}') && !told.contains("\nstep crm"),
        "{told}"
    );
}

/// What a person needs to settle a dead letter by hand.
#[test]
fn a_dead_letter_shows_answer_object_and_how_to_see_the_body() {
    let mut letter = json!({
        "id": "ded_1", "event": "evt_1", "source": "web", "source_ref": "77", "step": "crm", "target": {"name": "acme"},
        "failure": {"class": "unknown", "effect": "maybe_applied", "status": 502, "message": "Broken.", "hint": "Look there."},
        "answer": "<h1>Bad gateway</h1>", "object_id": "L-7",
    });
    let told = looking::dead_letter_text(&letter);
    for line in ["  said      <h1>Bad gateway</h1>\n", "  object    L-7\n"] {
        assert!(told.contains(line), "{told}");
    }
    assert!(!told.contains("--raw"), "{told}");
    letter["step"] = json!(null);
    let told = looking::dead_letter_text(&letter);
    assert!(told.contains("`emanet events show evt_1 --raw`"), "{told}");
}

#[test]
fn a_held_step_says_for_what_it_waits() {
    let told = story::text(&json!({
        "steps": [{"name": "crm", "target": {"name": "acme"}, "held_under": "c1", "held_because": "The token has expired."}],
    }));
    assert!(
        told.contains(
            "  held until acme works again (cause c1)\n       what: The token has expired.\n"
        ),
        "{told}"
    );
}

#[test]
fn an_attempt_without_an_end_says_so() {
    let told = story::text(&json!({
        "steps": [{"name": "crm", "tries": [{"number": 1, "started_at": "2026-11-30T12:00:01Z", "ended_at": null}]}],
    }));
    assert!(
        told.contains("under way, or its process died in it"),
        "{told}"
    );
}

#[test]
fn status_leaves_out_classes_without_dead_letters() {
    let told = looking::status_text(&json!({
        "received": 3, "pending": 1, "processing": 0, "held": 0, "done": 1, "dead": 1, "ignored": 0, "erased": 0,
        "oldest_pending_seconds": 9, "open_dead_letters": 1,
        "by_class": {"transient": 0, "permanent_data": 1}, "closes": true,
    }));
    assert!(told.contains("permanent_data    1"), "{told}");
    assert!(!told.contains("transient"), "{told}");
}

#[test]
fn an_error_of_the_server_is_said_with_its_details() {
    let envelope = json!({"error": {
        "code": "CORE-REQ-0002", "message": "Some values are not valid.", "hint": "See the details.", "trace_id": "4bf9",
        "details": [{"field": "sources.web.kind", "message": "emanet.toml:2: no such kind"}],
    }});
    let check = |status: u16, body: &[u8], expected: &str| {
        let failed = client::read_answer(status.try_into().unwrap(), body).unwrap_err();
        assert_eq!(failed.message, expected);
    };
    check(
        422,
        envelope.to_string().as_bytes(),
        "Some values are not valid. (CORE-REQ-0002)\n  sources.web.kind: emanet.toml:2: no such kind",
    );
    check(502, b"<html>", "the server answered 502 Bad Gateway");
}

#[test]
fn parts_of_a_path_are_escaped() {
    assert_eq!(looking::path_part("evt_0a"), "evt_0a");
    assert_eq!(looking::path_part("../a b/ğ?"), "..%2Fa%20b%2F%C4%9F%3F");
}
