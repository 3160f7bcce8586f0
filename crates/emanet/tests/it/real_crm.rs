//! `emanet` against a CRM that nobody of this project wrote, described as the documentation of the `http` destination describes it: all
//! seven rules that its answers ask of a connector.
//!
//! Where the machine lacks Python 3.12 or PostgreSQL, the test cannot run; it then says so in its output and in the file `outcome`, which
//! the test command reads and counts as skipped, never as passed.

mod front;
mod install;

use crate::config::{NETWORK, web_source};
use crate::http::request;
use crate::leads;
use crate::process::Home;
use front::{Front, Spoil};
use install::{RealCrm, Tools, folder};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn the_http_destination_keeps_all_seven_rules_of_a_real_crm() {
    let outcome = folder().join("outcome");
    let tools = match Tools::find() {
        Ok(tools) => tools,
        Err(missing) => {
            println!("NOT RUN: the test against a real CRM: {missing}");
            std::fs::write(outcome, format!("not run: {missing}\n")).unwrap();
            return;
        }
    };
    let stage = Stage::set(&tools);
    // First, while the CRM is empty and the field is not defined yet.
    stage.rule_4_an_external_id_that_the_crm_drops_is_noticed_at_the_first_lead();
    stage.define_the_field();
    stage.rule_4_a_created_lead_reads_back_with_its_external_id();
    stage.rule_1_a_server_error_is_not_taken_for_not_created();
    stage.rule_1_an_email_in_use_after_a_lost_answer_is_found_and_linked();
    stage.rule_2_a_converted_lead_that_blocks_its_email_is_a_person_s_case_not_a_loop();
    stage.rule_3_a_filter_that_is_ignored_takes_nobody_else_s_record();
    stage.rule_5_a_wrong_token_costs_one_lead_and_holds_the_rest();
    stage.rule_6_a_redirect_is_not_followed_and_loses_nothing();
    stage.rule_7_no_more_calls_at_once_than_allowed();
    std::fs::write(outcome, "run\n").unwrap();
}

/// The CRM with the front before it.
struct Stage {
    crm: RealCrm,
    front: Front,
}

impl Stage {
    fn set(tools: &Tools) -> Self {
        let crm = RealCrm::start(tools);
        let front = Front::of(&crm.url);
        Self { crm, front }
    }

    fn rule_4_an_external_id_that_the_crm_drops_is_noticed_at_the_first_lead(&self) {
        let home = Home::new(&self.config().replace("relay_id", "undefined_id"));
        let server = home.serve();
        leads::send(&server.intake("web"), 400);
        home.until_n("open_dead_letters", 1);
        let letter = &home.lines(&["dead", "list"])[0]["failure"];
        assert_eq!(
            (&letter["class"], &letter["effect"]),
            (&json!("permanent_config"), &json!("applied")),
            "{letter}"
        );
        assert_eq!(self.leads_with(400).len(), 1);
    }

    fn rule_4_a_created_lead_reads_back_with_its_external_id(&self) {
        let home = Home::new(&self.config());
        let server = home.serve();
        leads::send(&server.intake("web"), 401);
        home.until_n("done", 1);
        let lead = &self.leads_with(401)[0];
        let id = lead["custom_fields"]["relay_id"]
            .as_str()
            .unwrap_or_default();
        assert!(
            id.starts_with("src_") && id.ends_with("submission-401"),
            "{lead}"
        );
        assert_eq!(lead["first_name"], "Ayşe401");
    }

    fn rule_1_a_server_error_is_not_taken_for_not_created(&self) {
        let home = Home::new(&self.config());
        let server = home.serve();
        self.front.plan(first_create(Spoil::ServerErrorAfter));
        leads::send(&server.intake("web"), 100);
        home.until_n("done", 1);
        self.front.plan(|_| None);
        assert_eq!(
            self.front.n("POST", &leads::email(100)),
            1,
            "not created a second time"
        );
        assert_eq!(self.leads_with(100).len(), 1);
    }

    fn rule_1_an_email_in_use_after_a_lost_answer_is_found_and_linked(&self) {
        let home = Home::new(&self.config());
        let server = home.serve();
        let create = first_create(Spoil::ServerErrorAfter);
        // The search lags behind: it does not show by its external id what was created a moment ago.
        self.front
            .plan(move |seen| match seen.parameter("cf_relay_id") {
                Some(_) => Some(Spoil::FindNothing),
                None => create(seen),
            });
        leads::send(&server.intake("web"), 101);
        home.until_n("done", 1);
        self.front.plan(|_| None);
        assert_eq!(self.leads_with(101).len(), 1);
        let step = &home.steps_of("done")[0];
        assert_eq!(
            step["delivered"]["id"],
            self.leads_with(101)[0]["id"],
            "{step}"
        );
    }

    fn rule_2_a_converted_lead_that_blocks_its_email_is_a_person_s_case_not_a_loop(&self) {
        let lead = json!({"first_name": "Eski", "last_name": "Kayit", "email": leads::email(200), "status": "converted"});
        self.call("POST", "/api/leads/", Some(&lead));
        let home = Home::new(&self.config());
        let server = home.serve();
        leads::send(&server.intake("web"), 200);
        home.until_n("open_dead_letters", 1);
        let letter = &home.lines(&["dead", "list"])[0];
        assert_eq!(letter["failure"]["class"], "permanent_data", "{letter}");
        assert!(
            letter["failure"]["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("converted")),
            "{letter}"
        );
        assert_eq!(self.front.n("POST", &leads::email(200)), 1, "no loop");
    }

    fn rule_3_a_filter_that_is_ignored_takes_nobody_else_s_record(&self) {
        let home = Home::new(&self.config().replace("?cf_relay_id=", "?relay_id="));
        let server = home.serve();
        let n_changes = self.front.n("PATCH", "/api/leads/");
        leads::send(&server.intake("web"), 300);
        home.until_n("open_dead_letters", 1);
        let letter = &home.lines(&["dead", "list"])[0];
        assert_eq!(letter["failure"]["class"], "permanent_config", "{letter}");
        assert_eq!(
            self.front.n("PATCH", "/api/leads/"),
            n_changes,
            "somebody else's record was changed"
        );
        assert_eq!(
            self.leads_with(300).len(),
            0,
            "created although the look-up said nothing"
        );
    }

    fn rule_5_a_wrong_token_costs_one_lead_and_holds_the_rest(&self) {
        let right = self.config();
        let home = Home::new(&right.replace(&self.crm.token, "bcrm_pat_wrong"));
        let server = home.serve();
        let intake = server.intake("web");
        leads::send(&intake, 500);
        home.until_n("open_dead_letters", 1);
        let letter = &home.lines(&["dead", "list"])[0];
        assert_eq!(letter["failure"]["class"], "permanent_config", "{letter}");
        for n in 501..510 {
            leads::send(&intake, n);
        }
        home.until_n("held", 9);
        home.configure(&right);
        let path = home.config_path();
        let applied = home.run(&["apply", path.to_str().unwrap()]);
        assert!(applied.status.success(), "{applied:?}");
        home.json(&["replay", "start", "--reason", "a new token"]);
        home.until_n("done", 10);
        for n in 500..510 {
            assert_eq!(self.leads_with(n).len(), 1, "lead {n}");
        }
    }

    fn rule_6_a_redirect_is_not_followed_and_loses_nothing(&self) {
        let right = self.config();
        let create = "[destinations.crm.objects.lead.create]\npath = \"/api/leads";
        assert!(right.contains(&format!("{create}/\"")), "{right}");
        let home = Home::new(&right.replace(&format!("{create}/\""), &format!("{create}\"")));
        let server = home.serve();
        leads::send(&server.intake("web"), 600);
        home.until_n("open_dead_letters", 1);
        let letter = &home.lines(&["dead", "list"])[0];
        assert_eq!(letter["failure"]["class"], "permanent_config", "{letter}");
        assert_eq!(self.leads_with(600).len(), 0);
        home.configure(&right);
        let path = home.config_path();
        assert!(
            home.run(&["apply", path.to_str().unwrap()])
                .status
                .success()
        );
        home.json(&["replay", "start", "--reason", "the slash is there"]);
        home.until_n("done", 1);
        assert_eq!(self.leads_with(600).len(), 1);
    }

    fn rule_7_no_more_calls_at_once_than_allowed(&self) {
        let home = Home::new(&self.config());
        let server = home.serve();
        self.front.forget_peak();
        for n in 700..740 {
            leads::send(&server.intake("web"), n);
        }
        home.until_n("done", 40);
        let at_once = self.front.at_once();
        assert!(
            (2..=4).contains(&at_once),
            "{at_once} calls at once, 4 are allowed"
        );
    }

    /// The configuration of the documentation, pointed at the front.
    fn config(&self) -> String {
        let docs = include_str!("../../../connectors/src/destinations/http/docs.md");
        let example = docs
            .split("```toml\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next())
            .expect("an example");
        let destination = example
            .replace("https://crm.example.com", &self.front.url())
            .replace(
                "{ env = \"CRM_TOKEN\" }",
                &format!("\"{}\"", self.crm.token),
            );
        let flow = "\n[[flows.carry.steps]]\nname = \"crm\"\nkind = \"crm\"\nretry = { base_ms = 50, cap_ms = 200 }\n";
        [NETWORK, &web_source("flow = \"carry\""), &destination, flow].concat()
    }

    fn define_the_field(&self) {
        let field = json!({"target_model": "Lead", "key": "relay_id", "label": "Relay id", "field_type": "text"});
        self.call("POST", "/api/custom-fields/", Some(&field));
    }

    /// What the CRM shows of the n-th lead.
    fn leads_with(&self, n: usize) -> Vec<Value> {
        let address = leads::email(n);
        let found = self.call("GET", &format!("/api/leads/?email={address}"), None);
        let lists = ["/open_leads/open_leads", "/close_leads/close_leads"]
            .map(|at| found.pointer(at).cloned());
        let rows = lists
            .into_iter()
            .flatten()
            .flat_map(|list| list.as_array().cloned().unwrap_or_default());
        rows.filter(|row| row["email"] == address.as_str())
            .collect()
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let bearer = format!("Bearer {}", self.crm.token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let body = body.map(Value::to_string).unwrap_or_default();
        let answer = request(
            method,
            &format!("{}{path}", self.crm.url),
            &headers,
            body.as_bytes(),
        )
        .unwrap();
        assert!(
            (200..300).contains(&answer.status),
            "{method} {path}: {answer:?}"
        );
        answer.json()
    }
}

/// Spoils the first create, and only that.
fn first_create(
    spoil: Spoil,
) -> impl Fn(&crate::fake::Seen) -> Option<Spoil> + Send + Sync + 'static {
    let n = AtomicU64::new(0);
    move |seen| {
        let is_create = seen.method == "POST" && seen.path() == "/api/leads/";
        (is_create && n.fetch_add(1, Ordering::SeqCst) == 0).then_some(spoil)
    }
}
