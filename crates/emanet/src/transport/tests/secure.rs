//! TLS (F42, S15, ERR-3): what does not verify is never spoken to.

use super::fake::{Authority, Fake, Identity, OK, Peer};
use super::*;
use emanet_core::call::Broken;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::io::{self, Write};
use std::sync::Barrier;

const VALID: std::ops::Range<i32> = 2020..2100;

fn server(identity: Identity) -> Arc<ServerConfig> {
    install_crypto();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate], identity.key);
    Arc::new(config.unwrap())
}

/// A transport that trusts this authority besides the public ones.
fn trusting(authority: &Authority, options: Options) -> HttpTransport {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(authority.pem().as_bytes()).unwrap();
    let options = Options {
        extra_roots: vec![file.path().to_owned()],
        ..options
    };
    let names = Fixed::new(vec![vec!["127.0.0.1"]]);
    HttpTransport::with_resolver(options, &Env::system(), names).unwrap()
}

fn url(fake: &Fake) -> String {
    format!("https://{}/leads", fake.address)
}

fn serve(peer: &mut Peer, _: usize) -> io::Result<()> {
    loop {
        peer.read_request()?;
        peer.send(OK)?;
    }
}

/// Sends to a server that must not get a single request.
async fn check(transport: &HttpTransport, fake: &Fake, url: &str, expected: NotSent) {
    let outcome = transport.send(&call(Method::Post, url, b"{}")).await;
    assert_eq!(outcome, Outcome::NotSent(expected));
    fake.settle();
    assert_eq!(fake.requests().len(), 0);
    assert_eq!(fake.connections(), 1, "the server was reached");
}

#[tokio::test]
async fn a_private_authority_that_the_operator_trusts_is_trusted() {
    let authority = Authority::new();
    let fake = Fake::encrypted(server(authority.server("127.0.0.1", VALID)), serve);
    let outcome = trusting(&authority, options())
        .send(&call(Method::Post, &url(&fake), b"{}"))
        .await;
    assert_eq!(answer(outcome).status, 200);
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn names_are_verified_with_and_without_their_final_dot() {
    let authority = Authority::new();
    let fake = Fake::encrypted(server(authority.server("crm.example.com", VALID)), serve);
    let transport = trusting(&authority, options());
    for host in ["crm.example.com", "crm.example.com."] {
        let url = format!("https://{host}:{}/", fake.address.port());
        let outcome = transport.send(&call(Method::Post, &url, b"{}")).await;
        assert_eq!(answer(outcome).status, 200, "{host}");
    }
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let fake = Fake::encrypted(server(Authority::new().server("127.0.0.1", VALID)), serve);
    check(
        &transport(options()),
        &fake,
        &url(&fake),
        NotSent::Certificate,
    )
    .await;
}

#[tokio::test]
async fn a_wrong_name_is_refused() {
    let authority = Authority::new();
    let fake = Fake::encrypted(server(authority.server("crm.example.com", VALID)), serve);
    let transport = trusting(&authority, options());
    check(&transport, &fake, &url(&fake), NotSent::Certificate).await;
}

#[tokio::test]
async fn certificates_out_of_their_time_are_refused() {
    let authority = Authority::new();
    for years in [2020..2021, 2099..2100] {
        let fake = Fake::encrypted(server(authority.server("127.0.0.1", years)), serve);
        let transport = trusting(&authority, options());
        check(&transport, &fake, &url(&fake), NotSent::Certificate).await;
    }
}

/// An alert "protocol version": the other side speaks only what we refuse (older than TLS 1.2).
#[tokio::test]
async fn an_old_version_is_a_matter_of_set_up() {
    let fake = Fake::plain(|peer, _| {
        peer.read_exactly(5)?;
        peer.send(&[21, 3, 1, 0, 2, 2, 70])?;
        peer.await_hang_up();
        Ok(())
    });
    check(
        &transport(options()),
        &fake,
        &url(&fake),
        NotSent::Certificate,
    )
    .await;
}

#[tokio::test]
async fn a_handshake_that_breaks_off_may_pass() {
    let endings: [fn(&mut Peer) -> io::Result<()>; 4] = [
        |_| Ok(()),
        |peer| peer.send(&[22, 3, 3]),
        |peer| peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        |peer| {
            peer.reset();
            Ok(())
        },
    ];
    for ending in endings {
        let fake = Fake::plain(move |peer, _| {
            peer.read_exactly(5)?;
            ending(peer)
        });
        check(&transport(options()), &fake, &url(&fake), NotSent::Tls).await;
    }
}

#[tokio::test]
async fn a_silent_handshake_is_not_sent() {
    let fake = Fake::plain(|peer, _| {
        peer.await_hang_up();
        Ok(())
    });
    let mut options = options();
    options.deadlines.tls = Duration::from_millis(100);
    check(&transport(options), &fake, &url(&fake), NotSent::Tls).await;
}

/// With TLS 1.3 the alert comes after the handshake has "succeeded".
#[tokio::test]
async fn a_demanded_client_certificate_is_never_an_answer() {
    let authority = Authority::new();
    install_crypto();
    let mut roots = RootCertStore::empty();
    let identity = authority.server("127.0.0.1", VALID);
    roots.add(identity.certificate.clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
        .build()
        .unwrap();
    let config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![identity.certificate], identity.key)
        .unwrap();
    let fake = Fake::encrypted(Arc::new(config), serve);
    let outcome = trusting(&authority, options())
        .send(&call(Method::Post, &url(&fake), b"{}"))
        .await;
    assert!(
        matches!(
            outcome,
            Outcome::NotSent(NotSent::Tls) | Outcome::Unknown(Broken::Closed)
        ),
        "{outcome:?}"
    );
    fake.settle();
    assert_eq!(fake.requests().len(), 0);
}

/// Session tickets in the socket are not a stray answer: connections are reused over TLS 1.3 as over 1.2.
#[tokio::test]
async fn encrypted_connections_are_reused() {
    let authority = Authority::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let identity = authority.server("127.0.0.1", VALID);
        install_crypto();
        let mut config = ServerConfig::builder_with_protocol_versions(&[version])
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate], identity.key)
            .unwrap();
        config.send_tls13_tickets = 4;
        let fake = Fake::encrypted(Arc::new(config), serve);
        let transport = trusting(&authority, options());
        for n in 0..3 {
            let outcome = transport.send(&call(Method::Get, &url(&fake), b"")).await;
            assert_eq!(answer(outcome).reused_connection, n > 0);
        }
        assert_eq!(fake.connections(), 1);
    }
}

#[tokio::test]
async fn encrypted_connections_that_are_dirty_or_dead_are_not_used() {
    let authority = Authority::new();
    let incidents: [fn(&mut Peer) -> io::Result<()>; 2] = [
        |peer| {
            peer.send(OK)?;
            peer.await_delivery();
            Ok(())
        },
        |peer| {
            peer.finish();
            Ok(())
        },
    ];
    for incident in incidents {
        let moment = Arc::new(Barrier::new(2));
        let theirs = Arc::clone(&moment);
        let identity = authority.server("127.0.0.1", VALID);
        let fake = Fake::encrypted(server(identity), move |peer, number| {
            peer.read_request()?;
            peer.send(OK)?;
            if number > 0 {
                return Ok(());
            }
            theirs.wait();
            let rest = incident(peer);
            theirs.wait();
            rest?;
            serve(peer, number)
        });
        let transport = trusting(&authority, options());
        let get = call(Method::Get, &url(&fake), b"");
        assert_eq!(answer(transport.send(&get).await).status, 200);
        moment.wait();
        moment.wait();
        assert!(!answer(transport.send(&get).await).reused_connection);
        assert_eq!(fake.requests().len(), 2);
        assert_eq!(fake.connections(), 2);
    }
}

/// What was read is unknown and what is called not sent was not read, whenever a call gives up.
#[tokio::test]
async fn time_outs_at_any_moment_are_judged_rightly() {
    let authority = Authority::new();
    let fake = Fake::encrypted(server(authority.server("127.0.0.1", VALID)), |peer, _| {
        peer.read_request()?;
        peer.await_hang_up();
        Ok(())
    });
    let mut transport = trusting(&authority, options());
    let mut n_read = 0;
    for micros in (0..8_000).step_by(80) {
        transport.deadlines.call = Duration::from_micros(micros);
        let outcome = transport
            .send(&call(Method::Post, &url(&fake), b"{}"))
            .await;
        fake.settle();
        let was_read = fake.requests().len() > n_read;
        n_read = fake.requests().len();
        match outcome {
            Outcome::NotSent(_) => assert!(!was_read, "{micros}"),
            outcome => assert_eq!(outcome, Outcome::Unknown(Broken::TimedOut), "{micros}"),
        }
    }
}

#[test]
fn unusable_root_files_are_named() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    for path in [empty.path().to_owned(), "/no/such/roots.pem".into()] {
        let options = Options {
            extra_roots: vec![path.clone()],
            ..Options::default()
        };
        let error = HttpTransport::new(options, &Env::system()).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()));
    }
}
