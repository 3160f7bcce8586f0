//! What is wrong with a configuration: every mistake at once, each with file, line, key and what to do.
//!
//! A message may name keys, kinds and places, never the value of a secret.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// File it was read from.
    pub file: String,
    /// Every mistake, in the order of the file.
    pub problems: Vec<Problem>,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line it stands in; counts from 1.
    pub line: usize,
    /// Key it is about, as a path (`sources.web.kind`); empty for the file as a whole.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:{problem}", self.file)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.line, self.message)
        } else {
            write!(f, "{}: {}: {}", self.line, self.key, self.message)
        }
    }
}

/// In which line of which file each key stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) file: String,
    pub(super) lines: BTreeMap<String, usize>,
}

impl Places {
    /// The line of a key, else of the nearest table around it, else the first.
    fn line(&self, key: &str) -> usize {
        let mut path = key;
        loop {
            if let Some(line) = self.lines.get(path) {
                return *line;
            }
            match path.rfind(['.', '[']) {
                Some(cut) => path = &path[..cut],
                None => return 1,
            }
        }
    }
}

/// Gathers mistakes while a document is read or built.
#[derive(Debug, Default)]
pub(super) struct Problems(RefCell<Vec<(String, String)>>);

impl Problems {
    /// Notes a mistake at a key.
    pub(super) fn add(&self, key: impl Into<String>, message: impl Into<String>) {
        self.0.borrow_mut().push((key.into(), message.into()));
    }

    /// Whether a mistake was noted at this very key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.borrow().iter().any(|(noted, _)| noted == key)
    }

    /// Nothing, if nothing was noted; else everything that was, with its line.
    pub(super) fn into_result(self, places: &Places) -> Result<(), ConfigError> {
        let mut problems: Vec<_> = self
            .0
            .into_inner()
            .into_iter()
            .map(|(key, message)| Problem {
                line: places.line(&key),
                key,
                message,
            })
            .collect();
        if problems.is_empty() {
            return Ok(());
        }
        problems.sort_by(|a, b| (a.line, &a.key).cmp(&(b.line, &b.key)));
        Err(ConfigError {
            file: places.file.clone(),
            problems,
        })
    }
}

/// `path.key`, the key in quotes where TOML asks for them.
pub(super) fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let key = if bare {
        key.to_owned()
    } else {
        format!("{key:?}")
    };
    if path.is_empty() {
        key
    } else {
        format!("{path}.{key}")
    }
}

/// `a, b and c`-like list of choices for a message: `"a", "b", "c"`.
pub(super) fn choices<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = all.into_iter().map(|one| format!("\"{one}\"")).collect();
    if quoted.is_empty() {
        "none".into()
    } else {
        quoted.join(", ")
    }
}

/// ` Did you mean "…"?` if one of the choices is near.
pub(super) fn did_you_mean<'a>(
    given: &str,
    all: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    const NEAR: f64 = 0.75;
    all.into_iter()
        .map(|one| (strsim::normalized_damerau_levenshtein(given, one), one))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, one)| format!(" Did you mean \"{one}\"?"))
}
