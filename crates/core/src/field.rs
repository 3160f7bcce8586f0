//! What a connector's configuration consists of: one list drives validation, masking, CLI, docs and (later) the console form.

use crate::secret::Secret;
use std::collections::BTreeMap;

/// One setting of a connector.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Key in the configuration.
    pub key: &'static str,
    /// What a person sees, English.
    pub label_en: &'static str,
    /// What a person sees, Turkish.
    pub label_tr: &'static str,
    /// What it is for and where to find it, English.
    pub help: &'static str,
    /// Must be given.
    pub required: bool,
    /// Sealed at rest, never shown.
    pub secret: bool,
}

/// The configuration handed to a connector when it is built: plain values as written, secrets resolved and apart.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Every key but the secret ones, as JSON (nested tables stay nested).
    pub values: serde_json::Map<String, serde_json::Value>,
    /// Secret fields by key.
    pub secrets: BTreeMap<String, Secret>,
}

/// A setting that is wrong: where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Path of the key below the connector's table, dots between (`objects.lead.create.path`).
    pub key: String,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl Invalid {
    /// A wrong setting.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }
}
