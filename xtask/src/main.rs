//! The house: `cargo xtask test` is the one command that passes every check; `tidy` and `deps` are two of its stages.
//!
//! It must never need anything but cargo and the standard library's idea of a machine: it runs before anything is set up.
#![expect(
    clippy::print_stdout,
    reason = "a command-line tool; its output is what it is for"
)]

mod deps;
mod licence;
mod markdown;
mod prepare;
mod rust_code;
mod stages;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [--quick]   everything CI checks; --quick: format, lints, unit tests and tidy only
cargo xtask tidy             paths, commands, error codes and lists that prose names exist
cargo xtask deps             licences, bans, sources and unused dependencies (deny.toml)";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let root = root();
    let problems = match words.as_slice() {
        ["test"] => stages::run(&root, stages::Extent::All),
        ["test", "--quick"] => stages::run(&root, stages::Extent::Quick),
        ["tidy"] => tidy::check(&root),
        ["deps"] => deps::check(&root),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => vec![format!("unknown command\n{USAGE}")],
    };
    for problem in &problems {
        println!("error: {problem}");
    }
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Where cargo puts what it builds.
fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// The workspace's folder.
fn root() -> PathBuf {
    let mut here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.pop();
    here
}
