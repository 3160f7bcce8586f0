//! The command line: parses, asks `/api/v1` or starts the program, prints.
//!
//! Data goes to standard output, everything else to standard error; exit codes are in [`Exit`].

mod args;
mod changing;
mod client;
mod exit;
mod looking;
mod output;
mod send;
mod story;
#[cfg(test)]
mod tests;

use crate::app;
use crate::config::data_dir::DataDir;
use crate::env::Env;
use args::{Cli, Command, Common, Config, Dead, Events, Replay, Sandbox};
use clap::{CommandFactory as _, Parser as _};
use client::{Client, Missing};
pub use exit::{Exit, Failed};
use output::{Output, remark};
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            remark(&format!("error: no threads can be started: {error}"));
            return Exit::Failed.into();
        }
    };
    match runtime.block_on(run(cli)) {
        Ok(()) => Exit::Ok.into(),
        Err(failed) => {
            if !failed.message.is_empty() {
                remark(&format!("error: {}", failed.message));
            }
            failed.exit.into()
        }
    }
}

/// Help and version are answers, anything else a wrong command line.
fn usage(error: &clap::Error) -> ExitCode {
    match error.print() {
        Ok(()) if !error.use_stderr() => Exit::Ok.into(),
        Ok(()) | Err(_) => Exit::Usage.into(),
    }
}

async fn run(cli: Cli) -> Result<(), Failed> {
    let common = cli.common;
    let output = Output { json: common.json };
    match cli.command {
        Command::Serve(args) => {
            app::serve::serve(app::serve::ServeOptions {
                data_dir: common.data_dir,
                listen: args.listen,
                config: args.config,
                json: common.json,
                log_format: args.log_format,
                log_filter: args.log,
            })
            .await?;
            Ok(())
        }
        Command::Demo(args) => {
            app::demo::demo(app::demo::DemoOptions {
                leads: args.leads,
                seed: args.seed,
                json: common.json,
                keep: args.keep,
            })
            .await?;
            Ok(())
        }
        Command::Completions { shell } => completions(output, shell),
        Command::Config(Config::Check { file }) => changing::config_check(output, &file),
        command => ask(&common, output, command).await,
    }
}

/// The commands that work on an installation.
async fn ask(common: &Common, output: Output, command: Command) -> Result<(), Failed> {
    let env = Env::system();
    let missing = match &command {
        Command::Apply(args) if !args.dry_run => Missing::Make,
        _ => Missing::Refuse,
    };
    let data_dir = DataDir::new(&common.data_dir);
    let client = Client::open(&data_dir, common.workspace.clone(), missing).await?;
    let done = dispatch(&client, output, &env, command).await;
    let closed = client.close().await;
    done.and(closed)
}

async fn dispatch(
    client: &Client,
    output: Output,
    env: &Env,
    command: Command,
) -> Result<(), Failed> {
    match command {
        Command::Apply(args) => changing::apply(client, output, args).await,
        Command::Config(_) => changing::config_show(client, output).await,
        Command::Send(args) => send::send(client, output, env, args).await,
        Command::Status => looking::status(client, output).await,
        Command::Doctor(args) => looking::doctor(client, output, args).await,
        Command::Events(Events::List(args)) => looking::events(client, output, env, args).await,
        Command::Events(Events::Show { id, raw }) => story::show(client, output, &id, raw).await,
        Command::Dead(Dead::List {
            selection,
            resolved,
            rows,
        }) => looking::dead_letters(client, output, env, selection, resolved, &rows).await,
        Command::Dead(Dead::Show { id }) => looking::dead_letter(client, output, &id).await,
        Command::Dead(Dead::Resolve(args)) => changing::resolve(client, output, args).await,
        Command::Replay(Replay::Start(args)) => {
            changing::replay_start(client, output, env, *args).await
        }
        Command::Replay(Replay::Status { id }) => changing::replay_status(client, output, id).await,
        Command::Replay(Replay::Stop { id, note }) => {
            changing::replay_stop(client, output, &id, &note).await
        }
        Command::Sandbox(Sandbox::List {
            destination,
            object,
            rows,
        }) => looking::sandbox(client, output, &destination, object, &rows).await,
        Command::Sandbox(Sandbox::Fail {
            destination,
            faults,
        }) => changing::sandbox_fail(client, output, &destination, faults).await,
        Command::Sandbox(Sandbox::Heal { destination }) => {
            changing::sandbox_heal(client, output, &destination).await
        }
        Command::Serve(_) | Command::Demo(_) | Command::Completions { .. } => {
            unreachable!("answered without an installation")
        }
    }
}

fn completions(output: Output, shell: clap_complete::Shell) -> Result<(), Failed> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "emanet", &mut script);
    Ok(output.text(&String::from_utf8_lossy(&script))?)
}
