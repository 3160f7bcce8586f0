//! From what the store says to pages.

use super::texts::{self, Language};
use crate::installation::{DestinationEntry, Installation};
use emanet_core::breaker::{Reason, State};
use emanet_core::ids::WorkspaceId;
use emanet_store::{Alert, EventSummary, Listed, SandboxObject, Status, TargetRecord};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use minijinja::Environment;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut pages = Environment::new();
    pages.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    for (name, text) in [
        ("layout.html", include_str!("layout.html")),
        ("message.html", include_str!("message.html")),
        ("overview.html", include_str!("overview.html")),
        ("sandbox.html", include_str!("sandbox.html")),
    ] {
        pages
            .add_template(name, text)
            .expect("the console's own templates compile; a test renders each");
    }
    pages
});

/// What the overview shows.
#[derive(Debug)]
pub struct Overview {
    /// Queue health.
    pub status: Status,
    /// Targets.
    pub targets: Vec<TargetRecord>,
    /// Alerts.
    pub alerts: Vec<Alert>,
    /// Latest events.
    pub events: Vec<EventSummary>,
}

/// A page with one sentence.
///
/// # Errors
/// If the template is broken.
pub fn message(language: Language, key: &str) -> Result<String, minijinja::Error> {
    let t = texts::all(language);
    let message = t.get(key).copied().unwrap_or_default();
    render(
        "message.html",
        &Page {
            lang: language.code(),
            t: &t,
            page: MessagePage { message },
        },
    )
}

/// Is anything wrong now, and what came in last.
///
/// # Errors
/// If the template is broken.
pub fn overview(
    language: Language,
    installation: &Installation,
    facts: &Overview,
) -> Result<String, minijinja::Error> {
    let status = &facts.status;
    let paused: Vec<_> = facts
        .targets
        .iter()
        .filter_map(|t| paused(installation, t))
        .collect();
    let alerts: Vec<_> = facts
        .alerts
        .iter()
        .filter(|a| a.closed_at.is_none())
        .collect();
    let sandboxes = installation
        .destinations
        .values()
        .filter(|d| d.kind.kind == "sandbox");
    let page = OverviewPage {
        well: paused.is_empty()
            && alerts.is_empty()
            && status.open_dead_letters == 0
            && status.closes,
        status,
        in_progress: status.pending + status.processing,
        paused,
        alerts,
        events: facts
            .events
            .iter()
            .map(|event| event_row(installation, event))
            .collect(),
        sandboxes: sandboxes
            .map(|d| SandboxLink {
                name: &d.name,
                id: d.id.to_string(),
            })
            .collect(),
    };
    render(
        "overview.html",
        &Page {
            lang: language.code(),
            t: &texts::all(language),
            page,
        },
    )
}

/// What a sandbox CRM holds.
///
/// # Errors
/// If the template is broken.
pub fn sandbox(
    language: Language,
    installation: &Installation,
    destination: &DestinationEntry,
    objects: &Listed<SandboxObject>,
) -> Result<String, minijinja::Error> {
    let zone = zone(installation, destination.workspace);
    let rows = objects.rows.iter().map(|object| ObjectRow {
        at: local(object.created_at, &zone),
        object: &object.object,
        external_id: object.external_id.as_deref(),
        fields: object
            .fields
            .iter()
            .map(|(name, value)| FieldValue {
                name,
                value: text(value),
            })
            .collect(),
    });
    let page = SandboxPage {
        name: &destination.name,
        rows: rows.collect(),
        next: objects.next.as_deref(),
    };
    render(
        "sandbox.html",
        &Page {
            lang: language.code(),
            t: &texts::all(language),
            page,
        },
    )
}

/// What every page has, and what only this one has.
#[derive(Serialize)]
struct Page<'a, P> {
    lang: &'a str,
    t: &'a BTreeMap<&'static str, &'static str>,
    #[serde(flatten)]
    page: P,
}

#[derive(Serialize)]
struct MessagePage<'a> {
    message: &'a str,
}

#[derive(Serialize)]
struct OverviewPage<'a> {
    well: bool,
    status: &'a Status,
    in_progress: u64,
    paused: Vec<PausedTarget>,
    alerts: Vec<&'a Alert>,
    events: Vec<EventRow<'a>>,
    sandboxes: Vec<SandboxLink<'a>>,
}

#[derive(Serialize)]
struct PausedTarget {
    name: String,
    why: &'static str,
    n_held: u64,
}

#[derive(Serialize)]
struct EventRow<'a> {
    id: String,
    at: String,
    source: &'a str,
    name: Option<&'a str>,
    state: &'static str,
    ignored: Option<&'a str>,
}

#[derive(Serialize)]
struct SandboxLink<'a> {
    name: &'a str,
    id: String,
}

#[derive(Serialize)]
struct SandboxPage<'a> {
    name: &'a str,
    rows: Vec<ObjectRow<'a>>,
    next: Option<&'a str>,
}

#[derive(Serialize)]
struct ObjectRow<'a> {
    at: String,
    object: &'a str,
    external_id: Option<&'a str>,
    fields: Vec<FieldValue<'a>>,
}

#[derive(Serialize)]
struct FieldValue<'a> {
    name: &'a str,
    value: String,
}

fn render<P: Serialize>(template: &str, page: &Page<'_, P>) -> Result<String, minijinja::Error> {
    PAGES
        .get_template(template)?
        .render(minijinja::Value::from(minijinja::value::Serde(page)))
}

fn paused(installation: &Installation, record: &TargetRecord) -> Option<PausedTarget> {
    let State::Open { reason, .. } = &record.state else {
        return None;
    };
    let why = match reason {
        Reason::Down => "paused_down",
        Reason::Throttled => "paused_throttled",
        Reason::Config => "paused_config",
    };
    Some(PausedTarget {
        name: installation.target_name(record.target),
        why,
        n_held: record.n_held,
    })
}

fn event_row<'a>(installation: &'a Installation, event: &'a EventSummary) -> EventRow<'a> {
    EventRow {
        id: event.id.to_string(),
        at: local(event.received_at, &zone(installation, event.workspace)),
        source: installation
            .sources
            .get(&event.source)
            .map_or("", |s| s.name.as_str()),
        name: event.name.as_deref(),
        state: event.state.as_str(),
        ignored: event.ignored.as_deref(),
    }
}

fn zone(installation: &Installation, workspace: WorkspaceId) -> TimeZone {
    installation
        .workspaces
        .get(&workspace)
        .map_or(TimeZone::UTC, |w| w.time_zone.clone())
}

/// Date and time in the workspace's zone.
fn local(at: Timestamp, zone: &TimeZone) -> String {
    zone.to_datetime(at)
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

fn text(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use emanet_core::ids::{EventId, ReceiptId, SourceId};
    use emanet_core::step::EventState;

    fn event(name: &str) -> EventSummary {
        let at = Timestamp::UNIX_EPOCH;
        EventSummary {
            workspace: WorkspaceId::new(at, [1; 10]),
            id: EventId::new(at, [2; 10]),
            receipt: ReceiptId::new(at, [3; 10]),
            source: SourceId::new(at, [4; 10]),
            source_ref: "r".into(),
            received_at: at,
            created_at: None,
            state: EventState::Dead,
            processing: false,
            run_at: None,
            seen: 1,
            ignored: None,
            revision: 1,
            name: Some(name.into()),
            phone: None,
            email: None,
            is_test: false,
        }
    }

    fn facts(events: Vec<EventSummary>) -> Overview {
        Overview {
            status: Status {
                closes: true,
                ..Status::default()
            },
            targets: vec![],
            alerts: vec![],
            events,
        }
    }

    /// Every page renders in both languages, empty and filled; strict undefined finds a misspelt variable.
    #[test]
    fn every_page_renders_in_both_languages() {
        let installation = Installation::default();
        for (language, well) in [
            (Language::En, "All is well"),
            (Language::Tr, "Her şey yolunda"),
        ] {
            let html = overview(language, &installation, &facts(vec![])).unwrap();
            assert!(html.contains(well) && html.contains("emanet send"));
            assert!(
                message(language, "not_found")
                    .unwrap()
                    .contains("<p class=\"message\">")
            );
        }
    }

    /// H55: markup in a name is text.
    #[test]
    fn lead_content_is_shown_as_text() {
        let html = overview(
            Language::En,
            &Installation::default(),
            &facts(vec![event("Ali\"><img src=x onerror=alert(1)>")]),
        );
        let html = html.unwrap();
        assert!(!html.contains("<img"), "{html}");
        assert!(html.contains("&lt;img"));
    }
}
