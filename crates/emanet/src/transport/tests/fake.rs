//! A server of threads and sockets that does exactly what a test tells it and keeps what it read.

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) const OK: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{\"id\":\"7\"}";

/// What the server does on one connection; the number counts connections from 0.
pub(crate) type Script = dyn Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync;

/// The server.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    ended: AtomicUsize,
    sentinels: AtomicUsize,
    requests: Mutex<Vec<Vec<u8>>>,
}

impl Fake {
    pub(crate) fn plain(
        script: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::start("127.0.0.1:0", None, script)
    }

    pub(crate) fn at(
        address: &str,
        script: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::start(address, None, script)
    }

    pub(crate) fn encrypted(
        config: Arc<rustls::ServerConfig>,
        script: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::start("127.0.0.1:0", Some(config), script)
    }

    fn start(
        address: &str,
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (script, kept): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let number = kept.connections.fetch_add(1, Ordering::SeqCst);
                let (script, tls, seen) = (Arc::clone(&script), tls.clone(), Arc::clone(&kept));
                let ending = Ending(Arc::clone(&kept));
                thread::spawn(move || {
                    let _ending = ending;
                    if let Ok(mut peer) = Peer::new(tcp, tls, seen) {
                        // A script ends with an error when the client hangs up; the test judges by what was seen.
                        let _hung_up = script(&mut peer, number);
                    }
                });
            }
        });
        Self { address, seen }
    }

    /// Connections made by the client.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst) - self.seen.sentinels.load(Ordering::SeqCst)
    }

    /// Waits until every connection was accepted and its script has ended, so that what was read is final. Connections are
    /// accepted in order: when one of our own has been served, all before it have been accepted.
    pub(crate) fn settle(&self) {
        let seen = &self.seen;
        seen.sentinels.fetch_add(1, Ordering::SeqCst);
        let mut sentinel = TcpStream::connect(self.address).unwrap();
        sentinel.shutdown(Shutdown::Write).unwrap();
        while matches!(sentinel.read(&mut [0; 64]), Ok(1..)) {}
        while seen.ended.load(Ordering::SeqCst) < seen.connections.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }

    /// Requests read completely.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/leads", self.address)
    }
}

trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

/// The server's side of one connection.
pub(crate) struct Peer {
    stream: Box<dyn ReadWrite>,
    tcp: TcpStream,
    ports: Ports,
    seen: Arc<Seen>,
}

/// What a connection is known by in the kernel's table.
#[derive(Clone, Copy)]
struct Ports {
    server: u16,
    client: u16,
}

/// Says that a script has ended, by panic too.
struct Ending(Arc<Seen>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl Peer {
    fn new(
        tcp: TcpStream,
        tls: Option<Arc<rustls::ServerConfig>>,
        seen: Arc<Seen>,
    ) -> io::Result<Self> {
        let twin = tcp.try_clone()?;
        let ports = Ports {
            server: tcp.local_addr()?.port(),
            client: tcp.peer_addr()?.port(),
        };
        let stream: Box<dyn ReadWrite> = match tls {
            None => Box::new(tcp),
            Some(config) => {
                let session = rustls::ServerConnection::new(config).map_err(io::Error::other)?;
                Box::new(rustls::StreamOwned::new(session, tcp))
            }
        };
        Ok(Self {
            stream,
            tcp: twin,
            ports,
            seen,
        })
    }

    /// Reads the head of a request.
    pub(crate) fn read_head(&mut self) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(self.read_exactly(1)?);
        }
        Ok(head)
    }

    /// Reads a whole request and counts it.
    pub(crate) fn read_request(&mut self) -> io::Result<Vec<u8>> {
        let mut request = self.read_head()?;
        let head = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let body_bytes = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |n| n.parse().unwrap());
        request.extend(self.read_exactly(body_bytes)?);
        self.seen.requests.lock().unwrap().push(request.clone());
        Ok(request)
    }

    pub(crate) fn read_exactly(&mut self, n: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; n];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Waits until the client has closed, reading whatever still comes.
    pub(crate) fn await_hang_up(&mut self) {
        let mut bytes = [0; 4096];
        while matches!(self.stream.read(&mut bytes), Ok(1..)) {}
    }

    /// Whether the client hangs up within this time.
    pub(crate) fn has_hung_up_within(&mut self, time: Duration) -> bool {
        self.tcp.set_read_timeout(Some(time)).unwrap();
        match self.tcp.peek(&mut [0]) {
            Ok(n) => n == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// Closes with FIN and waits until the client's kernel knows.
    pub(crate) fn finish(&mut self) {
        self.tcp.shutdown(Shutdown::Write).unwrap();
        self.await_client(is_over);
    }

    /// Closes with RST and waits until the client's kernel knows.
    pub(crate) fn reset(&mut self) {
        socket2::SockRef::from(&self.tcp)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        // Both handles must go before the kernel sends it.
        self.tcp = TcpStream::connect(unused_listener().local_addr().unwrap()).unwrap();
        self.stream = Box::new(io::Cursor::new(Vec::new()));
        self.await_client(is_over);
    }

    /// Waits until bytes lie unread in the client's socket.
    pub(crate) fn await_delivery(&self) {
        self.await_client(|socket| socket.is_some_and(|socket| socket.unread_bytes > 0));
    }

    fn await_client(&self, is_so: impl Fn(Option<Socket>) -> bool) {
        await_socket(self.ports, is_so);
    }
}

fn unused_listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

const ESTABLISHED: u8 = 1;

fn is_over(socket: Option<Socket>) -> bool {
    socket.is_none_or(|socket| socket.state != ESTABLISHED)
}

struct Socket {
    state: u8,
    unread_bytes: u64,
}

/// Waits until the kernel's table of sockets says so of the one with these ports.
fn await_socket(ports: Ports, is_so: impl Fn(Option<Socket>) -> bool) {
    while !is_so(socket(ports)) {
        thread::yield_now();
    }
}

/// A row of `/proc/net/tcp`: number, local, remote, state, tx_queue:rx_queue, …
fn socket(ports: Ports) -> Option<Socket> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let local = format!(":{:04X}", ports.client);
    let remote = format!(":{:04X}", ports.server);
    table.lines().find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, a, b, state, queues, ..] = columns[..] else {
            return None;
        };
        (a.ends_with(&local) && b.ends_with(&remote)).then(|| Socket {
            state: u8::from_str_radix(state, 16).unwrap(),
            unread_bytes: u64::from_str_radix(queues.split_once(':').unwrap().1, 16).unwrap(),
        })
    })
}

/// A listener whose queue is full, so that the next connection hangs. Keep what is returned.
pub(crate) fn full_listener() -> (socket2::Socket, Vec<socket2::Socket>) {
    use socket2::{Domain, Socket, Type};
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let fillers = (0..4)
        .map(|_| {
            let filler = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            // The last ones hang, which is the purpose.
            let _hangs = filler.connect_timeout(&address, Duration::from_millis(50));
            filler
        })
        .collect();
    (listener, fillers)
}

/// A certificate authority and what it signs.
pub(crate) struct Authority {
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        Self {
            issuer: rcgen::CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A server certificate for a name, valid in these years.
    pub(crate) fn server(&self, name: &str, years: std::ops::Range<i32>) -> Identity {
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }
}

/// A certificate with its key.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}
