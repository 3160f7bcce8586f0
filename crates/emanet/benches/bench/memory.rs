//! Memory does not grow with the backlog: leads that wait lie on disk.

use crate::load;
use crate::server::Server;
use crate::{Figure, Size};

/// Held by a destination that refuses connections: the backlog is real, and the engine keeps looking at it.
const CONFIG: &str = r#"
[network]
allow_private = ["127.0.0.0/8"]

[sources.web]
kind = "web_form"
flow = "crm_only"

[destinations.crm]
kind = "http"
base_url = "http://127.0.0.1:9"

[destinations.crm.objects.lead]
external_id_field = "external_id"
fields = { name = "{{ lead.full_name }}" }
create = { path = "/leads", id = "/id" }

[[flows.crm_only.steps]]
name = "crm"
kind = "crm"
destination = "crm"
object = "lead"
"#;

/// Resident memory when idle, and with many leads waiting.
pub fn run(size: Size) -> Result<Vec<Figure>, Box<dyn std::error::Error>> {
    let server = Server::start(CONFIG)?;
    let (host, path) = server.intake("web")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    // Warm: connection buffers, statement caches, phone metadata.
    runtime
        .block_on(load::post(&host, &path, 128, 2_000))
        .map_err(|e| e.to_string())?;
    let idle = server.resident_mb()?;
    let waiting = size.pick(5_000, 100_000);
    runtime
        .block_on(load::post(&host, &path, 128, waiting))
        .map_err(|e| e.to_string())?;
    let full = server.resident_mb()?;
    Ok(vec![
        Figure::new("memory_idle", idle, "MB"),
        Figure::new("memory_with_leads_waiting", full, "MB").against(idle),
        Figure::new("memory_growth_with_leads_waiting", full - idle, "MB"),
    ])
}
