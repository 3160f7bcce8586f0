//! From the POST to the CRM's door, with nothing else going on: a CRM of our own notes when a call arrives.

use crate::load::{self, quantile_ms};
use crate::server::Server;
use crate::{Figure, Size};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// Time from sending the POST to the CRM reading the first byte of the first call.
pub fn run(size: Size) -> Result<Vec<Figure>, Box<dyn std::error::Error>> {
    let crm = TcpListener::bind("127.0.0.1:0")?;
    let address = crm.local_addr()?;
    let (arrived, arrivals) = channel();
    std::thread::spawn(move || {
        crm.incoming().flatten().for_each(|connection| {
            let arrived = arrived.clone();
            std::thread::spawn(move || serve(connection, arrived));
        });
    });
    let server = Server::start(&config(&address.to_string()))?;
    let (host, path) = server.intake("web")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut taken = Vec::new();
    for round in 0..size.pick(30, 500) {
        let before = Instant::now();
        // One request a time, each with a body of its own.
        let sent = load::body(round);
        runtime
            .block_on(one(&host, &path, &sent))
            .map_err(|e| e.to_string())?;
        let first: Instant = arrivals.recv_timeout(Duration::from_secs(30))?;
        taken.push(first.duration_since(before));
        // The create follows the look-up; wait for it, so that rounds do not overlap.
        arrivals.recv_timeout(Duration::from_secs(30))?;
    }
    taken.sort_unstable();
    Ok(vec![
        Figure::new("post_to_crm_call_idle_p50", quantile_ms(&taken, 0.5), "ms"),
        Figure::new("post_to_crm_call_idle_p99", quantile_ms(&taken, 0.99), "ms"),
    ])
}

async fn one(
    host: &str,
    path: &str,
    body: &str,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut connection = tokio::net::TcpStream::connect(host).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection
        .write_all(&[head.as_bytes(), body.as_bytes()].concat())
        .await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    if answer.starts_with(b"HTTP/1.1 200") {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&answer).into())
    }
}

/// A CRM that finds nothing and creates everything.
fn serve(connection: TcpStream, arrived: Sender<Instant>) {
    let Ok(mut writer) = connection.try_clone() else {
        return;
    };
    let mut reader = BufReader::new(connection);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let _ = arrived.send(Instant::now());
        let mut length = 0;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) == 0 || header == "\r\n" {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        if reader.read_exact(&mut vec![0; length]).is_err() {
            return;
        }
        let body = if line.starts_with("GET") {
            r#"{"leads":[]}"#
        } else {
            r#"{"id":"1"}"#
        };
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn config(crm: &str) -> String {
    format!(
        r#"
[network]
allow_private = ["127.0.0.0/8"]

[sources.web]
kind = "web_form"
flow = "crm_only"

[destinations.crm]
kind = "http"
base_url = "http://{crm}"

[destinations.crm.objects.lead]
external_id_field = "external_id"
fields = {{ name = "{{{{ lead.full_name }}}}", phone = "{{{{ lead.phone }}}}" }}
look_up = {{ path = "/leads?external_id={{external_id}}", rows = ["/leads"], id = "/id", match = "/external_id" }}
create = {{ path = "/leads", id = "/id" }}

[[flows.crm_only.steps]]
name = "crm"
kind = "crm"
destination = "crm"
object = "lead"
"#
    )
}
