//! Looking at Rust files as text: which there are, whether one names a crate, how long its functions are.

use std::path::{Path, PathBuf};

/// All Rust files under a folder, build output left out, in a fixed order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    with_extension(folder, "rs")
}

/// All files of that extension under a folder; hidden folders, build output and packages of other languages left out.
pub(crate) fn with_extension(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let skipped = name == "target"
                || name == "node_modules"
                || name.to_string_lossy().starts_with('.');
            if path.is_dir() && !skipped {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Whether the code has the name as a word of its own.
pub(crate) fn names(code: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + name.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// A function and its number of lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Lines from `fn` to the closing brace.
    pub(crate) n_lines: usize,
}

/// The functions of formatted code. (`cargo fmt` closes a body at the indentation at which it was opened.)
pub(crate) fn functions(code: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indentation = line.len() - line.trim_start().len();
        let closes = |l: &&str| l.len() == indentation + 1 && l.ends_with('}');
        let is_declaration = lines[start..]
            .iter()
            .find(|l| l.ends_with([';', '{']))
            .is_some_and(|l| l.ends_with(';'));
        if is_declaration {
            continue;
        }
        if let Some(n) = lines[start..].iter().position(closes) {
            found.push(Function {
                name,
                n_lines: n + 1,
            });
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier = |word: &str| {
        matches!(
            word,
            "pub" | "async" | "const" | "unsafe" | "extern" | "default"
        ) || word.starts_with("pub(")
    };
    if !before.split_whitespace().all(is_qualifier) {
        return None;
    }
    after
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()
        .filter(|n| !n.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_only_as_a_whole_word() {
        assert!(names("use serde::Deserialize;", "serde"));
        assert!(!names("use serde_json::Value;", "serde"));
        assert!(!names("let myserde = 1;", "serde"));
        assert!(names("serde_json::from_str(serde::x)", "serde"));
    }

    #[test]
    fn functions_are_measured_from_fn_to_closing_brace() {
        let code = "trait T {\n    fn declared(&self);\n}\n\npub(crate) async fn outer(\n    a: u8,\n) -> u8 {\n    if a > 1 {\n        2\n    } else {\n        3\n    }\n}\n";
        assert_eq!(
            functions(code),
            [Function {
                name: "outer",
                n_lines: 9
            }]
        );
    }
}
