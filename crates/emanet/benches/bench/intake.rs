//! Durable intake through HTTP against the bare engine: the source is paused, so that nothing else happens to the leads.

use crate::load::{self, quantile_ms};
use crate::server::Server;
use crate::{Figure, Size, bare, engine};

const CONFIG: &str = "[sources.web]\nkind = \"web_form\"\npaused = true\nflow = false\n";
const SENDERS: usize = 128;

/// Rate at 128 senders against one batched insert loop, and against one commit per row; latency at one sender and at 128.
pub fn run(size: Size) -> Result<Vec<Figure>, Box<dyn std::error::Error>> {
    let total = size.pick(5_000, 60_000);
    let server = Server::start(CONFIG)?;
    let (host, path) = server.intake("web")?;
    // One thread is enough for the senders; more would only wake each other on the machine they share with the server.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let many = runtime
        .block_on(load::post(&host, &path, SENDERS, total))
        .map_err(|e| e.to_string())?;
    drop(server);
    // Right after what it is compared with: the disk's mood changes.
    let engine = engine::leads_per_second(total, SENDERS).map_err(|e| e.to_string())?;
    let server = Server::start(CONFIG)?;
    let (host, path) = server.intake("web")?;
    let one = runtime
        .block_on(load::post(&host, &path, 1, size.pick(500, 3_000)))
        .map_err(|e| e.to_string())?;
    let waiting = bare::rows_per_second_waiting(total, SENDERS).map_err(|e| e.to_string())?;
    let batched = bare::rows_per_second(total, SENDERS).map_err(|e| e.to_string())?;
    let single = bare::rows_per_second(size.pick(500, 5_000), 1).map_err(|e| e.to_string())?;
    Ok(vec![
        Figure::new(
            "intake_128_senders_vs_engine_without_http",
            many.rate(),
            "leads/s",
        )
        .against(engine),
        Figure::new(
            "intake_128_senders_vs_bare_128_waiting",
            many.rate(),
            "leads/s",
        )
        .against(waiting),
        Figure::new(
            "intake_128_senders_vs_bare_loop_128_a_commit",
            many.rate(),
            "leads/s",
        )
        .against(batched),
        Figure::new(
            "intake_128_senders_vs_one_commit_per_row",
            many.rate(),
            "leads/s",
        )
        .against(single),
        Figure::new(
            "intake_128_senders_p50",
            quantile_ms(&many.latencies, 0.5),
            "ms",
        ),
        Figure::new(
            "intake_128_senders_p99",
            quantile_ms(&many.latencies, 0.99),
            "ms",
        ),
        Figure::new(
            "intake_one_sender_p50_vs_bare_commit",
            quantile_ms(&one.latencies, 0.5),
            "ms",
        )
        .against(1_000.0 / single),
    ])
}
