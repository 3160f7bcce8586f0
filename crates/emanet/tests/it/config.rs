//! Configurations of the installations under test: a web form, Meta, and the fake CRM as an `http` destination.

use crate::crm::{Crm, TOKEN};
use crate::graph::{APP_SECRET, Graph, PAGE_TOKEN};

pub(crate) const VERIFY_TOKEN: &str = "verify-token-canary-91e2";
pub(crate) const THANK_YOU: &str = "https://www.example.com/thanks";

/// What the CRM has against doubles (ID-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// It finds an object by our external id.
    LookUp,
    /// It honours idempotency keys.
    Key,
    /// Nothing.
    Nothing,
}

/// A web form into the CRM by the default flow.
pub(crate) fn web(crm: &Crm) -> String {
    web_with(crm, Means::LookUp)
}

/// The same with a CRM that has other means.
pub(crate) fn web_with(crm: &Crm, means: Means) -> String {
    [
        NETWORK.to_owned(),
        web_source("flow = \"carry\""),
        destination(&crm.url(), means),
        flow(&["crm", "task"]),
    ]
    .concat()
}

/// A web form and Meta, both into the CRM.
pub(crate) fn web_and_meta(crm: &Crm, graph: &Graph) -> String {
    web(crm) + &meta_source(graph)
}

/// A web form whose leads go nowhere.
pub(crate) fn receive_only(crm: &Crm) -> String {
    [
        NETWORK.to_owned(),
        web_source("flow = false"),
        destination(&crm.url(), Means::LookUp),
    ]
    .concat()
}

/// A web form whose leads are written to the CRM, without a task.
pub(crate) fn upsert_only(crm: &Crm, means: Means) -> String {
    [
        NETWORK.to_owned(),
        web_source("flow = \"carry\""),
        destination(&crm.url(), means),
        flow(&["crm"]),
    ]
    .concat()
}

/// The fakes live on the loopback address, which no destination may reach unless the operator says so.
pub(crate) const NETWORK: &str = "[network]\nallow_private = [\"127.0.0.0/8\"]\n";

pub(crate) fn web_source(more: &str) -> String {
    format!("\n[sources.web]\nkind = \"web_form\"\nthank_you_url = \"{THANK_YOU}\"\n{more}\n")
}

fn meta_source(graph: &Graph) -> String {
    format!(
        "
[sources.meta]
kind = \"meta_lead_ads\"
app_secret = \"{APP_SECRET}\"
verify_token = \"{VERIFY_TOKEN}\"
page_token = \"{PAGE_TOKEN}\"
graph_url = \"{}\"
flow = \"carry\"
",
        graph.url()
    )
}

/// The steps of the flow `carry`, tried again soon.
fn flow(steps: &[&str]) -> String {
    let step = |kind: &&str| {
        let needs = if *kind == "task" {
            "needs = [\"crm\"]\n"
        } else {
            ""
        };
        format!(
            "\n[[flows.carry.steps]]\nname = \"{kind}\"\nkind = \"{kind}\"\n{needs}retry = {{ base_ms = 50, cap_ms = 200 }}\n"
        )
    };
    steps.iter().map(step).collect()
}

pub(crate) fn destination(url: &str, means: Means) -> String {
    let object = |name: &str, path: &str, more: &str| {
        let look_up = match means {
            Means::LookUp => format!(
                "look_up = {{ path = \"{path}?external_id={{external_id}}\", rows = [\"/items\"], id = \"/id\", match = \"/external_id\", lag_seconds = 1 }}\n"
            ),
            Means::Key | Means::Nothing => String::new(),
        };
        let key = match means {
            Means::Key => "idempotency_header = \"Idempotency-Key\"\n",
            Means::LookUp | Means::Nothing => "",
        };
        format!(
            "
[destinations.crm.objects.{name}]
external_id_field = \"external_id\"
{look_up}{key}create = {{ path = \"{path}\", id = \"/id\" }}
update = {{ path = \"{path}/{{id}}\", id = \"/id\" }}
{more}
"
        )
    };
    let lead = "fields = { name = \"{{ lead.full_name }}\", email = \"{{ lead.email }}\", phone = \"{{ lead.phone }}\" }";
    let task = "fields = { title = \"Call {{ lead.full_name }}\" }\nlinks = { lead = \"lead\" }";
    format!(
        "
[destinations.crm]
kind = \"http\"
base_url = \"{url}\"
token = \"{TOKEN}\"
probe = {{ path = \"/me\" }}
{}{}
[destinations.crm.errors]
code = [\"/error/code\"]
",
        object("lead", "/leads", lead),
        object("task", "/tasks", task),
    )
}
