//! What `serve` says when it is ready: one JSON line for programs, a few lines for people (design 6).

use crate::config::Document;
use crate::console::Login;
use crate::installation::Installation;
use serde_json::{Map, Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

/// Where the installation can be reached. Holds the one-time login and intake tokens: shown to whoever started it, never logged.
#[derive(Clone)]
pub struct Ready {
    api: String,
    console: String,
    login: String,
    intake: Vec<(String, String)>,
}

impl Ready {
    /// Of a running installation.
    pub fn new(
        document: &Document,
        installation: &Installation,
        address: SocketAddr,
        socket: &Path,
        login: &Login,
    ) -> Self {
        let here = format!("http://{}", reachable(address));
        let outside = document.server.public_url.as_ref().map_or_else(
            || here.clone(),
            |url| url.as_str().trim_end_matches('/').to_owned(),
        );
        let intake = installation
            .sources
            .values()
            .map(|s| (s.name.clone(), format!("{outside}/in/{}", s.token.expose())));
        Self {
            api: format!("unix:{}", socket.display()),
            console: format!("{here}/console"),
            login: format!("{here}/console/login?token={}", login.0.expose()),
            intake: intake.collect(),
        }
    }

    /// Address of a source's intake.
    pub fn intake(&self, source: &str) -> Option<&str> {
        self.intake
            .iter()
            .find(|(name, _)| name == source)
            .map(|(_, url)| url.as_str())
    }

    /// The one-time login.
    pub fn login(&self) -> &str {
        &self.login
    }

    /// The fixed point of design 6.
    pub fn json(&self) -> Value {
        let intake: Map<String, Value> = self
            .intake
            .iter()
            .map(|(name, url)| (name.clone(), json!(url)))
            .collect();
        json!({ "ready": true, "api": self.api, "console": self.console, "login": self.login, "intake": intake })
    }

    /// The same for people, with the line that sends the first lead.
    pub fn text(&self) -> String {
        let mut lines = vec![
            "Emanet is ready.".to_owned(),
            String::new(),
            format!("  Console   {}", self.console),
            format!("  Log in    {}   (works once)", self.login),
        ];
        lines.extend(
            self.intake
                .iter()
                .map(|(name, url)| format!("  Leads in  {url}   (source {name})")),
        );
        if let Some((_, url)) = self.intake.first() {
            lines.extend([
                String::new(),
                "Send the first lead:".to_owned(),
                format!("  curl -d 'full_name=Ayşe Yılmaz' -d 'phone=0532 123 45 67' -H 'Accept: application/json' {url}"),
            ]);
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready")
            .field("api", &self.api)
            .field("console", &self.console)
            .finish_non_exhaustive()
    }
}

/// An address a browser on this machine can open: one that listens everywhere is reached on loopback.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port())
    } else {
        address
    }
}
