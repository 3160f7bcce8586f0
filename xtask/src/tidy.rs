//! Prose rots; this checks it. What Markdown names (paths, commands, error codes) must exist, both READMEs must say the same
//! commands, each connector folder must be in its list, and nothing committed may point at one particular machine.

use crate::markdown::Page;
use crate::rust_code;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Functions from this length on are listed for a reviewer's eye; a mirror, not a gate.
const LONG_FUNCTION_LINES: usize = 70;

/// What is not tidy. Lists long functions on the way.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let pages: Vec<(PathBuf, Page)> = rust_code::with_extension(root, "md")
        .into_iter()
        .filter_map(|path| {
            Some((
                path.clone(),
                Page::read(&std::fs::read_to_string(path).ok()?),
            ))
        })
        .collect();
    let mut problems = Vec::new();
    for (path, page) in &pages {
        let place = relative(root, path);
        problems.extend(
            missing_paths(root, path, page)
                .map(|(line, it)| format!("{place}:{line}: {it} does not exist")),
        );
    }
    problems.extend(unknown_codes(root, &pages));
    problems.extend(unknown_commands(root, &pages));
    problems.extend(readmes_differ(root));
    problems.extend(unlisted_connectors(root));
    problems.extend(machine_traces(root));
    problems.extend(unfinished_code(root));
    list_long_functions(root);
    problems
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Links to files, and code spans that look like a path of this repository.
fn missing_paths<'a>(
    root: &'a Path,
    path: &'a Path,
    page: &'a Page,
) -> impl Iterator<Item = (usize, String)> + 'a {
    let folder = path.parent().unwrap_or(root);
    let links = page.links.iter().filter_map(move |(line, target)| {
        let file = target.split('#').next().unwrap_or_default();
        let is_ours = !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:");
        (is_ours && !folder.join(file).exists()).then(|| (*line, target.clone()))
    });
    let spans = page.spans.iter().filter_map(move |(line, span)| {
        let is_path = ["crates/", "docs/", "xtask/", "bench/", "clients/", ".ci/"]
            .iter()
            .any(|top| span.starts_with(top));
        let is_plain = !span.contains(['*', '<', '{', ' ', '…']);
        (is_path && is_plain && !root.join(span).exists()).then(|| (*line, span.clone()))
    });
    links.chain(spans)
}

/// Error codes (`CORE-REQ-0001`) that the table does not have.
fn unknown_codes(root: &Path, pages: &[(PathBuf, Page)]) -> Vec<String> {
    let table =
        std::fs::read_to_string(root.join("crates/core/src/error_code.rs")).unwrap_or_default();
    let is_code = |text: &&str| {
        let parts: Vec<&str> = text.split('-').collect();
        matches!(parts.as_slice(), [domain, area, number]
            if [domain, area].iter().all(|p| !p.is_empty() && p.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()))
                && number.len() == 4 && number.chars().all(|c| c.is_ascii_digit()))
    };
    let mut problems = Vec::new();
    for (path, page) in pages {
        for (line, span) in &page.spans {
            let words = span.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
            for code in words.filter(is_code).filter(|code| !table.contains(code)) {
                problems.push(format!(
                    "{}:{line}: no error code {code}",
                    relative(root, path)
                ));
            }
        }
    }
    problems
}

/// `emanet …` in shell blocks and code spans: the subcommand and each long option must be in the program's own help.
fn unknown_commands(root: &Path, pages: &[(PathBuf, Page)]) -> Vec<String> {
    let mut uses = BTreeSet::new();
    for (path, page) in pages {
        let place = relative(root, path);
        let spans = page.spans.iter().cloned();
        for (line, text) in page.commands().into_iter().chain(spans) {
            if let Some(words) = emanet_words(&text) {
                uses.insert((words, format!("{place}:{line}")));
            }
        }
    }
    if uses.is_empty() {
        return Vec::new();
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "emanet"])
        .current_dir(root)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return vec![
            "the program does not build, so the commands in Markdown cannot be checked".to_owned(),
        ];
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = target.join("debug/emanet");
    uses.iter()
        .filter_map(|(words, place)| Some(format!("{place}: {}", refused(&program, words)?)))
        .collect()
}

/// The words after `emanet` in a command line; `None` if the line does not run it.
fn emanet_words(text: &str) -> Option<Vec<String>> {
    let clean = text.replace(['[', ']'], " ");
    let mut words = clean.split_whitespace();
    words.find(|word| *word == "emanet" || word.ends_with("/emanet"))?;
    let mine: Vec<String> = words
        .take_while(|w| !matches!(*w, "|" | "&&" | ";" | "&" | ">"))
        .map(str::to_owned)
        .collect();
    (!mine.is_empty()).then_some(mine)
}

fn refused(program: &Path, words: &[String]) -> Option<String> {
    let is_option = |word: &&String| word.starts_with('-');
    let command: Vec<&String> = words.iter().take_while(|w| !is_option(w)).collect();
    let shown = format!("emanet {}", words.join(" "));
    let help = match Command::new(program).args(&command).arg("--help").output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        _ => return Some(format!("there is no `{shown}`")),
    };
    let option = |word: &String| word.split('=').next().unwrap_or_default().to_owned();
    let long = words
        .iter()
        .filter(|w| w.starts_with("--") && w.len() > 2)
        .map(option);
    long.into_iter()
        .find(|o| !help.contains(o.as_str()))
        .map(|o| format!("`{shown}` has no {o}"))
}

/// Both READMEs: the same headings and the same commands in the same order.
fn readmes_differ(root: &Path) -> Vec<String> {
    let page = |name: &str| std::fs::read_to_string(root.join(name)).map(|text| Page::read(&text));
    let (Ok(english), Ok(turkish)) = (page("README.md"), page("README.tr.md")) else {
        return vec!["README.md or README.tr.md is missing".to_owned()];
    };
    let mut problems = Vec::new();
    if english.headings != turkish.headings {
        problems.push("README.md and README.tr.md have different headings".to_owned());
    }
    let commands = |page: &Page| {
        page.commands()
            .into_iter()
            .map(|(_, command)| command)
            .collect::<Vec<_>>()
    };
    let (english, turkish) = (commands(&english), commands(&turkish));
    let differing = english.iter().zip(&turkish).find(|(e, t)| e != t);
    if let Some((english, turkish)) = differing {
        problems.push(format!(
            "README.md says `{english}` where README.tr.md says `{turkish}`"
        ));
    } else if english.len() != turkish.len() {
        problems.push("README.md and README.tr.md have different numbers of commands".to_owned());
    }
    problems
}

/// Each folder of a connector has its `mod` line and its entry in the list.
fn unlisted_connectors(root: &Path) -> Vec<String> {
    let source = root.join("crates/connectors/src");
    let mut problems = Vec::new();
    for list in ["sources", "destinations"] {
        let code =
            std::fs::read_to_string(source.join(list).with_extension("rs")).unwrap_or_default();
        let folders = std::fs::read_dir(source.join(list))
            .into_iter()
            .flatten()
            .flatten();
        for name in folders
            .filter(|e| e.path().is_dir())
            .map(|e| e.file_name().to_string_lossy().into_owned())
        {
            if !code.contains(&format!("mod {name};")) || !code.contains(&format!("{name}::")) {
                problems.push(format!("the connector {list}/{name} is not in {list}.rs"));
            }
        }
    }
    problems
}

/// Absolute paths of somebody's machine, and mirrors of registries, in anything committed.
fn machine_traces(root: &Path) -> Vec<String> {
    let homes = ["work", "root", "home"].map(|top| format!("/{top}/"));
    let hosts = ["registry", "index", "mirror", "mirrors"].map(|first| format!("://{first}."));
    let mut problems = Vec::new();
    for file in committed(root) {
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            let at_start = |home: &String| {
                line.match_indices(home.as_str()).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~}/".contains(c))
                })
            };
            if homes.iter().any(at_start) || hosts.iter().any(|host| line.contains(host.as_str())) {
                problems.push(format!(
                    "{file}:{}: names a path or registry of one machine",
                    number + 1
                ));
            }
        }
    }
    problems
}

fn committed(root: &Path) -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files"])
        .current_dir(root)
        .output();
    let text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Tests that never run, and code that says it is not there yet.
fn unfinished_code(root: &Path) -> Vec<String> {
    let marks = ["#[ignore", "todo!(", "unimplemented!("];
    let mut problems = Vec::new();
    for file in rust_code::files(&root.join("crates")) {
        let code = std::fs::read_to_string(&file).unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            if let Some(mark) = marks
                .iter()
                .find(|mark| line.trim_start().starts_with(**mark))
            {
                problems.push(format!("{}:{}: {mark}", relative(root, &file), number + 1));
            }
        }
    }
    problems
}

fn list_long_functions(root: &Path) {
    for file in rust_code::files(root) {
        let code = std::fs::read_to_string(&file).unwrap_or_default();
        for function in rust_code::functions(&code)
            .iter()
            .filter(|f| f.n_lines > LONG_FUNCTION_LINES)
        {
            println!(
                "note: {} in {} has {} lines",
                function.name,
                relative(root, &file),
                function.n_lines
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_command_end_at_the_next_command() {
        let words = |text| emanet_words(text).map(|w| w.join(" "));
        assert_eq!(
            words("emanet status --json | jq .held"),
            Some("status --json".to_owned())
        );
        assert_eq!(
            words("./target/release/emanet serve"),
            Some("serve".to_owned())
        );
        assert_eq!(
            words("emanet serve [--data-dir DIR]"),
            Some("serve --data-dir DIR".to_owned())
        );
        assert_eq!(words("cargo build -p emanet"), None);
        assert_eq!(words("emanet-core"), None);
    }
}
