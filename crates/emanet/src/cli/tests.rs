//! The command line: what it takes, how it ends, what people read.

mod texts;

use super::args::{Cli, Command, When};
use super::{Exit, run};
use crate::telemetry::LogFormat;
use clap::{CommandFactory as _, Parser as _};
use jiff::{SignedDuration, Timestamp};
use std::path::{Path, PathBuf};

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("emanet").chain(line.split_whitespace()))
}

/// How a command line ends.
async fn exit(line: &str) -> Exit {
    match parse(line) {
        Err(error) if error.use_stderr() => Exit::Usage,
        Err(_) => Exit::Ok,
        Ok(cli) => match run(cli).await {
            Ok(()) => Exit::Ok,
            Err(failed) => failed.exit,
        },
    }
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

/// Design 6: the fixed points other programs rely on.
#[test]
fn the_fixed_points_parse() {
    for line in [
        "serve --data-dir d --listen 127.0.0.1:0 --config emanet.toml --json",
        "serve --json",
        "demo --json --leads 200 --seed 7",
        "status --json",
        "events list --json",
        "events show evt_00000000000000000000000000000000 --json",
        "dead list --json",
        "--data-dir d --json status",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
    let cli = parse("serve --data-dir d --listen [::1]:80 --log-format json").unwrap();
    assert_eq!(cli.common.data_dir, PathBuf::from("d"));
    let Command::Serve(serve) = cli.command else {
        panic!("serve is serve");
    };
    assert_eq!(serve.listen, "[::1]:80".parse().ok());
    assert_eq!(serve.log_format, LogFormat::Json);
    let Command::Demo(demo) = parse("demo").unwrap().command else {
        panic!("demo is demo");
    };
    assert_eq!((demo.leads, demo.seed), (300, None));
}

#[test]
fn slips_are_refused() {
    for line in [
        "",
        "evnts list",
        "serve --listen localhost",
        "demo --leads 0",
        "send --field name",
        "send --count 0",
        "events list --since yesterday",
        "events list --state lost",
        "events list --limit 5 --all",
        "events show evt_1 --raw --json",
        "dead resolve ded_1 --as replayed --note x",
        "dead resolve ded_1 --as discarded",
        "replay start",
        "replay stop rpl_1",
        "sandbox fail crm slow=often",
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.use_stderr(), "{line}");
    }
}

#[test]
fn a_time_is_a_time_or_an_age() {
    let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
    let check = |text: &str, expected: &str| {
        let when: When = text.parse().unwrap();
        assert_eq!(when.from(now).to_string(), expected, "{text}");
    };
    check("30m", "2026-11-30T11:30:00Z");
    check("12h", "2026-11-30T00:00:00Z");
    check("7d", "2026-11-23T12:00:00Z");
    check("2026-11-30T15:00:00+03:00", "2026-11-30T12:00:00Z");
    assert_eq!("0s".parse(), Ok(When::Ago(SignedDuration::ZERO)));
    for text in ["", "m", "-5m", "5", "5w", "5ğ", "9999999999d"] {
        assert!(text.parse::<When>().is_err(), "{text}");
    }
}

/// Every command says what it is for, and the exit codes stand in the help.
#[test]
fn help_says_what_each_command_does() {
    let mut command = Cli::command();
    let help = command.render_long_help().to_string();
    for name in [
        "serve",
        "demo",
        "apply",
        "config",
        "send",
        "events",
        "dead",
        "replay",
        "status",
        "doctor",
        "sandbox",
        "completions",
        "Exit codes:",
        "--data-dir",
        "--json",
    ] {
        assert!(help.contains(name), "{name} in {help}");
    }
    fn every(command: &clap::Command) {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for argument in command
            .get_arguments()
            .filter(|a| a.get_id() != "help" && a.get_id() != "version")
        {
            assert!(
                argument.get_help().is_some(),
                "{} {}",
                command.get_name(),
                argument.get_id()
            );
        }
        command.get_subcommands().for_each(every);
    }
    every(&command);
}

fn data_dir(outer: &Path) -> String {
    outer.join("data").display().to_string()
}

/// The codes of `emanet --help`.
#[tokio::test]
async fn every_ending_has_its_code() {
    let outer = tempfile::tempdir().unwrap();
    let dir = data_dir(outer.path());
    let file = outer.path().join("emanet.toml");
    let file_name = file.display();
    std::fs::write(&file, "[sources.web]\nkind = \"web_form\"\n").unwrap();
    let broken = outer.path().join("broken.toml");
    std::fs::write(&broken, "[sources.web]\nkind = \"web_from\"\n").unwrap();
    let broken = broken.display();
    let check = async |line: String, expected: Exit| {
        assert_eq!(exit(&line).await, expected, "{line}");
    };
    check("--help".into(), Exit::Ok).await;
    check("statsu".into(), Exit::Usage).await;
    check(format!("status --data-dir {dir}"), Exit::Unreachable).await;
    check(format!("config check {file_name}"), Exit::Ok).await;
    check(format!("config check {broken}"), Exit::Refused).await;
    check("config check /no/such/file.toml".into(), Exit::NotFound).await;
    check(
        format!("apply {file_name} --dry-run --data-dir {dir}"),
        Exit::Unreachable,
    )
    .await;
    check(format!("apply {file_name} --data-dir {dir}"), Exit::Ok).await;
    check(format!("apply {broken} --data-dir {dir}"), Exit::Refused).await;
    check(format!("status --data-dir {dir} --json"), Exit::Ok).await;
    check(format!("events list --data-dir {dir} --json"), Exit::Ok).await;
    check(
        format!("events list --source nowhere --data-dir {dir}"),
        Exit::Refused,
    )
    .await;
    check(
        format!("events show evt_1 --data-dir {dir}"),
        Exit::NotFound,
    )
    .await;
    check(format!("dead list --resolved --data-dir {dir}"), Exit::Ok).await;
    check(format!("replay status --data-dir {dir}"), Exit::Ok).await;
    check(
        format!("replay status rpl_1 --data-dir {dir}"),
        Exit::NotFound,
    )
    .await;
    check(format!("doctor --deep --data-dir {dir}"), Exit::Ok).await;
    check(format!("config show --data-dir {dir}"), Exit::Ok).await;
    check(format!("send --data-dir {dir}"), Exit::Unreachable).await;
    check(format!("sandbox list --data-dir {dir}"), Exit::Refused).await;
    check(
        format!("--workspace klinik status --data-dir {dir}"),
        Exit::Refused,
    )
    .await;
    check("completions bash".into(), Exit::Ok).await;
}

/// The embedded database has one writer: while a server has it, the command line goes through the server's socket, and
/// when the socket is gone it does not go behind the server's back.
#[tokio::test]
async fn a_held_directory_is_not_opened() {
    let outer = tempfile::tempdir().unwrap();
    let dir = data_dir(outer.path());
    let file = outer.path().join("emanet.toml");
    std::fs::write(&file, "").unwrap();
    assert_eq!(
        exit(&format!("apply {} --data-dir {dir}", file.display())).await,
        Exit::Ok
    );
    let lock = crate::config::data_dir::DataDir::new(&dir).lock().unwrap();
    assert_eq!(
        exit(&format!("status --data-dir {dir}")).await,
        Exit::Unreachable
    );
    drop(lock);
    assert_eq!(exit(&format!("status --data-dir {dir}")).await, Exit::Ok);
}

mod over_the_socket {
    use super::*;
    use crate::api::trace;
    use crate::env::Env;
    use crate::http_server::{self, Limits, Listener};
    use axum::routing::get;
    use axum::{Json, Router};
    use serde_json::json;
    use tokio::sync::watch;

    /// What a command line gets from a server's socket.
    #[tokio::test]
    async fn a_running_server_is_asked() {
        let outer = tempfile::tempdir().unwrap();
        let listener = Listener::local(&outer.path().join("emanet.sock")).unwrap();
        let status = |closes: bool| json!({ "received": 3, "closes": closes, "by_class": {} });
        let app = Router::new()
            .route("/api/v1/status", get(async move || Json(status(false))))
            .route(
                "/api/v1/events/evt_1/raw",
                get(async || vec![0xff, b'{', 0]),
            )
            .route(
                "/api/v1/events",
                get(async || Json(json!({ "items": [], "next": null }))),
            );
        let (stop, stopping) = watch::channel(false);
        let server = tokio::spawn(http_server::serve(
            listener,
            trace::traced(app, Env::system()),
            Limits::default(),
            stopping,
        ));
        let dir = outer.path().display();
        assert_eq!(
            exit(&format!("events list --data-dir {dir}")).await,
            Exit::Ok
        );
        let raw = |id: &str| format!("events show {id} --raw --data-dir {dir}");
        assert_eq!(exit(&raw("evt_1")).await, Exit::Ok, "it need not be JSON");
        assert_ne!(exit(&raw("evt_2")).await, Exit::Ok);
        let unclosed = exit(&format!("status --json --data-dir {dir}")).await;
        assert_eq!(
            unclosed,
            Exit::Failed,
            "a sum that does not close is no success"
        );
        assert_eq!(
            exit(&format!("doctor --data-dir {dir}")).await,
            Exit::Failed,
            "501 is its fault"
        );
        stop.send(true).unwrap();
        server.await.unwrap();
        let gone = exit(&format!("status --data-dir {dir}")).await;
        assert_eq!(gone, Exit::Unreachable);
    }
}
