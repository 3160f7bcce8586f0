//! Secrets as the configuration gives them: by reference (`{ env = … }`, `{ file = … }`), or as they are.
//!
//! A reference is kept as one and resolved each time the configuration is put to use (design 9.9); what stands in the file
//! itself is sealed with the document.

use emanet_core::secret::Secret;
use serde_json::Value;
use std::path::PathBuf;

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// An environment variable of the server.
    Env(String),
    /// A file the server can read.
    File(PathBuf),
    /// The text that stands in the configuration.
    Literal(Secret),
}

/// Turns references into secrets; says in one sentence why it cannot.
pub type Resolve<'a> = &'a dyn Fn(&Reference) -> Result<Secret, String>;

const FORMS: &str = r#"expected a text, { env = "NAME" } or { file = "/full/path" }; keep secrets out of the file where you can"#;

impl Reference {
    /// Reads a value of the document.
    ///
    /// # Errors
    /// What is wrong with it, without showing it.
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) if text.is_empty() => Err(format!("the secret is empty; {FORMS}")),
            Value::String(text) => Ok(Self::Literal(Secret::new(text.as_str()))),
            Value::Object(table) if table.len() == 1 => {
                match (
                    table.get("env").and_then(Value::as_str),
                    table.get("file").and_then(Value::as_str),
                ) {
                    (Some(name), None) if is_variable(name) => Ok(Self::Env(name.into())),
                    (Some(_), None) => {
                        Err("`env` wants the name of an environment variable".into())
                    }
                    (None, Some(path)) if path.starts_with('/') => Ok(Self::File(path.into())),
                    (None, Some(_)) => Err(
                        "`file` wants a full path: the server may be started from any folder"
                            .into(),
                    ),
                    _ => Err(FORMS.into()),
                }
            }
            _ => Err(FORMS.into()),
        }
    }

    /// As [`Self::resolve`], for a check outside the server: a variable that is missing here says nothing of the server's.
    ///
    /// # Errors
    /// Why it is not to be had here.
    pub fn resolve_here(&self) -> Result<Secret, String> {
        match self {
            Self::Env(name) if std::env::var_os(name).is_none() => Err(format!(
                "the environment variable {name} is not set here; it must be set where the server runs"
            )),
            other => other.resolve(),
        }
    }

    /// Fetches the secret from the environment or the file. One newline at the end of a file is not part of it.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub fn resolve(&self) -> Result<Secret, String> {
        match self {
            Self::Literal(secret) => Ok(secret.clone()),
            Self::Env(name) => match std::env::var(name) {
                Ok(text) if !text.is_empty() => Ok(Secret::new(text)),
                Ok(_) => Err(format!("the environment variable {name} is empty")),
                Err(std::env::VarError::NotPresent) => Err(format!(
                    "the environment variable {name} is not set where the server runs"
                )),
                Err(std::env::VarError::NotUnicode(_)) => {
                    Err(format!("the environment variable {name} is not UTF-8"))
                }
            },
            Self::File(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
                let text = text.strip_suffix('\n').unwrap_or(&text);
                let text = text.strip_suffix('\r').unwrap_or(text);
                if text.is_empty() {
                    return Err(format!("{} is empty", path.display()));
                }
                Ok(Secret::new(text))
            }
        }
    }
}

/// Whether this can be the name of an environment variable.
fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
