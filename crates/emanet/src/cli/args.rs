//! The command line as clap reads it. Names and options of `serve`, `demo`, `status` and the lists are fixed points (design 6).

use super::exit;
use crate::telemetry::LogFormat;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Takes every lead in, stores it durably, carries it to the CRM, and can say where each lead is.
#[derive(Debug, Parser)]
#[command(name = "emanet", version, after_help = exit::HELP, disable_help_subcommand = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Where the help lists them, apart from a command's own.
const FOR_ALL: &str = "Options of every command";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(super) struct Common {
    /// The data directory
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "emanet-data",
        env = "EMANET_DATA_DIR",
        help_heading = FOR_ALL
    )]
    pub(super) data_dir: PathBuf,
    /// Write JSON for programs
    #[arg(long, global = true, help_heading = FOR_ALL)]
    pub(super) json: bool,
    /// Only this workspace
    #[arg(long, global = true, value_name = "NAME", help_heading = FOR_ALL)]
    pub(super) workspace: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the server
    Serve(Serve),
    /// Run a few hundred leads through a CRM that fails in every way
    Demo(Demo),
    /// Put a configuration file into force
    Apply(Apply),
    /// Look at a configuration, or check one
    #[command(subcommand)]
    Config(Config),
    /// Send test leads to a source, signed as its platform does
    Send(Send),
    /// Where each lead is
    #[command(subcommand)]
    Events(Events),
    /// What could not be delivered
    #[command(subcommand)]
    Dead(Dead),
    /// Send dead letters and held leads again, in stages
    #[command(subcommand)]
    Replay(Replay),
    /// How it stands: counts, oldest lead, open dead letters
    Status,
    /// Check everything this installation rests on
    Doctor(Doctor),
    /// The small CRM inside the product
    #[command(subcommand)]
    Sandbox(Sandbox),
    /// Write a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address and port to listen on [default: that of the configuration, else 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: Option<SocketAddr>,
    /// Put this configuration into force first, if it has changed
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// How log lines look
    #[arg(long, value_enum, default_value_t)]
    pub(super) log_format: LogFormat,
    /// Which log lines are written
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "EMANET_LOG"
    )]
    pub(super) log: String,
}

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Leads to send
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) leads: u32,
    /// Seed of everything random in it
    #[arg(long, value_name = "S")]
    pub(super) seed: Option<u64>,
    /// Keep it running at the end, for a look at the console
    #[arg(long)]
    pub(super) keep: bool,
}

#[derive(Debug, Args)]
pub(super) struct Apply {
    /// The file, usually emanet.toml
    pub(super) file: PathBuf,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Config {
    /// Check a file without applying it; secrets it refers to are looked for here
    Check {
        /// The file, usually emanet.toml
        file: PathBuf,
    },
    /// Show the configuration in force, secrets covered
    Show,
}

#[derive(Debug, Args)]
pub(super) struct Send {
    /// Name of the source
    #[arg(long, value_name = "NAME", default_value = "web")]
    pub(super) source: String,
    /// How many leads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) count: u32,
    /// A field of the lead; may be given several times, and replaces the invented one of that name
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(super) fields: Vec<(String, String)>,
    /// Where to send them: a server, or the full intake address [default: the running server]
    #[arg(long, value_name = "URL")]
    pub(super) to: Option<url::Url>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Events {
    /// List events, newest first
    List(EventsList),
    /// Tell the whole story of one lead
    Show {
        /// Id of the event (evt_…)
        id: String,
        /// Only the body of the request, byte for byte as it was received
        #[arg(long, conflicts_with = "json")]
        raw: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct EventsList {
    /// Only of this source
    #[arg(long, value_name = "NAME")]
    pub(super) source: Option<String>,
    /// Only in this state
    #[arg(long, value_enum)]
    pub(super) state: Option<EventState>,
    #[command(flatten)]
    pub(super) range: Range,
    #[command(flatten)]
    pub(super) rows: Rows,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum EventState {
    Pending,
    Held,
    Done,
    Dead,
    Ignored,
    Erased,
}

/// A range of time, and a word.
#[derive(Debug, Args)]
pub(super) struct Range {
    /// Not before: 2026-11-30T12:00:00Z, or an age like 30m, 12h, 7d
    #[arg(long, value_name = "TIME")]
    pub(super) since: Option<When>,
    /// Before: a time or an age
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<When>,
    /// With this text in what is shown
    #[arg(long, value_name = "TEXT")]
    pub(super) text: Option<String>,
}

/// How much of a list.
#[derive(Debug, Args)]
pub(super) struct Rows {
    /// At most this many rows
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) limit: u32,
    /// All rows
    #[arg(long, conflicts_with = "limit")]
    pub(super) all: bool,
}

/// Which dead letters.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Only of this source
    #[arg(long, value_name = "NAME")]
    pub(super) source: Option<String>,
    /// Only for this destination
    #[arg(long, value_name = "NAME")]
    pub(super) destination: Option<String>,
    /// Only of this class
    #[arg(long, value_enum)]
    pub(super) class: Option<Class>,
    /// Only of this cause
    #[arg(long, value_name = "CAUSE")]
    pub(super) cause: Option<String>,
    /// Only of this step
    #[arg(long, value_name = "NAME")]
    pub(super) step: Option<String>,
    #[command(flatten)]
    pub(super) range: Range,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Class {
    Transient,
    PermanentData,
    PermanentConfig,
    Unknown,
}

#[derive(Debug, Subcommand)]
pub(super) enum Dead {
    /// List dead letters, newest first
    List {
        #[command(flatten)]
        selection: Selection,
        /// Resolved ones as well
        #[arg(long)]
        resolved: bool,
        #[command(flatten)]
        rows: Rows,
    },
    /// Show one dead letter
    Show {
        /// Its id (ded_…)
        id: String,
    },
    /// Settle one without sending it again (to send again: emanet replay start --dead-letter)
    Resolve(Resolve),
}

#[derive(Debug, Args)]
pub(super) struct Resolve {
    /// Its id (ded_…)
    pub(super) id: String,
    /// How it was settled
    #[arg(long = "as", value_enum)]
    pub(super) resolution: Resolution,
    /// Id of the object in the destination, if it is there
    #[arg(long, value_name = "ID")]
    pub(super) object_id: Option<String>,
    /// What was done, or why it is left
    #[arg(long, value_name = "TEXT")]
    pub(super) note: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Resolution {
    /// It is in the destination now, or was all along
    FixedManually,
    /// It will not be delivered
    Discarded,
}

#[derive(Debug, Subcommand)]
pub(super) enum Replay {
    /// Start one; without a selection, everything open and held that cannot be there already
    ///
    /// Where a request was sent and what became of it is not known, the record may be in the destination already. Such a dead letter
    /// is sent again only if --class unknown, --cause or --dead-letter says so: look there first.
    Start(Box<ReplayStart>),
    /// How a replay stands, or how all of them stand
    Status {
        /// Its id (rpl_…)
        id: Option<String>,
    },
    /// Send nothing more of it
    Stop {
        /// Its id (rpl_…)
        id: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        note: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct ReplayStart {
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Only this dead letter (ded_…)
    #[arg(long, value_name = "ID")]
    pub(super) dead_letter: Option<String>,
    /// Sizes of the first stages; the rest follows them
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [5, 25, 100])]
    pub(super) stages: Vec<u32>,
    /// Why, for those who read it later
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
    /// Wait until it has ended
    #[arg(long)]
    pub(super) wait: bool,
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Recount every row as well; may take a while
    #[arg(long)]
    pub(super) deep: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Sandbox {
    /// List what is in it
    List {
        /// Name of the destination
        #[arg(default_value = "crm")]
        destination: String,
        /// Only this kind of object
        #[arg(long, value_name = "KIND")]
        object: Option<String>,
        #[command(flatten)]
        rows: Rows,
    },
    /// Let it do something wrong; without a fault, show what it does wrong
    Fail {
        /// Name of the destination
        destination: String,
        /// A fault, and when it strikes: alone for always (token_expired), the next N times (token_expired=3) or by chance (unavailable=0.25)
        #[arg(value_name = "FAULT[=WHEN]", value_parser = fault)]
        faults: Vec<(String, Value)>,
    },
    /// Let it do nothing wrong any more
    Heal {
        /// Name of the destination
        #[arg(default_value = "crm")]
        destination: String,
    },
}

/// A time, or an age counted from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    At(jiff::Timestamp),
    Ago(jiff::SignedDuration),
}

impl When {
    /// The time meant.
    pub(super) fn from(self, now: jiff::Timestamp) -> jiff::Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(age) => now.checked_sub(age).unwrap_or(jiff::Timestamp::MIN),
        }
    }
}

impl std::str::FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse() {
            return Ok(Self::At(time));
        }
        let wrong = || {
            format!(
                "{text:?} is neither a time like 2026-11-30T12:00:00Z nor an age like 30m, 12h or 7d"
            )
        };
        let unit = text.chars().last().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 60 * 60,
            'd' => 24 * 60 * 60,
            _ => return Err(wrong()),
        };
        let count: u32 = text[..text.len() - unit.len_utf8()]
            .parse()
            .map_err(|_| wrong())?;
        Ok(Self::Ago(jiff::SignedDuration::from_secs(
            i64::from(count) * seconds,
        )))
    }
}

/// `fault` or `fault=when`, as the API wants it.
fn fault(text: &str) -> Result<(String, Value), String> {
    match text.split_once('=') {
        None => Ok((text.into(), true.into())),
        Some((name, when)) => serde_json::from_str(when)
            .map(|when| (name.to_owned(), when))
            .map_err(|_| "expected FAULT, FAULT=NUMBER or FAULT={…}".into()),
    }
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
