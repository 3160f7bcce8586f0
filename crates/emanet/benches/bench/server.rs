//! The built binary, started for a measurement in a directory of its own.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running `emanet serve`; killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The ready line.
    pub ready: Value,
    _dir: tempfile::TempDir,
}

impl Server {
    /// Starts it with this configuration and waits until it is ready.
    pub fn start(config: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("emanet.toml");
        std::fs::write(&file, config)?;
        let mut child = Command::new(env!("CARGO_BIN_EXE_emanet"))
            .args(["serve", "--json", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir.path().join("data"))
            .arg("--config")
            .arg(&file)
            .env("EMANET_LOG", "error")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let ready = serde_json::from_str(&line)
            .map_err(|e| format!("the server did not get ready: {e}: {line}"))?;
        Ok(Self {
            child,
            ready,
            _dir: dir,
        })
    }

    /// Address and path of a source's intake.
    pub fn intake(&self, source: &str) -> Result<(String, String), Box<dyn std::error::Error>> {
        let url = self.ready["intake"][source]
            .as_str()
            .ok_or("no such source in the ready line")?;
        let rest = url.strip_prefix("http://").ok_or("not a plain address")?;
        let (host, path) = rest.split_once('/').ok_or("no path")?;
        Ok((host.to_owned(), format!("/{path}")))
    }

    /// Resident memory, in MB.
    pub fn resident_mb(&self) -> Result<f64, Box<dyn std::error::Error>> {
        let status = std::fs::read_to_string(
            Path::new("/proc")
                .join(self.child.id().to_string())
                .join("status"),
        )?;
        let line = status
            .lines()
            .find(|l| l.starts_with("VmRSS:"))
            .ok_or("no VmRSS")?;
        let kb: f64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
        Ok(kb / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
