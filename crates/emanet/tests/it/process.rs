//! The built program as a process: started on a data directory of its own, killed, stopped and started again; and its command line.

use crate::wait::until;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_emanet");
/// A debug build on a busy machine; a start takes well under a second otherwise.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// An installation: a folder with a configuration, a data directory and everything its servers wrote to their logs.
pub(crate) struct Home {
    dir: TempDir,
}

impl Home {
    /// With this configuration.
    pub(crate) fn new(config: &str) -> Self {
        let home = Self {
            dir: TempDir::with_prefix("emanet-test-").unwrap(),
        };
        home.configure(config);
        home
    }

    /// Replaces the configuration file; a running server hears of it through `emanet apply`.
    pub(crate) fn configure(&self, config: &str) {
        std::fs::write(self.config_path(), config).unwrap();
    }

    /// The folder is kept when the test fails.
    fn keep(&mut self) {
        self.dir.disable_cleanup(true);
        println!("kept: {}", self.dir.path().display());
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.dir.path().join("emanet.toml")
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn serve(&self) -> Server {
        self.try_serve()
            .unwrap_or_else(|status| panic!("the server did not start ({status}):\n{}", self.log()))
    }

    /// Starts a server; the exit status if it refuses.
    pub(crate) fn try_serve(&self) -> Result<Server, ExitStatus> {
        let config = self.config_path();
        self.start(&["--config".as_ref(), config.as_os_str()])
    }

    /// Starts a server that is told nothing but where its data is.
    pub(crate) fn serve_unconfigured(&self) -> Server {
        self.start(&[])
            .unwrap_or_else(|status| panic!("the server did not start ({status}):\n{}", self.log()))
    }

    fn start(&self, more: &[&OsStr]) -> Result<Server, ExitStatus> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--json", "--listen", "127.0.0.1:0"])
            .args(more)
            .arg("--data-dir")
            .arg(self.data_dir())
            .env("EMANET_LOG", "debug")
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let ready = first_line(&mut child);
        match ready.recv_timeout(START_DEADLINE) {
            Ok(line) => Ok(Server {
                ready: serde_json::from_str(&line)
                    .unwrap_or_else(|e| panic!("not a ready line ({e}): {line}")),
                child,
            }),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(child.wait().unwrap()),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                panic!("the server is not ready:\n{}", self.log())
            }
        }
    }

    /// Everything the servers of this home wrote to stderr.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// Runs a command of the program on this installation.
    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        let output = Command::new(PROGRAM)
            .args(words)
            .arg("--data-dir")
            .arg(self.data_dir())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Ran {
            words: words.join(" "),
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs a command with `--json` that must succeed; its lines.
    pub(crate) fn lines(&self, words: &[&str]) -> Vec<Value> {
        let mut words = words.to_vec();
        words.push("--json");
        let ran = self.run(&words);
        assert!(ran.status.success(), "{ran:?}");
        ran.stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|e| panic!("not JSON ({e}): {ran:?}"))
            })
            .collect()
    }

    /// Runs a command with `--json` that must succeed with exactly one line.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let mut lines = self.lines(words);
        assert_eq!(lines.len(), 1, "one line of {words:?}: {lines:?}");
        lines.remove(0)
    }

    /// What `/api/v1` answers on the local socket of the running server.
    pub(crate) fn api(&self, path: &str) -> Value {
        let mut socket = UnixStream::connect(self.data_dir().join("emanet.sock")).unwrap();
        let request =
            format!("GET /api/v1{path} HTTP/1.1\r\nhost: local\r\nconnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        let answer = crate::http::read(&mut socket).unwrap();
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// Every step of every event in that state, with the event's story around it dropped.
    pub(crate) fn steps_of(&self, state: &str) -> Vec<Value> {
        let events = self.lines(&["events", "list", "--all", "--state", state]);
        let story = |event: &Value| self.api(&format!("/events/{}", event["id"].as_str().unwrap()));
        let steps = |story: Value| story["steps"].as_array().cloned().unwrap_or_default();
        events.iter().map(story).flat_map(steps).collect()
    }

    /// `emanet status`.
    pub(crate) fn status(&self) -> Status {
        Status(self.json(&["status"]))
    }

    /// Waits until nothing is on its way any more; what is held or dead stays so.
    pub(crate) fn until_settled(&self) -> Status {
        until("nothing is pending", || {
            let status = self.status();
            (status.n("pending") == 0 && status.n("processing") == 0).then_some(status)
        })
    }

    /// Waits until that many events are in that state.
    pub(crate) fn until_n(&self, state: &str, n: u64) -> Status {
        until(&format!("{n} are {state}"), || {
            let status = self.status();
            (status.n(state) == n).then_some(status)
        })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep();
        }
    }
}

/// What a command did.
#[derive(Debug)]
#[expect(dead_code, reason = "all of it is shown when a test fails")]
pub(crate) struct Ran {
    pub(crate) words: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What `emanet status --json` says.
#[derive(Debug, Clone)]
pub(crate) struct Status(pub(crate) Value);

impl Status {
    pub(crate) fn n(&self, key: &str) -> u64 {
        self.0[key]
            .as_u64()
            .unwrap_or_else(|| panic!("no number {key} in {self:?}"))
    }

    pub(crate) fn closes(&self) -> bool {
        self.0["closes"]
            .as_bool()
            .unwrap_or_else(|| panic!("no flag `closes` in {self:?}"))
    }
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    /// Its ready line.
    pub(crate) ready: Value,
    child: Child,
}

impl Server {
    /// The intake address of a source.
    pub(crate) fn intake(&self, source: &str) -> String {
        let url = self.ready["intake"][source].as_str();
        url.unwrap_or_else(|| panic!("no intake of {source} in {}", self.ready))
            .to_owned()
    }

    /// The base address, without a slash at its end.
    pub(crate) fn base(&self) -> String {
        let intake = self.ready["intake"]
            .as_object()
            .and_then(|map| map.values().next());
        let url = intake
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("no intake in {}", self.ready));
        url.split("/in/").next().unwrap_or_default().to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: no chance to write anything down.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and how the process ended.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        signal(self.pid(), "TERM");
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal by name.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success(), "the process is there to be signalled");
}

/// Runs the program without an installation of its own.
pub(crate) fn program() -> Command {
    Command::new(PROGRAM)
}

/// The first line of the child's stdout; the rest is read and dropped, so that the child never waits for a reader.
fn first_line(child: &mut Child) -> mpsc::Receiver<String> {
    let stdout = child.stdout.take().expect("it is piped");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        if let Some(line) = lines.next() {
            let _ = sender.send(line);
        }
        lines.for_each(drop);
    });
    receiver
}
