//! Names and addresses: the name service, and places that calls must not go (F43, F44, H48).

use super::fake::{Fake, OK, Peer};
use super::*;
use std::io;
use std::net::SocketAddr;

#[derive(Debug)]
struct Broken(io::ErrorKind);

#[async_trait]
impl Resolve for Broken {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        match self.0 {
            io::ErrorKind::TimedOut => std::future::pending().await,
            kind => Err(kind.into()),
        }
    }
}

fn serve(peer: &mut Peer, _: usize) -> io::Result<()> {
    peer.read_request()?;
    peer.send(OK)
}

async fn get(transport: &HttpTransport, url: &str) -> Outcome {
    transport.send(&call(Method::Get, url, b"")).await
}

/// F43: no such name, a failing name service and a silent one.
#[tokio::test]
async fn a_name_without_an_address_is_not_sent() {
    for kind in [
        io::ErrorKind::NotFound,
        io::ErrorKind::Other,
        io::ErrorKind::TimedOut,
    ] {
        let mut options = options();
        options.deadlines.resolve = Duration::from_millis(50);
        let transport =
            HttpTransport::with_resolver(options, &Env::system(), Arc::new(Broken(kind))).unwrap();
        let outcome = get(&transport, "http://crm.example.com/").await;
        assert_eq!(outcome, Outcome::NotSent(NotSent::Dns), "{kind}");
    }
    let none = Fixed::new(vec![vec![]]);
    let transport = HttpTransport::with_resolver(options(), &Env::system(), none).unwrap();
    let outcome = get(&transport, "http://crm.example.com/").await;
    assert_eq!(outcome, Outcome::NotSent(NotSent::Dns));
}

#[tokio::test]
async fn the_system_knows_localhost() {
    let found = SystemResolver::default()
        .resolve("localhost", 80)
        .await
        .unwrap();
    assert!(found.iter().all(|address| address.ip().is_loopback()));
    assert!(!found.is_empty());
}

/// The first address of the name is dead; the second answers.
#[tokio::test]
async fn the_next_address_is_tried_before_anything_is_sent() {
    let fake = Fake::at("127.0.0.3:0", serve);
    let names = Fixed::new(vec![vec!["127.0.0.4", "127.0.0.3"]]);
    let transport = HttpTransport::with_resolver(options(), &Env::system(), names).unwrap();
    let url = format!("http://crm.example.com:{}/", fake.address.port());
    assert_eq!(answer(get(&transport, &url).await).status, 200);
    assert_eq!(fake.requests().len(), 1);
}

/// F43, H48: a name that resolves first to an admitted, then to a closed address. The check is on the address connected to.
#[tokio::test]
async fn a_rebinding_name_reaches_nothing_closed() {
    let open = Fake::at("127.0.0.2:0", serve);
    let port = open.address.port();
    let trap = Fake::at(&format!("127.0.0.1:{port}"), serve);
    let options = Options {
        allow: vec!["127.0.0.2".parse().unwrap()],
        keep_alive: Duration::ZERO,
        ..Options::default()
    };
    let names = Fixed::new(vec![
        vec!["127.0.0.2"],
        vec!["127.0.0.1"],
        vec!["::ffff:127.0.0.1"],
        vec!["127.0.0.1", "127.0.0.2"],
    ]);
    let transport = HttpTransport::with_resolver(options, &Env::system(), names).unwrap();
    let url = format!("http://crm.example.com:{port}/");
    for turn in 0..400 {
        let outcome = get(&transport, &url).await;
        if matches!(turn % 4, 1 | 2) {
            assert_eq!(outcome, Outcome::NotSent(NotSent::AddressRefused));
        } else {
            assert_eq!(answer(outcome).status, 200);
        }
    }
    assert_eq!(trap.connections(), 0);
    assert_eq!(open.connections(), 200);
}

/// F44, H48: loopback, link-local and metadata addresses in the spellings that parsers accept, and names for them.
#[tokio::test]
async fn no_spelling_of_a_closed_address_is_connected_to() {
    let trap = Fake::plain(serve);
    let port = trap.address.port();
    let names = Fixed::new(vec![vec!["127.0.0.1"], vec!["::1", "127.0.0.1"]]);
    let transport =
        HttpTransport::with_resolver(Options::default(), &Env::system(), names).unwrap();
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "127.000.000.001",
        "0177.0.0.1",
        "0177.0.0.01",
        "00000177.1",
        "0x7f.0.0.1",
        "0x7f.1",
        "0x7F000001",
        "0x7f.0x0.0x0.0x1",
        "017700000001",
        "2130706433",
        "127.65535",
        "0",
        "0.0.0.0",
        "0x0",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "localhost.localdomain",
        "crm.localhost",
        "127.0.0.1.nip.example",
        "１２７.０.０.１",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "%31%32%37.0.0.1",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "169.254.169.254",
        "169.254.43518",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "2852039166",
        "metadata.example",
        "100.100.100.200",
        "168.63.129.16",
    ] {
        let outcome = get(
            &transport,
            &format!("http://{host}:{port}/latest/meta-data"),
        )
        .await;
        assert_eq!(outcome, Outcome::NotSent(NotSent::AddressRefused), "{host}");
    }
    for authority in [
        format!("user@127.0.0.1:{port}"),
        format!("crm.example.com:80@127.0.0.1:{port}"),
        format!("crm.example.com%2f@127.0.0.1:{port}"),
        format!("[fe80::1%25lo]:{port}"),
        "127.0.0.1:port".into(),
        "999.0.0.1".into(),
        "0x100000000".into(),
    ] {
        let outcome = get(&transport, &format!("http://{authority}/")).await;
        assert_eq!(
            outcome,
            Outcome::NotSent(NotSent::InvalidCall),
            "{authority}"
        );
    }
    assert_eq!(trap.connections(), 0);
}

/// F44: whether a port is open behind a closed address, nobody learns.
#[tokio::test]
async fn open_and_closed_ports_look_alike() {
    let open = Fake::plain(serve);
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let transport = transport(Options::default());
    for address in [open.address, closed] {
        let outcome = get(&transport, &format!("http://{address}/")).await;
        assert_eq!(outcome, Outcome::NotSent(NotSent::AddressRefused));
    }
    assert_eq!(open.connections(), 0);
}
