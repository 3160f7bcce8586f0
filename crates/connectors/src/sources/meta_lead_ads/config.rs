//! Settings of a Meta Lead Ads source.

use crate::settings::{self, field};
use emanet_core::field::{Field, Invalid, Settings};
use emanet_core::secret::Secret;

/// Its settings, as people see them.
pub(super) const FIELDS: &[Field] = &[
    Field {
        required: true,
        secret: true,
        ..field(
            "app_secret",
            "App secret",
            "Uygulama gizli anahtarı",
            "Meta signs every notification with it. App dashboard: App settings, Basic.",
        )
    },
    Field {
        secret: true,
        ..field(
            "previous_app_secret",
            "Previous app secret",
            "Önceki uygulama gizli anahtarı",
            "Taken as well while the secret is being changed.",
        )
    },
    Field {
        required: true,
        secret: true,
        ..field(
            "verify_token",
            "Verify token",
            "Doğrulama belirteci",
            "Any text; enter the same one beside the callback address in the app dashboard.",
        )
    },
    Field {
        required: true,
        secret: true,
        ..field(
            "page_token",
            "Page access token",
            "Sayfa erişim belirteci",
            "A long-lived token of the page with the permission leads_retrieval: the leads are fetched with it.",
        )
    },
    field(
        "page_ids",
        "Pages",
        "Sayfalar",
        "Ids of the pages whose leads are taken. Leads of other pages are kept as ignored. Default: every page.",
    ),
    field(
        "graph_url",
        "Graph API address",
        "Graph API adresi",
        "Default: https://graph.facebook.com.",
    ),
    field(
        "graph_version",
        "Graph API version",
        "Graph API sürümü",
        "Default: v25.0.",
    ),
];

/// Settings of a Meta Lead Ads source.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) app_secret: Secret,
    pub(super) previous_app_secret: Option<Secret>,
    pub(super) verify_token: Secret,
    pub(super) page_token: Secret,
    pub(super) page_ids: Vec<String>,
    /// Address and version; no slash at the end.
    pub(super) graph: String,
}

impl Config {
    pub(super) fn read(settings: &Settings) -> Result<Self, Vec<Invalid>> {
        settings::read(settings, |table, secrets| {
            let url = table.text("graph_url");
            let url = url.unwrap_or_else(|| "https://graph.facebook.com".into());
            if !settings::is_web_address(&url) {
                table.wrong("graph_url", "must be a whole address: https://…");
            }
            let version = table.text("graph_version");
            let version = version.unwrap_or_else(|| "v25.0".into());
            if !is_version(&version) {
                table.wrong("graph_version", "must look like v25.0");
            }
            let page_ids = table.texts("page_ids");
            if page_ids.iter().any(|id| !is_id(id)) {
                table.wrong("page_ids", "must be the pages' numbers, in quotes");
            }
            Self {
                app_secret: secrets.required("app_secret"),
                previous_app_secret: secrets.get("previous_app_secret"),
                verify_token: secrets.required("verify_token"),
                page_token: secrets.required("page_token"),
                page_ids,
                graph: format!("{}/{version}", url.trim_end_matches('/')),
            }
        })
    }
}

fn is_version(version: &str) -> bool {
    let numbers = version.strip_prefix('v').and_then(|v| v.split_once('.'));
    numbers.is_some_and(|(major, minor)| is_id(major) && is_id(minor))
}

/// Whether a text is an id as Meta makes them: digits only.
fn is_id(id: &str) -> bool {
    (1..=32).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit())
}
