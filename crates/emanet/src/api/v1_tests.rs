//! `/api/v1` over a real store: shapes, refusals, and whose is what.

mod house;

use super::request::WORKSPACE_HEADER;
use emanet_core::classify::{Class, Effect, Failure, Scope};
use emanet_core::event::Inbound;
use emanet_core::step::Ruling;
use house::House;
use serde_json::{Value, json};

fn expired() -> Failure {
    Failure {
        class: Class::PermanentConfig,
        effect: Effect::NotApplied,
        scope: Scope::Target,
        status: Some(401),
        vendor_code: Some("INVALID_SESSION".into()),
        field: None,
        message: "The CRM does not take the token.".into(),
        hint: "Make a new token in the CRM.".into(),
        retry_after: None,
    }
}

/// The keys of an object, in their order.
fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn texts<'v>(value: &'v Value, key: &str) -> Vec<&'v str> {
    let items = value["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item[key].as_str().unwrap())
        .collect()
}

/// Design 6: the fixed points of `status --json`.
#[tokio::test]
async fn status_counts_and_closes() {
    let house = House::new().await;
    house.accept("1").await;
    house.accept("2").await;
    house.bury(expired()).await;
    let status = house.get("/status").await;
    let expected = json!({
        "received": 2, "pending": 1, "processing": 0, "held": 0, "done": 0, "dead": 1, "ignored": 0, "erased": 0,
        "oldest_pending_seconds": 0, "open_dead_letters": 1,
        "by_class": {"transient": 0, "permanent_data": 0, "permanent_config": 1, "unknown": 0},
        "closes": true,
    });
    assert_eq!(status, expected);
}

#[tokio::test]
async fn events_page_by_cursor_newest_first() {
    let house = House::new().await;
    for source_ref in ["1", "2", "3"] {
        house.accept(source_ref).await;
    }
    let first = house.get("/events?limit=2").await;
    assert_eq!(texts(&first, "source_ref"), ["3", "2"]);
    let next = first["next"].as_str().unwrap();
    let second = house.get(&format!("/events?limit=2&after={next}")).await;
    assert_eq!(texts(&second, "source_ref"), ["1"]);
    assert_eq!(second["next"], Value::Null);
}

#[tokio::test]
async fn events_are_filtered_by_name_state_and_time() {
    let house = House::new().await;
    house.accept("1").await;
    house.accept("2").await;
    house.bury(expired()).await;
    let count = async |query: &str| {
        let list = house.get(&format!("/events?{query}")).await;
        list["items"].as_array().unwrap().len()
    };
    assert_eq!(count("source=web").await, 2);
    assert_eq!(count("state=dead").await, 1);
    assert_eq!(count("state=pending&source=web").await, 1);
    assert_eq!(count("until=2020-01-01T00:00:00Z").await, 0);
    assert_eq!(count("since=2020-01-01T00:00:00Z").await, 2);
}

/// A slip of the pen is never taken for "no filter".
#[tokio::test]
async fn what_is_not_known_is_refused() {
    let house = House::new().await;
    let check = async |method: &str, path: &str, body: Value, status: u16, code: &str| {
        let (got, answer) = house.ask(method, path, Some(body), None).await;
        assert_eq!(
            (got, &answer["error"]["code"]),
            (status, &json!(code)),
            "{method} {path} {answer}"
        );
        assert!(
            answer["error"]["trace_id"]
                .as_str()
                .is_some_and(|id| id.len() == 32)
        );
    };
    let none = Value::Null;
    check(
        "GET",
        "/events?sorce=web",
        none.clone(),
        400,
        "CORE-REQ-0001",
    )
    .await;
    check(
        "GET",
        "/events?state=lost",
        none.clone(),
        400,
        "CORE-REQ-0001",
    )
    .await;
    check(
        "GET",
        "/events?source=nowhere",
        none.clone(),
        422,
        "CORE-REQ-0002",
    )
    .await;
    check("GET", "/events/evt_1", none.clone(), 404, "CORE-REQ-0003").await;
    check(
        "GET",
        "/events/ded_00000000000000000000000000000000",
        none.clone(),
        404,
        "CORE-REQ-0003",
    )
    .await;
    check("GET", "/evnts", none.clone(), 501, "CORE-SYS-0004").await;
    check("DELETE", "/events", none, 405, "CORE-REQ-0007").await;
    check("POST", "/replays", json!({}), 400, "CORE-REQ-0001").await;
    check(
        "POST",
        "/replays",
        json!({"reason": " "}),
        422,
        "CORE-REQ-0002",
    )
    .await;
    check(
        "POST",
        "/replays",
        json!({"reason": "x", "stages": [0]}),
        422,
        "CORE-REQ-0002",
    )
    .await;
    check(
        "POST",
        "/replays",
        json!({"reason": "x", "stage": [1]}),
        422,
        "CORE-REQ-0002",
    )
    .await;
    check(
        "POST",
        "/replays",
        json!({"reason": "x", "selection": {"clas": "unknown"}}),
        422,
        "CORE-REQ-0002",
    )
    .await;
    check(
        "POST",
        "/doctor",
        json!({"depe": true}),
        422,
        "CORE-REQ-0002",
    )
    .await;
    check(
        "POST",
        "/config",
        json!({"file": "x"}),
        400,
        "CORE-REQ-0001",
    )
    .await;
}

/// The whole story: received, lead, step, attempt with class, effect, code and hint, dead letter.
#[tokio::test]
async fn a_story_says_what_happened_and_what_to_do() {
    let house = House::new().await;
    let event = house.accept("1").await;
    house.bury(expired()).await;
    let story = house.get(&format!("/events/{event}")).await;
    assert_eq!(story["id"], json!(event));
    assert_eq!(story["state"], "dead");
    assert_eq!(
        (&story["source"], &story["source_ref"]),
        (&json!("web"), &json!("1"))
    );
    assert!(story["received_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(story["request"]["method"], "POST");
    assert!(story["request"]["body_bytes"].as_u64().unwrap() > 20);
    assert_eq!(story["lead"]["phone"]["e164"], "+905550001122");
    let step = &story["steps"][0];
    assert_eq!(
        (&step["name"], &step["state"]),
        (&json!("crm"), &json!("dead"))
    );
    assert_eq!(step["target"]["name"], "crm");
    let attempt = &step["tries"][0];
    assert_eq!(
        (&attempt["number"], &attempt["counts"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(
        attempt["failure"],
        json!({
            "class": "permanent_config", "effect": "not_applied", "status": 401, "vendor_code": "INVALID_SESSION",
            "field": null, "message": "The CRM does not take the token.", "hint": "Make a new token in the CRM.",
            "retry_after_seconds": null,
        })
    );
    assert_eq!(attempt["calls"][0]["outcome"], "401");
    assert_eq!(story["dead_letters"][0]["event"], json!(event));
    assert!(
        story["dead_letters"][0]["id"]
            .as_str()
            .unwrap()
            .starts_with("ded_")
    );
}

#[tokio::test]
async fn a_secret_header_is_covered_in_the_story() {
    let house =
        House::with("[sources.web]\nkind = \"web_form\"\nsecret = \"form-secret-1\"\n").await;
    let event = house.accept("1").await;
    let story = house.get(&format!("/events/{event}")).await;
    assert!(!story.to_string().contains("form-secret-1"), "{story}");
}

/// DL-2: resolved once, with who, when and why.
#[tokio::test]
async fn a_dead_letter_is_resolved_once_and_by_somebody() {
    let house = House::new().await;
    house.accept("1").await;
    house.bury(expired()).await;
    let list = house
        .get("/dead-letters?open=true&class=permanent_config&destination=crm")
        .await;
    let id = list["items"][0]["id"].as_str().unwrap();
    let path = format!("/dead-letters/{id}/resolve");
    let check = async |body: Value, expected: u16| {
        let (status, answer) = house.ask("POST", &path, Some(body), None).await;
        assert_eq!(status, expected, "{answer}");
        answer
    };
    check(json!({"resolution": "fixed_manually"}), 400).await;
    check(json!({"resolution": "fixed_manually", "note": ""}), 422).await;
    check(json!({"resolution": "replayed", "note": "again"}), 422).await;
    check(json!({"resolution": "fixed", "note": "done"}), 422).await;
    let resolved = check(
        json!({"resolution": "fixed_manually", "note": "typed in", "object_id": "L-7", "by": "ayşe"}),
        200,
    )
    .await;
    assert_eq!(
        (
            &resolved["resolution"],
            &resolved["resolved_by"],
            &resolved["note"]
        ),
        (&json!("fixed_manually"), &json!("ayşe"), &json!("typed in"))
    );
    check(json!({"resolution": "discarded", "note": "no"}), 409).await;
    assert_eq!(
        house.get("/dead-letters?open=true").await["items"],
        json!([])
    );
    assert_eq!(
        house.get(&format!("/dead-letters/{id}")).await["resolution"],
        "fixed_manually"
    );
    assert!(house.is_woken(), "what waited for it may go on");
}

/// DL-2: what a person needs to settle it is there: what the vendor said, and later where the object is.
#[tokio::test]
async fn a_dead_letter_shows_the_answer_and_the_object() {
    let house = House::new().await;
    house.accept("1").await;
    house.bury(expired()).await;
    let list = house.get("/dead-letters").await;
    let path = format!("/dead-letters/{}", list["items"][0]["id"].as_str().unwrap());
    let letter = house.get(&path).await;
    assert_eq!(letter["answer"], "<h1>Who are you?</h1>");
    assert_eq!(letter["object_id"], Value::Null);
    let body = json!({"resolution": "fixed_manually", "note": "typed in", "object_id": "L-7"});
    let (status, answer) = house
        .ask("POST", &format!("{path}/resolve"), Some(body), None)
        .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(house.get(&path).await["object_id"], "L-7");
}

/// A lead that waits says in words for what: its own failure, or that of the lead that met the cause first.
#[tokio::test]
async fn a_held_lead_says_what_is_wrong() {
    let house = House::new().await;
    let held = async |source_ref: &str, failure: Option<Failure>| {
        let event = house.accept(source_ref).await;
        let cause = "a-cause".into();
        house.rule(Ruling::Hold { cause, failure }).await;
        house.get(&format!("/events/{event}")).await["steps"][0]["held_because"].clone()
    };
    assert_eq!(held("1", None).await, Value::Null, "nothing is known");
    house.accept("2").await;
    house.bury(expired()).await;
    assert_eq!(held("3", None).await, "The CRM does not take the token.");
    let own = Failure {
        message: "It is down.".into(),
        ..expired()
    };
    assert_eq!(held("4", Some(own)).await, "It is down.");
}

/// IN-5: what cannot be read is kept, and can be had byte for byte.
#[tokio::test]
async fn the_stored_body_is_had_byte_for_byte() {
    let house = House::new().await;
    let body = b"{\"full_name\": \xff\0\r\n".to_vec();
    let event = house
        .accept_request(Inbound {
            method: "POST".into(),
            query: String::new(),
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.clone(),
        })
        .await;
    let story = house.get(&format!("/events/{event}")).await;
    assert_eq!(story["unreadable"], "not_json");
    assert_eq!(house.bytes(&format!("/events/{event}/raw")).await, body);
    let (status, _) = house.ask("GET", "/events/evt_1/raw", None, None).await;
    assert_eq!(status, 404);
}

/// RP-2, RP-3, RP-4: what is sent again, in which stages, who and why.
#[tokio::test]
async fn a_replay_is_recorded_and_stopped() {
    let house = House::new().await;
    house.accept("1").await;
    house.bury(expired()).await;
    let body =
        json!({"selection": {"class": "permanent_config"}, "reason": "new token", "by": "ali"});
    let (status, replay) = house
        .ask("POST", "/replays", Some(body.clone()), None)
        .await;
    assert_eq!(status, 201, "{replay}");
    assert_eq!(replay["stages"], json!([5, 25, 100]));
    assert_eq!(replay["selection"], json!({"class": "permanent_config"}));
    assert_eq!(
        (&replay["by"], &replay["reason"]),
        (&json!("ali"), &json!("new token"))
    );
    assert_eq!(
        replay["total"],
        json!({"waiting": 1, "running": 0, "done": 0, "failed": 0})
    );
    assert!(house.is_scheduler_woken());
    let (status, _) = house.ask("POST", "/replays", Some(body), None).await;
    assert_eq!(status, 409, "covered by the first");
    let id = replay["id"].as_str().unwrap();
    let stop = json!({"note": "wrong class"});
    let (status, stopped) = house
        .ask("POST", &format!("/replays/{id}/stop"), Some(stop), None)
        .await;
    assert_eq!(
        (status, &stopped["state"]),
        (200, &json!("stopped")),
        "{stopped}"
    );
    assert_eq!(stopped["ended"]["note"], "wrong class");
    let list = house.get("/replays").await;
    assert_eq!(texts(&list, "id"), [id]);
    assert_eq!(
        house.get(&format!("/replays/{id}")).await["state"],
        "stopped"
    );
}

#[tokio::test]
async fn targets_are_listed_with_their_state() {
    let house = House::new().await;
    let list = house.get("/targets").await;
    let mut names = texts(&list, "name");
    names.sort_unstable();
    assert_eq!(names, ["crm", "web"]);
    assert!(texts(&list, "state").iter().all(|state| *state == "closed"));
    assert_eq!(
        house.get("/alerts").await,
        json!({"items": [], "next": null})
    );
}

#[tokio::test]
async fn a_configuration_is_tried_out_applied_and_shown_without_secrets() {
    let house = House::new().await;
    let text = "[sources.web]\nkind = \"web_form\"\nsecret = \"form-secret-1\"\n";
    let post = async |text: &str, dry_run: bool| {
        let body = json!({"text": text, "file": "new.toml", "dry_run": dry_run, "by": "ali"});
        house.ask("POST", "/config", Some(body), None).await
    };
    let (status, tried) = post(text, true).await;
    assert_eq!((status, &tried["revision"]), (200, &Value::Null), "{tried}");
    let differences = tried["differences"].as_array().unwrap();
    assert!(
        differences.contains(&json!("+ sources.web.secret = \"[secret]\"")),
        "{tried}"
    );
    assert_eq!(house.get("/config").await["revision"], 1);
    let (status, applied) = post(text, false).await;
    assert_eq!(
        (status, &applied["revision"]),
        (200, &json!(2)),
        "{applied}"
    );
    assert_eq!(
        applied["notes"].as_array().unwrap().len(),
        1,
        "it goes nowhere now"
    );
    assert_eq!(house.api.installation.get().revision, 2);
    let shown = house.get("/config").await;
    assert_eq!(
        (&shown["by"], &shown["revision"]),
        (&json!("ali"), &json!(2))
    );
    assert_eq!(shown["document"]["sources"]["web"]["secret"], "[secret]");
    let (status, refused) = post("[sources.web]\nkind = \"web_from\"\n", false).await;
    assert_eq!(status, 422);
    let detail = &refused["error"]["details"][0];
    assert_eq!(detail["field"], "sources.web.kind");
    assert!(
        detail["message"]
            .as_str()
            .unwrap()
            .starts_with("new.toml:2: "),
        "{detail}"
    );
    assert_eq!(house.get("/config").await["revision"], 2);
}

#[tokio::test]
async fn doctor_finds_what_is_wrong_and_says_what_to_do() {
    let house = House::with("[destinations.crm]\nkind = \"sandbox\"\n").await;
    let (status, well) = house
        .ask("POST", "/doctor", Some(json!({"deep": true})), None)
        .await;
    assert_eq!(status, 200);
    let failed = |view: &Value| -> Vec<String> {
        let checks = view["checks"].as_array().unwrap().iter();
        let failed = checks.filter(|check| check["finding"] == "failed");
        failed
            .map(|check| check["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(failed(&well), Vec::<String>::new(), "{well}");
    assert_eq!(well["ok"], true);
    house.break_everything();
    let (_, ill) = house.ask("POST", "/doctor", Some(json!({})), None).await;
    assert_eq!(failed(&ill), ["data directory", "destination crm"], "{ill}");
    assert_eq!(ill["ok"], false);
    assert!(ill["checks"].to_string().contains("chmod 700"), "{ill}");
}

#[tokio::test]
async fn a_sandbox_fails_and_heals() {
    let house = House::with(
        "[destinations.crm]\nkind = \"sandbox\"\nfaults = { unavailable = 0.5 }\n[destinations.real]\nkind = \"http\"\nbase_url = \"https://crm.example\"\n[destinations.real.objects.lead.create]\nmethod = \"POST\"\npath = \"/leads\"\nid = \"/id\"\n",
    )
    .await;
    let path = "/sandbox/crm/faults";
    assert_eq!(
        house.get(path).await["faults"]["unavailable"]["probability"],
        0.5
    );
    let (status, set) = house
        .ask("PUT", path, Some(json!({"token_expired": 2})), None)
        .await;
    assert_eq!(status, 200, "{set}");
    assert_eq!(keys(&set["faults"]), ["token_expired"]);
    let (status, _) = house
        .ask("PUT", path, Some(json!({"earthquake": true})), None)
        .await;
    assert_eq!(status, 422);
    assert_eq!(
        house.get("/sandbox/crm/objects").await,
        json!({"items": [], "next": null})
    );
    let (status, _) = house.ask("GET", "/sandbox/real/objects", None, None).await;
    assert_eq!(status, 404, "no sandbox");
}

/// Invariant 7: nothing of one workspace in the answer to another.
#[tokio::test]
async fn a_workspace_sees_only_its_own() {
    let house = House::with(
        "[workspaces.klinik]\n[sources.web]\nkind = \"web_form\"\n[sources.other]\nkind = \"web_form\"\nworkspace = \"klinik\"\n",
    )
    .await;
    let event = house.accept("1").await;
    let ask = async |path: &str, workspace: Option<&str>| {
        house
            .ask(
                "GET",
                path,
                None,
                workspace.map(|name| (WORKSPACE_HEADER, name)),
            )
            .await
    };
    let story = format!("/events/{event}");
    assert_eq!(ask(&story, None).await.0, 200);
    assert_eq!(ask(&story, Some("default")).await.0, 200);
    assert_eq!(ask(&story, Some("klinik")).await.0, 404);
    assert_eq!(ask("/events", Some("klinik")).await.1["items"], json!([]));
    assert_eq!(ask("/status", Some("klinik")).await.1["received"], 0);
    assert_eq!(ask("/events?source=web", Some("klinik")).await.0, 422);
    assert_eq!(ask("/status", Some("nowhere")).await.0, 422);
    let body = Some(json!({"reason": "which workspace?"}));
    assert_eq!(house.ask("POST", "/replays", body, None).await.0, 400);
}

#[tokio::test]
async fn what_is_composed_is_what_the_source_takes() {
    let house =
        House::with("[sources.web]\nkind = \"web_form\"\nhmac_secret = \"signing-secret\"\n").await;
    let samples = json!({"samples": [{
        "source_ref": "1000000000000001",
        "created_at": "2026-11-30T12:00:00Z",
        "fields": [["full_name", "Ayşe Yılmaz"]],
    }]});
    let (status, composed) = house
        .ask("POST", "/sources/web/compose", Some(samples), None)
        .await;
    assert_eq!(status, 200, "{composed}");
    let path = composed["intake_path"].as_str().unwrap();
    assert_eq!(
        composed["intake"],
        json!(format!("http://127.0.0.1:7420{path}"))
    );
    assert_eq!(
        house.received(&composed["requests"][0]),
        ["1000000000000001"]
    );
    let listed = house.get("/sources").await;
    assert_eq!(listed["items"][0]["intake_path"], json!(path));
}

#[tokio::test]
async fn every_code_is_explained() {
    let house = House::new().await;
    let codes = house.get("/errors").await;
    let codes = codes.as_array().unwrap();
    assert!(
        codes
            .iter()
            .any(|code| code["code"] == "CORE-REQ-0005" && code["status"] == 409)
    );
    assert!(
        codes
            .iter()
            .all(|code| !code["message"].as_str().unwrap().is_empty())
    );
}
