use super::*;
use crate::connector::Destination;
use crate::contract::{self, Given, NOW, Ran, SECRET, answer, json as data, run};
use emanet_core::call::{Answer, BodyState, HeaderValue, Method};
use emanet_core::call::{Call, Exchange};
use emanet_core::classify::{Class, Effect, Scope};
use emanet_core::field::Settings;
use emanet_core::secret::Secret;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::cell::RefCell;

fn http(values: Value) -> Box<dyn Destination> {
    (KIND.build)(&contract::settings(KIND.fields, values)).expect("right settings")
}

/// The guide's own example: BottleCRM.
fn bottle() -> Box<dyn Destination> {
    (KIND.build)(&contract::documented(
        KIND.docs,
        "destinations",
        KIND.fields,
    ))
    .expect("right settings")
}

fn lead() -> Given {
    Given::lead(&[
        ("first_name", "Ayşe"),
        ("email", "ayse@example.com"),
        ("description", "Arayın"),
    ])
}

/// A CRM with the habits of the real one (reference, real-crm): 200 for created, filters that match parts, e-mails unique, what is
/// converted hidden from lists, unknown fields dropped.
#[derive(Debug, Default)]
struct Bottle {
    leads: Vec<Value>,
    field_is_undefined: bool,
}

impl Bottle {
    fn with(leads: Vec<Value>) -> Self {
        Self {
            leads,
            ..Self::default()
        }
    }

    fn respond(&mut self, call: &Call) -> Answer {
        let url = url::Url::parse(&call.url).expect("a URL");
        assert!(
            url.path().ends_with('/'),
            "every path ends in a slash: {url}"
        );
        let id = url
            .path()
            .strip_prefix("/api/leads/")
            .expect("a path of leads")
            .trim_end_matches('/')
            .to_owned();
        let sent: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        match call.method {
            Method::Get if id.is_empty() => self.list(&url),
            Method::Get => data(
                200,
                &json!({"lead_obj": self.leads.iter().find(|l| l["id"] == id.as_str())}),
            ),
            Method::Post => self.create(sent),
            _ => {
                let lead = self
                    .leads
                    .iter_mut()
                    .find(|l| l["id"] == id.as_str())
                    .expect("it is there");
                for (key, value) in sent.as_object().expect("an object") {
                    lead[key] = value.clone();
                }
                data(
                    200,
                    &json!({"error": false, "message": "Lead updated Successfully"}),
                )
            }
        }
    }

    fn list(&self, url: &url::Url) -> Answer {
        let visible = |lead: &&Value| lead["status"] != "converted";
        let asked = |lead: &&Value| {
            url.query_pairs().all(|(key, value)| match key.as_ref() {
                "cf_relay_id" => lead["custom_fields"]["relay_id"] == value.as_ref(),
                "email" => lead["email"]
                    .as_str()
                    .unwrap_or_default()
                    .to_lowercase()
                    .contains(&value.to_lowercase()),
                _ => true,
            })
        };
        let found: Vec<_> = self.leads.iter().filter(visible).filter(asked).collect();
        data(
            200,
            &json!({"open_leads": {"open_leads": found}, "close_leads": {"close_leads": []}}),
        )
    }

    fn create(&mut self, mut sent: Value) -> Answer {
        let email = sent["email"].as_str().unwrap_or_default().to_lowercase();
        let uses_it =
            |lead: &Value| lead["email"].as_str().unwrap_or_default().to_lowercase() == email;
        if !email.is_empty() && self.leads.iter().any(uses_it) {
            let message = "Another lead in this organisation already uses that email address.";
            return data(400, &json!({"error": true, "errors": {"email": [message]}}));
        }
        if self.field_is_undefined {
            sent["custom_fields"] = json!({});
        }
        let id = format!("uuid-{}", self.leads.len() + 1);
        sent["id"] = json!(id);
        self.leads.push(sent);
        data(
            200,
            &json!({"error": false, "message": "Lead Created Successfully", "id": id}),
        )
    }
}

fn deliver(crm: &mut Bottle, given: &Given) -> Ran {
    run(&*bottle(), given, |call| crm.respond(call))
}

#[test]
fn it_keeps_the_contract() {
    let values = json!({
        "base_url": "https://crm.example.com", "errors": {"code": ["/error/code"], "rows": [
            {"status": 409, "class": "link", "by": "email", "hint": "There is one."}]},
        "objects": {"lead": {
            "external_id_field": "ext", "look_up": {"path": "/leads?ext={external_id}", "rows": ["/leads"], "match": "/external_id"},
            "by": {"email": {"path": "/leads?q={value}", "field": "email", "rows": ["/leads"], "match": "/email"}},
            "create": {"path": "/leads", "id": "/id"}, "update": {"path": "/leads/{id}"}}},
    });
    contract::destination_keeps_the_contract(
        &KIND,
        &values,
        &[
            lead(),
            Given {
                maybe_applied: true,
                ..lead()
            },
        ],
    );
}

#[test]
fn a_new_lead_is_looked_up_created_and_read_back() {
    let mut crm = Bottle::default();
    let ran = deliver(&mut crm, &lead());
    assert_eq!(ran.names(), ["look_up", "create", "read_back"]);
    assert_eq!(ran.delivered(), ("created", "uuid-1"));
    assert_eq!(
        ran.calls[0].url,
        "https://crm.example.com/api/leads/?cf_relay_id=src_1%3AL-1"
    );
    assert_eq!(
        crm.leads[0]["custom_fields"],
        json!({"relay_id": "src_1:L-1"})
    );
    let bearer = HeaderValue::Secret(Secret::new(format!("Bearer {SECRET}")));
    assert!(ran.calls.iter().all(|call| {
        call.headers
            .contains(&("authorization".into(), bearer.clone()))
    }));
}

/// Rule 1: a 500 is not "not created": the lead is looked for before it is created again.
#[test]
fn a_lead_that_a_500_created_is_linked() {
    let mut crm = Bottle::default();
    let ran = run(&*bottle(), &lead(), |call| {
        let answer = crm.respond(call);
        if call.name == "create" {
            contract::answer(500, "text/html", b"<h1>Server Error (500)</h1>")
        } else {
            answer
        }
    });
    assert_eq!(
        (ran.failure().class, ran.failure().effect),
        (Class::Transient, Effect::MaybeApplied)
    );
    let again = deliver(
        &mut crm,
        &Given {
            maybe_applied: true,
            ..lead()
        },
    );
    assert_eq!(
        (again.names(), again.delivered()),
        (vec!["look_up"], ("linked", "uuid-1"))
    );
    assert_eq!(crm.leads.len(), 1);
}

/// Rule 1, the other half: "that e-mail is in use" means: it is there, find it and update it. The address is compared as a whole, in
/// any case of letters.
#[test]
fn a_lead_with_the_same_email_is_found_and_updated() {
    let other = json!({"id": "o", "email": "xayse@example.com.tr"});
    let same = json!({"id": "s", "email": "Ayse@Example.com", "custom_fields": {}});
    let mut crm = Bottle::with(vec![other, same]);
    let ran = deliver(&mut crm, &lead());
    assert_eq!(
        ran.names(),
        ["look_up", "create", "confirm", "look_up_by_email", "update"]
    );
    assert_eq!(ran.delivered(), ("updated", "s"));
    assert_eq!(crm.leads[1]["custom_fields"]["relay_id"], "src_1:L-1");
    assert_eq!(crm.leads[0]["custom_fields"], Value::Null);
}

/// A record that another event made keeps its external id: that event has to find it again.
#[test]
fn another_events_external_id_is_not_overwritten() {
    let mut crm = Bottle::with(vec![
        json!({"id": "s", "email": "ayse@example.com", "custom_fields": {"relay_id": "src_1:L-0"}}),
    ]);
    let ran = deliver(&mut crm, &lead());
    assert_eq!(ran.delivered(), ("updated", "s"));
    assert_eq!(crm.leads[0]["custom_fields"]["relay_id"], "src_1:L-0");
    assert_eq!(crm.leads[0]["first_name"], "Ayşe");
}

/// Rule 2: a converted lead is seen by nobody and blocks its e-mail: permanent, with a reason worth showing.
#[test]
fn a_hidden_lead_that_blocks_the_email_is_permanent_data() {
    let mut crm = Bottle::with(vec![
        json!({"id": "c", "email": "ayse@example.com", "status": "converted"}),
    ]);
    let ran = deliver(&mut crm, &lead());
    let failure = ran.failure();
    assert_eq!(
        (failure.class, failure.effect),
        (Class::PermanentData, Effect::NotApplied)
    );
    assert!(failure.hint.contains("converted") && failure.message.contains("no look-up shows it"));
    assert_eq!(failure.field.as_deref(), Some("email"));
    let nameless = run(&*bottle(), &Given::lead(&[("phone", "1")]), |call| {
        if call.name == "create" {
            data(
                400,
                &json!({"errors": {"email": ["Another lead … already uses that email address."]}}),
            )
        } else {
            crm.respond(call)
        }
    });
    assert_eq!(nameless.failure().class, Class::PermanentData);
}

/// Rule 3: rows that do not carry the external id are never taken. Where none of them has to do with it, the filter was overlooked,
/// and a miss would mean nothing.
#[test]
fn a_filter_that_is_overlooked_is_noticed() {
    let foreign = |ids: &[&str]| -> Vec<Value> {
        ids.iter()
            .map(|id| json!({"id": id, "custom_fields": {"relay_id": id}}))
            .collect()
    };
    let look_up = |leads: Vec<Value>| {
        run(&*bottle(), &lead(), |call| match call.name.as_str() {
            "look_up" => data(
                200,
                &json!({"open_leads": {"open_leads": leads}, "close_leads": {"close_leads": null}}),
            ),
            _ => data(200, &json!({"error": false})),
        })
    };
    let overlooked = look_up(foreign(&["a", "b"]));
    assert_eq!(overlooked.names(), ["look_up"]);
    let failure = overlooked.failure();
    assert_eq!(
        (failure.class, failure.effect, failure.scope),
        (Class::PermanentConfig, Effect::NotApplied, Scope::Target)
    );
    let substring = look_up(foreign(&["src_1:L-11", "b"]));
    assert_eq!(substring.names()[..2], ["look_up", "create"]);
    let mixed = look_up(
        [
            foreign(&["a"]),
            vec![json!({"id": "x", "custom_fields": {"relay_id": "src_1:L-1"}})],
        ]
        .concat(),
    );
    assert_eq!(mixed.delivered(), ("updated", "x"));
}

/// Rule 4: an undefined field is dropped without a word; it shows at the first lead, and is said with the record's id.
#[test]
fn an_undefined_external_id_field_is_noticed() {
    let mut crm = Bottle {
        field_is_undefined: true,
        ..Bottle::default()
    };
    let ran = deliver(&mut crm, &lead());
    let failure = ran.failure();
    assert_eq!(
        (failure.class, failure.effect, failure.scope),
        (Class::PermanentConfig, Effect::Applied, Scope::Target)
    );
    assert!(failure.message.contains("uuid-1") && failure.hint.contains("custom_fields.relay_id"));
    crm.field_is_undefined = false;
    let again = deliver(&mut crm, &lead());
    assert_eq!(again.delivered(), ("updated", "uuid-1"));
    assert_eq!(
        (crm.leads.len(), &crm.leads[0]["custom_fields"]["relay_id"]),
        (1, &json!("src_1:L-1"))
    );
}

/// A read-back that says neither way does not undo what the create proved.
#[test]
fn a_failed_read_back_does_not_undo_the_proof() {
    for broken in [
        answer(500, "text/html", b"<h1>"),
        answer(200, "text/html", b"<h1>"),
        data(404, &json!({"detail": "…"})),
    ] {
        let mut crm = Bottle::default();
        let ran = run(&*bottle(), &lead(), |call| {
            if call.name == "read_back" {
                broken.clone()
            } else {
                crm.respond(call)
            }
        });
        assert_eq!(ran.delivered(), ("created", "uuid-1"));
    }
}

/// Rules 5 and 6 and the rest of the CRM's table, as it answers.
#[test]
fn what_the_crm_says_has_class_and_effect() {
    contract::answers_mean_what_is_recorded(include_str!("fixtures/bottlecrm.json"), |answer| {
        let ran = run(&*bottle(), &lead(), |call| {
            if call.name == "create" {
                answer.clone()
            } else {
                Bottle::default().respond(call)
            }
        });
        assert_eq!(ran.names(), ["look_up", "create"]);
        ran.failure().clone()
    });
}

/// Rule 5: the credential error shows at the look-up already, and nothing is created.
#[test]
fn a_wrong_token_stops_at_the_look_up() {
    let refusal = data(
        403,
        &json!({"detail": "Organization context is required. Please login again."}),
    );
    let ran = run(&*bottle(), &lead(), |_| refusal.clone());
    assert_eq!(
        (ran.names(), ran.failure().class, ran.failure().scope),
        (vec!["look_up"], Class::PermanentConfig, Scope::Target)
    );
}

/// "Nothing found" is said by an empty list and nothing else: an answer that cannot be read must not lead to a second record.
#[test]
fn an_unreadable_look_up_creates_nothing() {
    let whole = |content_type: &str, body: &[u8]| answer(200, content_type, body);
    let lost = Answer {
        body_state: BodyState::Lost,
        ..data(200, &json!({"open_leads": {"open_leads": []}}))
    };
    let capped = Answer {
        body_state: BodyState::Capped,
        ..lost.clone()
    };
    for (answer, class) in [
        (
            whole("text/html", b"<h1>Login</h1>"),
            Class::PermanentConfig,
        ),
        (
            whole("application/json", b"<h1>Login</h1>"),
            Class::PermanentConfig,
        ),
        (whole("application/json", b"{\"open_le"), Class::Transient),
        (whole("", b""), Class::Transient),
        (whole("application/json", b"[]"), Class::PermanentConfig),
        (
            data(200, &json!({"open_leads": {"open_leads": []}})),
            Class::PermanentConfig,
        ),
        (lost, Class::Transient),
        (capped, Class::PermanentConfig),
        (data(500, &json!({})), Class::Transient),
        (data(404, &json!({})), Class::PermanentConfig),
    ] {
        let ran = run(
            &*bottle(),
            &Given {
                maybe_applied: true,
                ..lead()
            },
            |_| answer.clone(),
        );
        assert_eq!(ran.names(), ["look_up"], "{answer:?}");
        assert_eq!(
            (ran.failure().class, ran.failure().effect),
            (class, Effect::NotApplied),
            "{answer:?}"
        );
    }
}

/// H60: the CRM that says 200 with an empty id when it found a duplicate: visible, class unknown, and created once.
#[test]
fn a_success_without_an_id_is_looked_up_and_never_repeated() {
    let ran = run(&*bottle(), &lead(), |call| match call.name.as_str() {
        "create" => data(200, &json!({"error": false, "id": ""})),
        _ => Bottle::default().respond(call),
    });
    assert_eq!(ran.names(), ["look_up", "create", "confirm"]);
    assert_eq!(
        (ran.failure().class, ran.failure().effect),
        (Class::Unknown, Effect::NotApplied)
    );
    let doubtful = run(&*bottle(), &lead(), |call| match call.name.as_str() {
        "create" => data(200, &json!({})),
        "confirm" => answer(503, "", b""),
        _ => Bottle::default().respond(call),
    });
    assert_eq!(
        (doubtful.failure().class, doubtful.failure().effect),
        (Class::Transient, Effect::MaybeApplied)
    );
}

/// DL-4: the mark stands beside what the person wrote, and takes nothing away.
#[test]
fn what_is_missing_is_marked_beside_the_text() {
    let mut crm = Bottle::default();
    deliver(
        &mut crm,
        &Given {
            missing: vec!["phone".into()],
            ..lead()
        },
    );
    assert_eq!(crm.leads[0]["description"], "[missing data: phone] Arayın");
}

fn small(object: Value) -> Box<dyn Destination> {
    http(json!({"base_url": "https://crm.example.com/v1/", "objects": {"lead": object}}))
}

fn created(destination: &dyn Destination, given: &Given) -> Call {
    let ran = run(destination, given, |call| match call.name.as_str() {
        "create" => data(201, &json!({"data": {"id": 42}})),
        _ => data(404, &json!({})),
    });
    assert_eq!(ran.delivered(), ("created", "42"));
    ran.calls
        .into_iter()
        .find(|c| c.name == "create")
        .expect("created")
}

/// The shapes of bodies: nested, typed, fixed, linked, below a key.
#[test]
fn bodies_are_shaped_as_described() {
    let destination = small(json!({
        "json_fields": ["budget", "tags", "broken"], "links": {"owner.id": "person", "none": "absent"}, "external_id_field": "meta.ext",
        "missing_data": {"field": "tags", "value": ["incomplete"]},
        "create": {"path": "/leads", "id": "/data/id", "under": "lead", "fixed": {"source": "web", "meta.kind": 1}},
    }));
    let given = Given {
        links: [("person".to_owned(), "p1".to_owned())].into(),
        missing: vec!["email".into()],
        ..Given::lead(&[
            ("name.first", "Ayşe"),
            ("budget", "1.5"),
            ("tags", "[\"vip\"]"),
            ("broken", "{"),
            ("source.sub", "x"),
        ])
    };
    let call = created(&*destination, &given);
    let body: Value = serde_json::from_slice(&call.body).expect("JSON");
    assert_eq!(
        body,
        json!({"lead": {
            "name": {"first": "Ayşe"}, "budget": 1.5, "tags": ["vip", "incomplete"], "broken": "{", "source": "web", "source.sub": "x",
            "meta": {"ext": "src_1:L-1", "kind": 1}, "owner": {"id": "p1"},
        }})
    );
    assert_eq!(call.url, "https://crm.example.com/v1/leads");
}

#[test]
fn forms_are_sent_where_they_are_wanted() {
    let destination = small(
        json!({"create": {"path": "/leads", "id": "/data/id", "format": "form"}, "external_id_field": "ext"}),
    );
    let call = created(&*destination, &Given::lead(&[("ad", "Ayşe & Öz")]));
    assert_eq!(
        String::from_utf8_lossy(&call.body),
        "ad=Ay%C5%9Fe+%26+%C3%96z&ext=src_1%3AL-1"
    );
    let content_type = HeaderValue::Plain("application/x-www-form-urlencoded".into());
    assert!(
        call.headers
            .contains(&("content-type".into(), content_type))
    );
}

/// ID-1, ID-4: the key goes where it is wanted, in an alphabet that a header takes; a PUT to the external id is a key of its own.
#[test]
fn means_against_doubles_are_declared_and_used() {
    let keyed = small(
        json!({"idempotency_header": "Idempotency-Key", "create": {"path": "/leads", "id": "/data/id"}}),
    );
    assert!(keyed.repeat("lead").native_key && !keyed.repeat("lead").look_up);
    let key = |given: &Given| {
        let call = created(&*keyed, given);
        let header = call
            .headers
            .into_iter()
            .find(|(name, _)| name == "idempotency-key");
        match header {
            Some((_, HeaderValue::Plain(key))) => key,
            other => panic!("no key: {other:?}"),
        }
    };
    assert_eq!(key(&lead()), "src_1:L-1:crm");
    let odd = Given {
        key: "src_1:Ş 1:crm".into(),
        ..lead()
    };
    assert!(key(&odd).is_ascii() && key(&odd).len() == 36 && key(&odd) == key(&odd));
    let put = small(
        json!({"create": {"method": "PUT", "path": "/leads/{external_id}", "id": "/data/id"}}),
    );
    assert!(put.repeat("lead").native_key);
    assert_eq!(
        created(&*put, &lead()).url,
        "https://crm.example.com/v1/leads/src_1%3AL-1"
    );
    let bare = small(json!({"create": {"path": "/leads", "id": "/data/id"}}));
    assert!(!bare.repeat("lead").is_safe() && !bare.repeat("task").is_safe());
}

/// Searching with POST, one record instead of a list, 404 for "none".
#[test]
fn other_ways_to_look_up() {
    let object = json!({
        "external_id_field": "ext", "create": {"path": "/leads", "id": "/data/id"},
        "look_up": {"path": "/search", "body": {"filter": ["ext", "{external_id}"]}, "absent_status": 404, "match": "/ext", "id": "/key"},
    });
    let call = created(&*small(object.clone()), &lead());
    assert!(call.mutates);
    let ran = run(&*small(object), &lead(), |_| {
        data(200, &json!({"key": 9, "ext": "src_1:L-1"}))
    });
    assert_eq!(ran.delivered(), ("linked", "9"));
    assert_eq!(
        (ran.calls[0].method, ran.calls[0].mutates),
        (Method::Post, false)
    );
    assert_eq!(ran.calls[0].body, br#"{"filter":["ext","src_1:L-1"]}"#);
}

/// A 409 that no row explains is looked up (ERR-6); a row turns a 200 with an error inside into what it is.
#[test]
fn conflicts_are_looked_up_and_errors_in_a_200_are_seen() {
    let values = json!({
        "base_url": "https://crm.example.com", "errors": {"code": ["/error/code"], "rows": [
            {"code": "FIELD_GONE", "class": "permanent_config", "scope": "target", "hint": "Define the field there again."}]},
        "objects": {"lead": {
            "external_id_field": "ext", "on_found": "link", "create": {"path": "/leads", "id": "/id"}, "update": {"path": "/leads/{id}", "id": "/id"},
            "look_up": {"path": "/leads?ext={external_id}", "rows": ["/leads"], "match": "/ext"}}},
    });
    let one = json!({"leads": [{"id": "7", "ext": "src_1:L-1"}]});
    let ran = run(&*http(values.clone()), &lead(), |call| {
        match call.name.as_str() {
            "look_up" => data(200, &json!({"leads": []})),
            "create" => data(409, &json!({})),
            _ => data(200, &one),
        }
    });
    assert_eq!(
        (ran.names(), ran.delivered()),
        (vec!["look_up", "create", "confirm"], ("linked", "7"))
    );
    let ran = run(&*http(values), &lead(), |call| match call.name.as_str() {
        "look_up" => data(200, &json!({"leads": []})),
        _ => data(200, &json!({"id": "7", "error": {"code": "FIELD_GONE"}})),
    });
    assert_eq!(
        (ran.failure().class, ran.failure().vendor_code.as_deref()),
        (Class::PermanentConfig, Some("FIELD_GONE"))
    );
}

/// A path that needs an earlier step's record.
#[test]
fn a_path_may_name_an_earlier_record() {
    let destination = http(
        json!({"base_url": "https://crm.example.com", "objects": {"task": {"create": {"path": "/leads/{links.lead}/tasks", "id": "/id"}}}}),
    );
    let task = Given {
        object: "task",
        ..Given::lead(&[("title", "x")])
    };
    let ran = run(&*destination, &task, |_| data(201, &json!({"id": "t"})));
    assert_eq!(ran.failure().class, Class::PermanentConfig);
    let linked = Given {
        links: [("lead".to_owned(), "a/b".to_owned())].into(),
        ..task
    };
    let ran = run(&*destination, &linked, |_| data(201, &json!({"id": "t"})));
    assert_eq!(
        ran.calls[0].url,
        "https://crm.example.com/leads/a%2Fb/tasks"
    );
}

#[test]
fn a_lead_without_any_value_creates_nothing() {
    let ran = deliver(&mut Bottle::default(), &Given::lead(&[]));
    assert_eq!(
        (ran.calls.len(), ran.failure().class),
        (0, Class::PermanentData)
    );
}

#[test]
fn doctor_probes_without_changing_anything() {
    let call = bottle().probe().expect("a probe");
    assert_eq!(
        call.url,
        "https://crm.example.com/api/leads/?cf_relay_id=emanet%3Adoctor"
    );
    let probed = |answer: Answer| {
        bottle()
            .probed(
                &Exchange {
                    call: call.clone(),
                    answer,
                },
                NOW,
            )
            .map_err(|f| f.class)
    };
    assert_eq!(probed(Bottle::default().respond(&call)), Ok(()));
    assert_eq!(
        probed(answer(200, "text/html", b"<h1>")),
        Err(Class::PermanentConfig)
    );
    assert_eq!(
        probed(data(
            403,
            &json!({"detail": "Organization context is required."})
        )),
        Err(Class::PermanentConfig)
    );
    let own = http(
        json!({"base_url": "https://x.example", "probe": {"path": "/me"}, "auth": {"header": "X-Key", "scheme": ""},
        "objects": {"lead": {"create": {"path": "/l", "id": "/id"}}}}),
    );
    let call = own.probe().expect("a probe");
    assert_eq!(call.url, "https://x.example/me");
    assert!(
        call.headers
            .contains(&("x-key".into(), HeaderValue::Secret(Secret::new(SECRET))))
    );
}

/// Every mistake under its own path.
#[test]
fn wrong_settings_are_reported_with_their_paths() {
    let values = json!({
        "base_url": "https://u:p@crm.example.com?x", "nope": 1, "auth": {"head": "x"}, "headers": {"Authorization": "x", "a b": "c"},
        "objects": {"lead": {
            "look_up": {"path": "leads", "rows": ["leads"]}, "create": {"path": "/l/{who}", "method": "GET"}, "update": {"path": "/l"},
            "fields": {"name": "{{ lead.nane }}"}, "on_found": "merge", "missing_data": {"field": "x"},
            "by": {"email": {"path": "/l?e={value}", "match": "/email"}}}},
        "errors": {"rows": [{"class": "link", "by": "phone", "hint": "x"}, {"status": 4, "class": "odd", "code": "x", "hint": "h"}]},
    });
    let wrong = (KIND.build)(&contract::settings(KIND.fields, values)).expect_err("much is wrong");
    let mut keys: Vec<_> = wrong.iter().map(|w| w.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(
        keys,
        [
            "auth.head",
            "base_url",
            "errors.code",
            "errors.rows.0.by",
            "errors.rows.0.status",
            "errors.rows.1.class",
            "errors.rows.1.status",
            "headers.Authorization",
            "headers.a b",
            "nope",
            "objects.lead.by.email.field",
            "objects.lead.create.method",
            "objects.lead.create.path",
            "objects.lead.external_id_field",
            "objects.lead.fields.name",
            "objects.lead.look_up.match",
            "objects.lead.look_up.path",
            "objects.lead.look_up.rows",
            "objects.lead.missing_data.value",
            "objects.lead.on_found",
            "objects.lead.update.path",
        ]
    );
    let empty = (KIND.build)(&Settings::default()).expect_err("all is missing");
    assert_eq!(
        empty.iter().map(|w| w.key.as_str()).collect::<Vec<_>>(),
        ["base_url", "objects"]
    );
}

/// How a call may go wrong between the CRM and us.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// 500, before or after the CRM did it.
    Broke {
        did: bool,
    },
    /// Done, but the answer is a page, empty, or cut off.
    Garbled,
    Cut,
    Busy,
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let fault = prop_oneof![
        3 => Just(Fault::None),
        1 => any::<bool>().prop_map(|did| Fault::Broke { did }),
        1 => Just(Fault::Garbled),
        1 => Just(Fault::Cut),
        1 => Just(Fault::Busy),
    ];
    proptest::collection::vec(fault, 40)
}

proptest! {
    /// Invariant 2: however the calls go wrong, and however often the step is tried, there is one record, and none is called delivered
    /// that is not there.
    #[test]
    fn there_is_never_a_second_record(faults in faults(), with_email: bool, crowd in 0_usize..3) {
        let others = (0..crowd).map(|n| json!({"id": format!("o{n}"), "email": format!("{n}ayse@example.com"), "custom_fields": {"relay_id": n.to_string()}}));
        let crm = RefCell::new(Bottle::with(others.collect()));
        let faults = RefCell::new(faults.into_iter());
        let mut given = if with_email { lead() } else { Given::lead(&[("phone", "+905321234567")]) };
        let mut respond = |call: &Call| {
            let fault = faults.borrow_mut().next().unwrap_or(Fault::None);
            match fault {
                Fault::Broke { did: false } => return answer(500, "text/html", b"<h1>500</h1>"),
                Fault::Busy => return data(429, &json!({})),
                _ => {}
            }
            let real = crm.borrow_mut().respond(call);
            match fault {
                Fault::Broke { .. } => answer(500, "text/html", b"<h1>500</h1>"),
                Fault::Garbled => answer(200, "text/html", b"<h1>Bakim</h1>"),
                Fault::Cut => Answer { body: real.body[..real.body.len() / 2].to_vec(), body_state: BodyState::Lost, ..real },
                Fault::None | Fault::Busy => real,
            }
        };
        let mut last = None;
        for _ in 0..12 {
            let ran = run(&*bottle(), &given, &mut respond);
            let effect = ran.end.as_ref().err().map(|f| f.effect);
            given.maybe_applied |= effect == Some(Effect::MaybeApplied);
            let is_over = ran.end.is_ok();
            last = Some(ran);
            if is_over {
                break;
            }
        }
        let crm = crm.borrow();
        let ours: Vec<_> = crm.leads.iter().filter(|l| l["custom_fields"]["relay_id"] == "src_1:L-1").collect();
        prop_assert!(ours.len() <= 1, "{ours:?}");
        let ran = last.expect("it ran");
        if let Ok(delivered) = &ran.end {
            prop_assert_eq!(ours.len(), 1);
            prop_assert_eq!(ours[0]["id"].as_str(), delivered.id.as_deref());
        }
    }
}
