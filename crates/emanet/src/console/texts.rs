//! Every text of the console, in both languages under one key.

use axum::http::{HeaderMap, header};
use std::collections::BTreeMap;

/// A language of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// English.
    En,
    /// Turkish.
    Tr,
}

impl Language {
    /// The language a browser asks for first: Turkish if it says so, else English.
    pub fn of(headers: &HeaderMap) -> Self {
        let wanted = headers
            .get(header::ACCEPT_LANGUAGE)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        if wanted.trim_start().to_ascii_lowercase().starts_with("tr") {
            Self::Tr
        } else {
            Self::En
        }
    }

    /// Its code.
    pub fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Tr => "tr",
        }
    }
}

/// All texts of a language by key.
pub fn all(language: Language) -> BTreeMap<&'static str, &'static str> {
    let pick = |(key, en, tr): &(&'static str, &'static str, &'static str)| match language {
        Language::En => (*key, *en),
        Language::Tr => (*key, *tr),
    };
    TEXTS.iter().map(pick).collect()
}

/// Key, English, Turkish.
const TEXTS: &[(&str, &str, &str)] = &[
    ("title", "Emanet", "Emanet"),
    (
        "all_well",
        "All is well: every lead is where it should be.",
        "Her şey yolunda: her lead olması gereken yerde.",
    ),
    ("look_here", "Look here first", "Önce buraya bakın"),
    (
        "sum_open",
        "The sum does not close. Run “emanet doctor”.",
        "Toplam tutmuyor. “emanet doctor” komutunu çalıştırın.",
    ),
    ("received", "received", "alınan"),
    ("pending", "in progress", "işlemde"),
    ("held", "held", "bekletilen"),
    ("done", "delivered", "teslim edilen"),
    ("dead", "dead letters", "teslim edilemeyen"),
    ("ignored", "ignored", "yok sayılan"),
    ("erased", "erased", "silinen"),
    ("is_pending", "in progress", "işlemde"),
    ("is_held", "held", "bekletiliyor"),
    ("is_done", "delivered", "teslim edildi"),
    ("is_dead", "dead letter", "teslim edilemedi"),
    ("is_ignored", "ignored", "yok sayıldı"),
    ("is_erased", "erased", "silindi"),
    ("oldest", "oldest waiting", "en eski bekleyen"),
    ("seconds", "s", "sn"),
    ("targets", "Paused", "Duraklatılanlar"),
    ("paused_down", "does not answer", "yanıt vermiyor"),
    ("paused_throttled", "asked to wait", "beklememizi istedi"),
    (
        "paused_config",
        "is set up wrong; somebody must act",
        "yanlış ayarlı; birinin düzeltmesi gerek",
    ),
    ("leads_held", "leads held", "lead bekletiliyor"),
    ("latest", "Latest leads", "Son gelen leadler"),
    (
        "no_events",
        "No lead has arrived yet. Send the first one:",
        "Henüz lead gelmedi. İlkini gönderin:",
    ),
    ("time", "received at", "alındığı zaman"),
    ("source", "source", "kaynak"),
    ("name", "name", "ad"),
    ("state", "state", "durum"),
    ("sandbox", "Sandbox CRM", "Deneme CRM’i"),
    (
        "sandbox_empty",
        "Nothing has arrived in this CRM yet.",
        "Bu CRM’e henüz bir şey gelmedi.",
    ),
    ("object", "object", "nesne"),
    ("external_id", "external id", "harici kimlik"),
    ("fields", "fields", "alanlar"),
    ("more", "older", "daha eski"),
    ("back", "Overview", "Genel bakış"),
    (
        "login_needed",
        "Please log in with the link that “emanet serve” printed.",
        "Lütfen “emanet serve” komutunun yazdırdığı bağlantıyla giriş yapın.",
    ),
    (
        "login_used",
        "This login does not work (any more); each works once. A restart of “emanet serve” prints a new one.",
        "Bu giriş bağlantısı geçersiz; her biri bir kez çalışır. “emanet serve” yeniden başlatıldığında yenisini yazdırır.",
    ),
    (
        "not_found",
        "There is no such page.",
        "Böyle bir sayfa yok.",
    ),
    (
        "unavailable",
        "The data cannot be read right now. Leads are still accepted. Try again in a moment.",
        "Veriler şu anda okunamıyor. Leadler alınmaya devam ediyor. Birazdan yeniden deneyin.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_exists_in_both_languages_once() {
        assert_eq!(all(Language::En).len(), TEXTS.len());
        for (key, en, tr) in TEXTS {
            assert!(!en.is_empty() && !tr.is_empty(), "{key}");
        }
        let texts = all(Language::Tr);
        for state in ["pending", "held", "done", "dead", "ignored", "erased"] {
            assert!(
                texts.contains_key(format!("is_{state}").as_str()),
                "{state}"
            );
        }
    }
}
