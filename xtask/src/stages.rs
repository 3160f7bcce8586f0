//! The test command: every stage in turn, its time, and one closing line with the sums.

use crate::{deps, prepare, tidy};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How much to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything CI checks.
    All,
    /// What is quick enough to run after each edit.
    Quick,
}

/// Runs the stages; returns what failed. A stage that fails does not keep the later ones from being run.
pub(crate) fn run(root: &Path, extent: Extent) -> Vec<String> {
    let mut report = Report::default();
    report.stage("format", || cargo(root, &["fmt", "--all", "--check"], &[]));
    report.stage("lints", || {
        cargo(
            root,
            &[
                "clippy",
                "--quiet",
                "--workspace",
                "--all-targets",
                "--locked",
                "--",
                "-D",
                "warnings",
            ],
            &[],
        )
    });
    if extent == Extent::Quick {
        report.tests("unit tests", root, &["--workspace", "--lib", "--bins"]);
        report.stage("tidy", || tidy::check(root));
        return report.close();
    }
    report.stage("documentation", || {
        let strict = [("RUSTDOCFLAGS", "-D warnings")];
        cargo(
            root,
            &[
                "doc",
                "--quiet",
                "--workspace",
                "--no-deps",
                "--document-private-items",
                "--locked",
            ],
            &strict,
        )
    });
    report.stage("dependencies", || deps::check(root));
    report.stage("machine", || {
        prepare::machine();
        Vec::new()
    });
    report.stage_with_sums("examples", |sums| {
        tests(root, &["test", "--workspace", "--doc", "--locked"], sums)
    });
    report.tests("tests", root, &["--workspace"]);
    report.stage("tidy", || tidy::check(root));
    report.real_crm(root);
    report.close()
}

/// Passed, failed and skipped tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Sums {
    /// Adds what a test runner's summary line says; other lines add nothing.
    fn read(&mut self, line: &str) {
        let is_summary = line.contains("tests run:")
            || line.contains("test run:")
            || line.starts_with("test result:");
        if !is_summary {
            return;
        }
        let words: Vec<&str> = line
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|w| !w.is_empty())
            .collect();
        let count = |what: &str| {
            let at = words
                .windows(2)
                .find(|pair| pair[1] == what && pair[0].bytes().all(|b| b.is_ascii_digit()));
            at.and_then(|pair| pair[0].parse::<u64>().ok()).unwrap_or(0)
        };
        self.passed += count("passed");
        self.failed += count("failed") + count("timed");
        self.skipped += count("skipped") + count("ignored");
    }
}

#[derive(Debug, Default)]
struct Report {
    times: Vec<(&'static str, Duration, bool)>,
    problems: Vec<String>,
    notes: Vec<String>,
    sums: Sums,
}

impl Report {
    fn stage(&mut self, name: &'static str, work: impl FnOnce() -> Vec<String>) {
        self.stage_with_sums(name, |_| work());
    }

    fn stage_with_sums(&mut self, name: &'static str, work: impl FnOnce(&mut Sums) -> Vec<String>) {
        println!("== {name}");
        let started = Instant::now();
        let problems = work(&mut self.sums);
        for problem in &problems {
            println!("error: {problem}");
        }
        self.times
            .push((name, started.elapsed(), problems.is_empty()));
        self.problems.extend(problems);
    }

    /// Runs tests with nextest, or with cargo's own runner where that is missing.
    fn tests(&mut self, name: &'static str, root: &Path, which: &[&str]) {
        let version = Command::new(env!("CARGO"))
            .args(["nextest", "--version"])
            .output();
        let has_nextest = version.is_ok_and(|output| output.status.success());
        let mut words = if has_nextest {
            vec!["nextest", "run"]
        } else {
            vec!["test"]
        };
        words.extend(which);
        words.extend(["--locked", "--no-fail-fast"]);
        self.stage_with_sums(name, |sums| tests(root, &words, sums));
    }

    /// The test against a real CRM leaves a line behind that says whether it ran; not having run is never a pass.
    fn real_crm(&mut self, root: &Path) {
        let outcome = std::fs::read_to_string(crate::target_dir(root).join("real-crm/outcome"))
            .unwrap_or_default();
        if let Some(reason) = outcome.strip_prefix("not run: ") {
            self.sums.passed = self.sums.passed.saturating_sub(1);
            self.sums.skipped += 1;
            self.notes
                .push(format!("real CRM: not run: {}", reason.trim()));
        } else if outcome.trim() != "run" {
            self.problems.push(
                "the test against a real CRM said neither that it ran nor why not".to_owned(),
            );
        }
    }

    fn close(self) -> Vec<String> {
        println!("\n== summary");
        for (name, time, is_good) in &self.times {
            let word = if *is_good { "ok" } else { "FAILED" };
            println!("{name:<16}{:>8.1} s  {word}", time.as_secs_f64());
        }
        let total: Duration = self.times.iter().map(|(_, time, _)| *time).sum();
        println!("{:<16}{:>8.1} s", "in all", total.as_secs_f64());
        for note in &self.notes {
            println!("{note}");
        }
        let Sums {
            passed,
            failed,
            skipped,
        } = self.sums;
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        self.problems
    }
}

fn cargo(root: &Path, words: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let status = Command::new(env!("CARGO"))
        .args(words)
        .envs(variables.iter().copied())
        .current_dir(root)
        .status();
    failed(words, status.is_ok_and(|s| s.success()))
}

fn failed(words: &[&str], success: bool) -> Vec<String> {
    if success {
        Vec::new()
    } else {
        vec![format!("cargo {} failed", words.join(" "))]
    }
}

/// Runs a test command, passing its output on and summing up what it says.
fn tests(root: &Path, words: &[&str], sums: &mut Sums) -> Vec<String> {
    // What an earlier run left is not this run's word.
    let _ = std::fs::remove_file(crate::target_dir(root).join("real-crm/outcome"));
    let child = Command::new(env!("CARGO"))
        .args(words)
        .current_dir(root)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return vec![format!("cargo {}: {error}", words.join(" "))],
    };
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|s| Box::new(s) as _),
        child.stderr.take().map(|s| Box::new(s) as _),
    ];
    let readers: Vec<_> = streams
        .into_iter()
        .flatten()
        .map(|s| std::thread::spawn(|| pass_on(s)))
        .collect();
    for reader in readers {
        let part = reader.join().unwrap_or_default();
        sums.passed += part.passed;
        sums.failed += part.failed;
        sums.skipped += part.skipped;
    }
    failed(words, child.wait().is_ok_and(|s| s.success()))
}

fn pass_on(stream: Box<dyn Read + Send>) -> Sums {
    let mut sums = Sums::default();
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        sums.read(&line);
        println!("{line}");
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, passed: u64, failed: u64, skipped: u64) {
        let mut sums = Sums::default();
        sums.read(line);
        assert_eq!(
            sums,
            Sums {
                passed,
                failed,
                skipped
            },
            "{line}"
        );
    }

    #[test]
    fn both_runners_summaries_are_read() {
        check(
            "     Summary [   0.012s] 12 tests run: 12 passed, 3 skipped",
            12,
            0,
            3,
        );
        check(
            "     Summary [   9.1s] 14 tests run: 11 passed (1 slow), 2 failed, 1 timed out, 0 skipped",
            11,
            3,
            0,
        );
        check(
            "     Summary [   0.0s] 1 test run: 1 passed, 0 skipped",
            1,
            0,
            0,
        );
        check(
            "test result: ok. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out",
            3,
            1,
            2,
        );
        check("running 3 tests", 0, 0, 0);
    }
}
