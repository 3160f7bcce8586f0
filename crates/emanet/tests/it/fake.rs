//! A fake server on plain threads and sockets. It keeps every request in the order of arrival, and its handler decides what the
//! wire does: answer, fall silent, hang up, write garbage, or go away altogether.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its number on this server, from 1.
    pub(crate) n: u64,
    /// When its last byte came.
    pub(crate) at: Instant,
    pub(crate) method: String,
    /// Path with query.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// The path without the query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A parameter of the query.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let query = self.target.split_once('?')?.1;
        url::form_urlencoded::parse(query.as_bytes())
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.into_owned())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What the wire does after a request.
#[derive(Clone, Debug)]
pub(crate) enum Reaction {
    /// Answers with JSON (or whatever the text is).
    Answer(Reply),
    /// Says nothing and keeps the connection until the other side gives up.
    Silence,
    /// Closes without a word.
    HangUp,
    /// Writes these bytes as they are, then closes.
    Raw(Vec<u8>),
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Reply {
    /// JSON with a status.
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body: body.to_string(),
        }
    }
}

type Handler = dyn Fn(&Seen) -> Reaction + Send + Sync;

/// A running fake.
pub(crate) struct Fake {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    handler: Box<Handler>,
    seen: Mutex<Vec<Seen>>,
    n: AtomicU64,
    is_open: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Fake {
    /// Starts on a free port of the loopback address.
    pub(crate) fn start(handler: impl Fn(&Seen) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fake = Self {
            address: listener.local_addr().unwrap(),
            shared: Arc::new(Shared {
                handler: Box::new(handler),
                seen: Mutex::default(),
                n: AtomicU64::new(0),
                is_open: AtomicBool::new(true),
                connections: Mutex::default(),
            }),
            acceptor: Mutex::default(),
        };
        fake.accept_on(listener);
        fake
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, oldest first.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Goes away: connections end, new ones are refused.
    pub(crate) fn go_away(&self) {
        self.shared.is_open.store(false, Ordering::SeqCst);
        // A connection of our own wakes the acceptor, which then lets go of the port.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.lock().unwrap().take() {
            acceptor.join().unwrap();
        }
        for connection in self.shared.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Comes back on the same port.
    pub(crate) fn come_back(&self) {
        let listener = crate::wait::until("the port is free again", || {
            TcpListener::bind(self.address).ok()
        });
        self.shared.is_open.store(true, Ordering::SeqCst);
        self.accept_on(listener);
    }

    fn accept_on(&self, listener: TcpListener) {
        let shared = Arc::clone(&self.shared);
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if !shared.is_open.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                if let Ok(handle) = stream.try_clone() {
                    shared.connections.lock().unwrap().push(handle);
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(&shared, &stream));
            }
        });
        *self.acceptor.lock().unwrap() = Some(acceptor);
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.go_away();
    }
}

fn serve(shared: &Shared, stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    while let Some(mut seen) = read_request(&mut reader) {
        {
            // Number and place in the list under one lock: the list is the order of arrival.
            let mut list = shared.seen.lock().unwrap();
            seen.n = shared.n.fetch_add(1, Ordering::SeqCst) + 1;
            list.push(seen.clone());
        }
        let reaction = (shared.handler)(&seen);
        if !react(stream, &mut reader, reaction) {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Whether the connection goes on.
fn react(mut stream: &TcpStream, reader: &mut impl Read, reaction: Reaction) -> bool {
    match reaction {
        Reaction::Answer(reply) => {
            let mut head = format!("HTTP/1.1 {} Answer\r\n", reply.status);
            for (name, value) in &reply.headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str(&format!("content-length: {}\r\n\r\n", reply.body.len()));
            stream.write_all((head + &reply.body).as_bytes()).is_ok()
        }
        Reaction::Silence => {
            // Ends when the other side closes, or when this server goes away.
            let _ = reader.read(&mut [0]);
            false
        }
        Reaction::HangUp => false,
        Reaction::Raw(bytes) => {
            let _ = stream.write_all(&bytes);
            false
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|l| l.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Seen {
        n: 0,
        at: Instant::now(),
        method,
        target,
        headers,
        body,
    })
}
