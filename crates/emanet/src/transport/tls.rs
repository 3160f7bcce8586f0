//! TLS: always verified, 1.2 or newer, nothing to switch off (S15). Tells a certificate that does not verify from a handshake
//! that merely failed (ERR-3).

use crate::env::Env;
use emanet_core::call::NotSent;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// Why the trusted roots could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// A file of the operator's cannot be used.
    #[error("the root certificates in {path} cannot be used: {reason}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The crypto provider does not do TLS 1.2 and 1.3.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// Installs the one crypto provider of the process. May be called any number of times.
pub fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails only if somebody installed one before; then that one is in force.
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
    });
}

/// A connector that trusts the system's roots (the bundled ones where the system has none) and the operator's.
pub(super) fn connector(extra: &[PathBuf], env: &Env) -> Result<TlsConnector, RootsError> {
    install_crypto();
    let mut roots = system_roots();
    for path in extra {
        add_file(&mut roots, path).map_err(|reason| RootsError::File {
            path: path.clone(),
            reason,
        })?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clock = Arc::new(EnvClock(env.clone()));
    let mut config = ClientConfig::builder_with_details(provider, clock)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Err("there is no certificate in it".into());
    }
    for certificate in found {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What a failed handshake means. `Certificate` is everything that stays until somebody changes the set-up: a certificate that
/// does not verify, or a side that speaks only older TLS (F42). The rest may pass.
pub(super) fn failure(error: &io::Error) -> NotSent {
    let reason = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match reason {
        Some(
            rustls::Error::InvalidCertificate(_)
            | rustls::Error::NoCertificatesPresented
            | rustls::Error::UnsupportedNameType
            | rustls::Error::PeerIncompatible(_)
            | rustls::Error::AlertReceived(AlertDescription::ProtocolVersion),
        ) => NotSent::Certificate,
        _ => NotSent::Tls,
    }
}

/// Certificates are judged by the clock that everything else goes by.
#[derive(Debug)]
struct EnvClock(Env);

impl TimeProvider for EnvClock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}
