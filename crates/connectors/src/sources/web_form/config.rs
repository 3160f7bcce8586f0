//! Settings of a web form source.

use crate::settings::{self, field};
use emanet_core::field::{Field, Invalid, Settings};
use emanet_core::secret::Secret;

/// Its settings, as people see them.
pub(super) const FIELDS: &[Field] = &[
    field(
        "thank_you_url",
        "Thank-you page",
        "Teşekkür sayfası",
        "Where a browser goes after sending the form. Without it, Emanet shows a short page of its own.",
    ),
    field(
        "honeypot",
        "Trap field",
        "Tuzak alan",
        "Name of a field that people do not see; what arrives with it filled in is kept as ignored. Default: emanet_website.",
    ),
    field(
        "dedup_window_seconds",
        "Time window for repeated sending",
        "Tekrar gönderim süresi",
        "The same content within this time is one lead, where the form sends no submission id. Default: 600.",
    ),
    field(
        "volatile_fields",
        "Fields that change by themselves",
        "Kendiliğinden değişen alanlar",
        "Names of fields that differ when one and the same submission is sent again (a timer, a token).",
    ),
    field(
        "consent_fields",
        "Consent boxes",
        "Onay kutuları",
        "Names of the check boxes that record consent (KVKK, İYS). One that is not sent was not ticked.",
    ),
    Field {
        secret: true,
        ..field(
            "secret",
            "Shared secret",
            "Ortak parola",
            "Optional, for programs: must come in the header X-Emanet-Secret, or as Authorization: Bearer.",
        )
    },
    Field {
        secret: true,
        ..field(
            "hmac_secret",
            "Signing secret",
            "İmza anahtarı",
            "Optional, for programs: the header X-Emanet-Signature must be sha256= and the HMAC of the raw body in hexadecimal.",
        )
    },
];

/// Settings of a web form source.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) thank_you_url: Option<String>,
    pub(super) honeypot: String,
    pub(super) dedup_window_seconds: i64,
    pub(super) volatile_fields: Vec<String>,
    pub(super) consent_fields: Vec<String>,
    pub(super) secret: Option<Secret>,
    pub(super) hmac_secret: Option<Secret>,
}

impl Config {
    pub(super) fn read(settings: &Settings) -> Result<Self, Vec<Invalid>> {
        settings::read(settings, |table, secrets| {
            let thank_you_url = table.text("thank_you_url");
            if thank_you_url
                .as_deref()
                .is_some_and(|url| !settings::is_web_address(url))
            {
                table.wrong("thank_you_url", "must be a whole address: https://…");
            }
            let window = table.number("dedup_window_seconds", 1..=86_400);
            Self {
                thank_you_url,
                // No form has a field of this name by chance, no browser fills it in, and programs that fill in everything do.
                honeypot: table
                    .text("honeypot")
                    .unwrap_or_else(|| "emanet_website".into()),
                dedup_window_seconds: window.and_then(|s| i64::try_from(s).ok()).unwrap_or(600),
                volatile_fields: table.texts("volatile_fields"),
                consent_fields: table.texts("consent_fields"),
                secret: secrets.get("secret"),
                hmac_secret: secrets.get("hmac_secret"),
            }
        })
    }
}
