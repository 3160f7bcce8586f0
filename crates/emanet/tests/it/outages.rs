//! The CRM is away, throttled, set up wrong, or dies in mid-answer: nothing is lost, nothing doubled, and no lead's attempts pay for it.

use crate::config::{self, Means};
use crate::crm::{Crm, Gate, Script, TOKEN, error, error_retry_after};
use crate::leads;
use crate::process::Home;
use crate::wait::{until, until_true};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// RET-4: a CRM that is down is probed now and then; the leads wait and burn nothing.
#[test]
fn five_hundred_leads_wait_for_a_crm_that_is_away_without_burning_an_attempt() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let intake = server.intake("web");

    crm.plan(|_| Some(Script::Refuse(error(503, "maintenance", "away"))));
    for n in 0..500 {
        assert_eq!(
            leads::send(&intake, n).status,
            200,
            "the sender never notices (IN-2)"
        );
    }
    home.until_n("held", 500);
    until_true("some probes were made", || crm.seen().len() >= 6);
    // Eight workers may have been under way when the breaker opened; after that, one probe at a time.
    let n_calls = crm.seen().len();
    assert!(n_calls <= 20, "{n_calls} calls to a CRM that is away");
    // Three failures in a row open the breaker, so that many leads may have made one attempt; waiting has cost none.
    let attempts: Vec<u64> = home
        .steps_of("held")
        .iter()
        .filter_map(|step| step["attempts"].as_u64())
        .collect();
    assert!(
        attempts.iter().all(|n| *n <= 1),
        "a lead was tried more than once: {attempts:?}"
    );
    assert!(
        attempts.iter().sum::<u64>() <= 3,
        "attempts were burnt while the CRM was away: {attempts:?}"
    );

    crm.behave();
    let status = home.until_n("done", 500);
    assert_eq!(status.n("open_dead_letters"), 0);
    assert_eq!((crm.n("leads"), crm.n("tasks")), (500, 500));
    assert_eq!(crm.doubled("leads"), Vec::<String>::new());
    assert!(home.status().closes());
}

/// ERR-3: a refused connection was never sent; it opens the breaker at once.
#[test]
fn leads_wait_for_a_crm_that_refuses_connections() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let intake = server.intake("web");
    crm.go_away();
    for n in 0..50 {
        leads::send(&intake, n);
    }
    home.until_n("held", 50);
    crm.come_back();
    home.until_n("done", 50);
    assert_eq!((crm.n("leads"), crm.n("tasks")), (50, 50));
}

/// RET-1, ERR-4: nothing comes before the time that Retry-After named.
#[test]
fn nothing_is_sent_before_retry_after_has_passed() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let n_refused = AtomicU64::new(0);
    crm.plan(move |_| {
        (n_refused.fetch_add(1, Ordering::SeqCst) == 0)
            .then(|| Script::Refuse(error_retry_after(429, 2)))
    });
    leads::send(&server.intake("web"), 1);
    home.until_n("done", 1);
    let seen = crm.seen();
    let waited = seen[1].at - seen[0].at;
    assert!(
        waited >= Duration::from_secs(2),
        "the second call came after {waited:?}"
    );
    assert_eq!(crm.n("leads"), 1);
}

/// RP-3, ERR-4: a replay that starts while the CRM wants to be left alone waits with everybody else, and goes on.
#[test]
fn a_replay_waits_for_a_retry_after_that_runs_when_it_starts() {
    replay_meets_retry_after(Throttled::Before);
}

/// The same when the CRM says so in the middle of a stage: what is held then has not failed.
#[test]
fn a_replay_goes_on_after_a_retry_after_in_a_stage() {
    replay_meets_retry_after(Throttled::Within);
}

#[derive(PartialEq)]
enum Throttled {
    Before,
    Within,
}

fn replay_meets_retry_after(throttled: Throttled) {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let intake = server.intake("web");
    crm.plan(|_| Some(Script::Refuse(error(422, "invalid", "no such city"))));
    for n in 0..20 {
        leads::send(&intake, n);
    }
    home.until_n("open_dead_letters", 20);

    let n_calls = AtomicU64::new(0);
    let throttled_call = match throttled {
        Throttled::Before => 0,
        Throttled::Within => 12,
    };
    crm.plan(move |_| {
        (n_calls.fetch_add(1, Ordering::SeqCst) == throttled_call)
            .then(|| Script::Refuse(error_retry_after(429, 2)))
    });
    let mut n_leads = 20;
    if throttled == Throttled::Before {
        leads::send(&intake, n_leads);
        n_leads += 1;
        home.until_n("held", 1);
    }
    home.json(&["replay", "start", "--reason", "the city is known"]);
    home.until_n("done", n_leads as u64);
    assert_eq!((crm.n("leads"), crm.n("tasks")), (n_leads, n_leads));
    let state = until("the replay ended", || {
        let state = home.lines(&["replay", "status"])[0]["state"].clone();
        (state != "running").then_some(state)
    });
    assert_eq!(state, "done");
    assert_eq!(home.status().n("open_dead_letters"), 0);
}

/// DL-3, F46: an expired token costs one dead letter and one alert; the rest waits for the fix.
#[test]
fn an_expired_token_is_one_dead_letter_one_alert_and_a_staged_release() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let intake = server.intake("web");

    crm.set_token("the-new-token-canary");
    leads::send(&intake, 0);
    home.until_n("open_dead_letters", 1);
    for n in 1..20 {
        leads::send(&intake, n);
    }
    let status = home.until_n("held", 19);
    assert_eq!(status.n("open_dead_letters"), 1);
    assert_eq!(status.0["by_class"]["permanent_config"], 1, "{status:?}");
    let letter = &home.lines(&["dead", "list"])[0];
    assert_eq!(letter["failure"]["class"], "permanent_config");
    assert!(
        letter["failure"]["hint"]
            .as_str()
            .is_some_and(|hint| !hint.is_empty()),
        "a hint says what to do: {letter}"
    );
    let n_calls = crm.seen().len();
    assert!(
        n_calls <= 8,
        "{n_calls} calls with a token that does not work"
    );

    home.configure(&config::web(&crm).replace(TOKEN, "the-new-token-canary"));
    let path = home.config_path();
    let applied = home.run(&["apply", path.to_str().unwrap()]);
    assert!(applied.status.success(), "{applied:?}");
    home.json(&[
        "replay",
        "start",
        "--class",
        "permanent_config",
        "--reason",
        "token renewed",
    ]);
    home.until_n("done", 20);
    assert_eq!((crm.n("leads"), crm.n("tasks")), (20, 20));
    assert_eq!(home.status().n("open_dead_letters"), 0);
}

/// ERR-5, ID-2: the answer was lost, the object is there; it is found and linked, not made again.
#[test]
fn after_a_time_out_behind_the_commit_the_object_is_looked_up_and_linked() {
    lost_answer(Script::SilentAfterCommit);
}

/// The same with a connection that breaks (F37).
#[test]
fn after_a_connection_broke_behind_the_commit_the_object_is_looked_up_and_linked() {
    lost_answer(Script::HangUpAfterCommit);
}

/// The same with an answer that proves nothing (F38).
#[test]
fn a_success_without_an_id_is_not_believed_but_looked_up() {
    lost_answer(Script::AnswerAfterCommit("<html>welcome</html>".to_owned()));
}

/// The same with an answer that ends in the middle (F41).
#[test]
fn a_success_whose_body_is_cut_off_is_looked_up() {
    lost_answer(Script::CutAfterCommit);
}

/// ERR-5: the request may have arrived, but did not; the look-up says so, and only then it is sent again.
#[test]
fn a_request_that_was_lost_is_sent_again_only_after_a_look_up() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let n_posts = AtomicU64::new(0);
    crm.plan(move |seen| {
        let is_create = seen.method == "POST" && seen.path() == "/leads";
        (is_create && n_posts.fetch_add(1, Ordering::SeqCst) == 0).then_some(Script::HangUp)
    });
    leads::send(&server.intake("web"), 1);
    home.until_n("done", 1);
    let calls: Vec<String> = crm
        .seen()
        .iter()
        .filter(|seen| seen.path() == "/leads")
        .map(|seen| seen.method.clone())
        .collect();
    assert_eq!(calls, ["GET", "POST", "GET", "POST"]);
    assert_eq!((crm.n("leads"), crm.n("tasks")), (1, 1));
}

/// ID-2, F38: search runs behind what was made; a look-up that comes too soon would prove nothing, so none does.
#[test]
fn a_record_that_search_does_not_show_yet_is_not_made_again() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let made: Mutex<Option<Instant>> = Mutex::default();
    crm.plan(move |seen| {
        let mut made = made.lock().unwrap();
        match (seen.method.as_str(), seen.path()) {
            ("POST", "/leads") if made.is_none() => {
                *made = Some(Instant::now());
                Some(Script::HangUpAfterCommit)
            }
            ("GET", "/leads")
                if made.is_some_and(|at| at.elapsed() < Duration::from_millis(800)) =>
            {
                Some(Script::AnswerAfterCommit(r#"{"items":[]}"#.to_owned()))
            }
            _ => None,
        }
    });
    leads::send(&server.intake("web"), 1);
    home.until_n("done", 1);
    assert_eq!(crm.seen_of("POST", "leads").len(), 1, "made once");
}

fn lost_answer(script: Script) {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let n_posts = AtomicU64::new(0);
    crm.plan(move |seen| {
        let is_create = seen.method == "POST" && seen.path() == "/leads";
        (is_create && n_posts.fetch_add(1, Ordering::SeqCst) == 0).then(|| script.clone())
    });
    leads::send(&server.intake("web"), 1);
    home.until_n("done", 1);
    assert_eq!(crm.seen_of("POST", "leads").len(), 1, "made once");
    assert!(
        crm.seen_of("GET", "leads").len() >= 2,
        "looked for after the answer was lost"
    );
    assert_eq!((crm.n("leads"), crm.n("tasks")), (1, 1));
    let task = &crm.objects("tasks")[0];
    assert_eq!(
        task.fields["lead"],
        crm.objects("leads")[0].id.as_str(),
        "the link is the object's own id"
    );
}

/// ID-4: a destination that offers nothing against doubles is never called twice on a doubt.
#[test]
fn without_any_means_against_doubles_the_step_stops_and_asks_a_person() {
    let crm = Crm::start();
    let home = Home::new(&config::web_with(&crm, Means::Nothing));
    let server = home.serve();
    crm.plan(|seen| (seen.method == "POST").then_some(Script::HangUpAfterCommit));
    leads::send(&server.intake("web"), 1);
    home.until_n("open_dead_letters", 1);
    let letter = &home.lines(&["dead", "list"])[0];
    assert_eq!(letter["failure"]["class"], "unknown", "{letter}");
    assert_eq!(
        crm.seen_of("POST", "leads").len(),
        1,
        "not sent a second time"
    );
    assert_eq!(crm.n("leads"), 1);
}

/// ID-1: where the other side honours keys, every try of a step carries the same key and the same bytes (invariant 4).
#[test]
fn every_try_of_a_step_carries_one_key_and_one_body() {
    let crm = Crm::honouring_keys();
    let home = Home::new(&config::web_with(&crm, Means::Key));
    let server = home.serve();
    let n_posts = AtomicU64::new(0);
    crm.plan(move |seen| {
        let is_create = seen.method == "POST" && seen.path() == "/leads";
        (is_create && n_posts.fetch_add(1, Ordering::SeqCst) < 2)
            .then_some(Script::HangUpAfterCommit)
    });
    leads::send(&server.intake("web"), 1);
    home.until_n("done", 1);
    let tries = crm.seen_of("POST", "leads");
    assert_eq!(tries.len(), 3);
    for again in &tries[1..] {
        assert_eq!(
            again.headers["idempotency-key"],
            tries[0].headers["idempotency-key"]
        );
        assert_eq!(again.body, tries[0].body);
    }
    assert_eq!(crm.n("leads"), 1);
}

/// ERR-1: a lead the CRM rejects is dead after one attempt, with the CRM's words, and holds nobody up.
#[test]
fn a_rejected_lead_is_dead_after_one_attempt_and_the_others_go_on() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let intake = server.intake("web");
    crm.plan(|seen| {
        let is_bad = seen.method == "POST" && seen.json()["email"] == leads::email(5).as_str();
        is_bad.then(|| Script::Refuse(error(422, "invalid_email", "the address does not exist")))
    });
    for n in 0..10 {
        leads::send(&intake, n);
    }
    home.until_n("done", 9);
    let status = home.until_n("open_dead_letters", 1);
    assert_eq!(status.0["by_class"]["permanent_data"], 1, "{status:?}");
    assert_eq!(crm.n("leads"), 9);
    let refused = crm.seen_of("POST", "leads");
    let tries = refused
        .iter()
        .filter(|s| s.json()["email"] == leads::email(5).as_str())
        .count();
    assert_eq!(tries, 1);
}

/// F7: SIGTERM lets what is in flight finish, and the next start goes on without doubles.
#[test]
fn a_graceful_stop_finishes_what_is_in_flight() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let gate = Gate::new();
    let at = std::sync::Arc::clone(&gate);
    crm.plan(move |seen| {
        (seen.method == "POST" && seen.path() == "/leads")
            .then(|| Script::Wait(std::sync::Arc::clone(&at)))
    });
    leads::send(&server.intake("web"), 1);
    gate.reached();
    let pid = server.pid();
    let stopping = std::thread::spawn(move || server.terminate());
    until_true("the server says that it stops", || {
        home.log().contains("stop")
    });
    gate.open();
    assert!(stopping.join().unwrap().success(), "process {pid}");
    crm.behave();
    let _server = home.serve();
    home.until_n("done", 1);
    assert_eq!(crm.seen_of("POST", "leads").len(), 1);
    let task = until("the task is there", || crm.objects("tasks").pop());
    assert_eq!(task.fields["lead"], crm.objects("leads")[0].id.as_str());
}
