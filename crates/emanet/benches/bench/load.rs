//! A load of POSTs over kept-alive connections, as cheap as can be: the sender shares the machine with what it measures.

use std::io::Write;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a load came to.
#[derive(Debug)]
pub struct Load {
    /// Requests answered with 200.
    pub n_ok: usize,
    /// From the first to the last.
    pub took: Duration,
    /// Latencies, sorted.
    pub latencies: Vec<Duration>,
}

impl Load {
    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.n_ok as f64 / self.took.as_secs_f64()
    }
}

/// The latency below which this share of the sorted ones lies, in milliseconds.
pub fn quantile_ms(sorted: &[Duration], share: f64) -> f64 {
    let index = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(index).map_or(0.0, |d| d.as_secs_f64() * 1_000.0)
}

/// A body of about 1.5 kB, different for every number.
pub fn body(number: usize) -> String {
    format!(
        r#"{{"emanet_id":"bench-{number}","full_name":"Ayşe Yılmaz","phone":"0532 123 45 67","email":"ayse{number}@example.com","message":"{}"}}"#,
        "x".repeat(1_360)
    )
}

/// Posts `total` bodies with `senders` connections.
pub async fn post(
    host: &str,
    path: &str,
    senders: usize,
    total: usize,
) -> Result<Load, Box<dyn std::error::Error + Send + Sync>> {
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for sender in 0..senders {
        let (host, path) = (host.to_owned(), path.to_owned());
        tasks.spawn(async move {
            let mut connection = TcpStream::connect(&host).await?;
            connection.set_nodelay(true)?;
            let mut latencies = Vec::new();
            let (mut request, mut answer) = (Vec::new(), Vec::new());
            for number in (sender..total).step_by(senders) {
                let body = body(number);
                request.clear();
                write!(
                    request,
                    "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )?;
                let before = Instant::now();
                connection.write_all(&request).await?;
                read_answer(&mut connection, &mut answer).await?;
                latencies.push(before.elapsed());
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(latencies)
        });
    }
    let mut latencies = Vec::with_capacity(total);
    while let Some(done) = tasks.join_next().await {
        latencies.extend(done??);
    }
    let took = started.elapsed();
    latencies.sort_unstable();
    Ok(Load {
        n_ok: latencies.len(),
        took,
        latencies,
    })
}

/// Reads one answer; anything but a 200 is an error.
async fn read_answer(
    connection: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    buffer.clear();
    loop {
        if connection.read_buf(buffer).await? == 0 {
            return Err("the server closed the connection".into());
        }
        let text = std::str::from_utf8(buffer)?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if !head.starts_with("HTTP/1.1 200") {
            return Err(format!("not a 200: {}", head.lines().next().unwrap_or_default()).into());
        }
        // As this server writes it.
        let (_, rest) = head
            .split_once("\r\ncontent-length: ")
            .ok_or("no content-length")?;
        let length = rest.lines().next().unwrap_or_default();
        if body.len() >= length.parse::<usize>()? {
            return Ok(());
        }
    }
}
