//! `emanet demo`: the product under fire. Real traffic over HTTP into a real installation, a CRM that fails in every way, an
//! operator who mends what only a person can, and at the end a table that closes.

mod count;
mod crm;
mod traffic;

use super::{AppError, Running, Start, start};
use crate::config::File;
use crate::env::Env;
use crate::telemetry::{self, LogFormat};
use count::Tally;
use emanet_core::ids::DestinationId;
use emanet_core::secret::Secret;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::time::Instant;

/// Options of `emanet demo` (design 6).
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// End with one JSON line.
    pub json: bool,
    /// How many leads to send.
    pub leads: u32,
    /// Seed of everything random (traffic, faults, delays); drawn if none is given.
    pub seed: Option<u64>,
    /// Keep it running afterwards, for a look at the console.
    pub keep: bool,
}

/// Retries come quickly, so that the demonstration ends while somebody watches; everything else is as in production.
const CONFIG: &str = r#"
[workspaces.default]
language = "tr"
time_zone = "Europe/Istanbul"

[sources.web]
kind = "web_form"
flow = "demo"

[destinations.crm]
kind = "sandbox"

[[flows.demo.steps]]
name = "crm"
kind = "crm"
destination = "crm"
object = "lead"
retry = { base_ms = 200, cap_ms = 2000 }

[[flows.demo.steps]]
name = "task"
kind = "task"
destination = "crm"
object = "task"
needs = ["crm"]
retry = { base_ms = 200, cap_ms = 2000 }

[[flows.demo.steps]]
name = "check"
kind = "check_task"
destination = "crm"
object = "task"
needs = ["crm"]
retry = { base_ms = 200, cap_ms = 2000 }
"#;

/// The demonstration ends at the latest this long after the last lead was sent; what is not through by then shows in the table.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs the demonstration.
///
/// # Errors
/// If a lead was lost or doubled, the sum does not close, or the installation does not run.
pub async fn demo(options: DemoOptions) -> Result<(), AppError> {
    telemetry::init(
        LogFormat::Text,
        &std::env::var("EMANET_LOG").unwrap_or_else(|_| "off".into()),
    )?;
    let dir = tempfile::Builder::new()
        .prefix("emanet-demo-")
        .tempdir()
        .map_err(|source| AppError::File {
            path: std::env::temp_dir(),
            source,
        })?;
    let seed = options
        .seed
        .unwrap_or_else(|| u64::from(u32::from_le_bytes(Env::system().bytes())));
    let started = Instant::now();
    let file = File {
        name: "the demo's configuration".into(),
        text: Secret::new(CONFIG),
    };
    let listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let running = start(
        Start {
            data_dir: dir.path().join("data"),
            listen,
            file: Some(file),
        },
        Env::seeded(seed),
    )
    .await?;
    if !options.json {
        say(&format!(
            "A CRM that fails in every way, and {} leads on their way to it (seed {seed}).\nWatch: {}\n",
            options.leads,
            running.ready.login()
        ));
    }
    let tally = under_fire(&running, &options, seed).await?;
    let seconds = started.elapsed().as_secs_f64();
    if options.json {
        say(&tally.json(seconds).to_string());
    } else {
        say(&tally.table(seconds));
    }
    if options.keep {
        say("Still running, for a look at the console; end it with Ctrl-C.");
        tokio::signal::ctrl_c().await.map_err(AppError::Signals)?;
    }
    running.stop().await?;
    tally.verdict().map_err(AppError::Demo)
}

async fn under_fire(
    running: &Running,
    options: &DemoOptions,
    seed: u64,
) -> Result<Tally, AppError> {
    let crm = sandbox_of(running)?;
    let intake = running
        .ready
        .intake("web")
        .ok_or_else(|| AppError::Demo("there is no source to send to".into()))?
        .to_owned();
    let bar = progress(options);
    let director = crm::Director::new(running, crm);
    let moods = crm::moods(&mut fastrand::Rng::with_seed(seed ^ 0x0ddc_0ffe));
    let mut traffic = traffic::Traffic::new(seed, options.leads);
    let mut sent = traffic::Sent::default();
    let share = (options.leads as usize).div_ceil(moods.len());
    for mood in &moods {
        let before = director.calls();
        director.set(mood);
        bar.set_message(crm::name(mood));
        traffic.send(share, &intake, &bar, &mut sent).await?;
        director.struck(mood, &before).await;
        bar.set_message("the CRM is well");
        director.recover().await?;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = running.store.status(None, running.parts.env.now()).await?;
        let left = status.pending + status.processing + status.held;
        bar.set_message(format!(
            "{} delivered, {} held, {left} on their way",
            status.done, status.held
        ));
        if left == 0 || Instant::now() > deadline {
            break;
        }
        director.replay_if_needed().await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bar.finish_and_clear();
    Tally::count(running, crm, &sent).await
}

fn sandbox_of(running: &Running) -> Result<DestinationId, AppError> {
    let installation = running.installation.get();
    let crm = installation
        .destinations
        .values()
        .find(|d| d.kind.kind == "sandbox")
        .map(|d| d.id);
    crm.ok_or_else(|| AppError::Demo("there is no sandbox CRM to deliver to".into()))
}

/// A bar on a terminal, nothing elsewhere.
fn progress(options: &DemoOptions) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(
        Some(options.leads.into()),
        if options.json {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        },
    );
    if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} leads  {msg}") {
        bar.set_style(style);
    }
    bar
}

#[expect(clippy::print_stdout, reason = "what a command says, it says here")]
fn say(text: &str) {
    println!("{text}");
}
