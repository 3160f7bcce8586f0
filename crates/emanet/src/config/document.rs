//! A configuration as written: the model of `emanet.toml`, and how it is shown without its secrets.

use super::problem::Places;
use super::secret::Reference;
use crate::installation::Limits;
use crate::transport::Range;
use emanet_connectors::connector::{DestinationKind, SourceKind};
use emanet_core::backoff;
use emanet_core::lead::Required;
use emanet_core::normalise;
use emanet_core::secret::Secret;
use emanet_core::step::Kind;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The workspace of everything that names none.
pub const DEFAULT_WORKSPACE: &str = "default";

/// A configuration as written.
#[derive(Debug, Clone)]
pub struct Document {
    /// The text it was read from; it may hold secrets.
    pub text: Secret,
    /// How the server listens.
    pub server: Server,
    /// What it may connect to.
    pub network: Network,
    /// By name; always with the default workspace.
    pub workspaces: BTreeMap<String, WorkspaceDoc>,
    /// By name.
    pub sources: BTreeMap<String, SourceDoc>,
    /// By name.
    pub destinations: BTreeMap<String, DestinationDoc>,
    /// By name.
    pub flows: BTreeMap<String, FlowDoc>,
    pub(super) places: Places,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// What the server is called from outside, for addresses in answers and messages.
    pub public_url: Option<url::Url>,
    /// Proxies in front of us: their `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// Largest request body, for sources that set no limit of their own.
    pub body_bytes_max: usize,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7420)),
            public_url: None,
            trusted_proxies: Vec::new(),
            body_bytes_max: 1024 * 1024,
        }
    }
}

/// `[network]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Loopback and private ranges destinations may be in; none by default (SSRF).
    pub allow_private: Vec<Range>,
    /// PEM files of further certificate authorities to trust.
    pub extra_root_certificates: Vec<PathBuf>,
}

/// `[workspaces.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDoc {
    /// `tr` or `en`.
    pub language: String,
    /// Where its days begin.
    pub time_zone: jiff::tz::TimeZone,
    /// Stores and answers 200, delivers nothing.
    pub suspended: bool,
}

impl Default for WorkspaceDoc {
    fn default() -> Self {
        Self {
            language: "tr".into(),
            time_zone: jiff::tz::TimeZone::get("Europe/Istanbul")
                .expect("the time zone database is part of the program"),
            suspended: false,
        }
    }
}

/// `[sources.NAME]`.
#[derive(Debug, Clone)]
pub struct SourceDoc {
    /// Name of its workspace.
    pub workspace: String,
    /// Its kind.
    pub kind: &'static SourceKind,
    /// Intake token, if it is to be a certain one.
    pub token: Option<Reference>,
    /// Stores and answers 200, delivers nothing.
    pub paused: bool,
    /// What happens to its leads.
    pub flow: FlowChoice,
    /// How leads are read.
    pub normalise: normalise::Options,
    /// What a lead must have.
    pub required: Required,
    /// Limits towards the platform leads are fetched from.
    pub limits: Limits,
    /// Largest request body.
    pub body_bytes_max: Option<usize>,
    /// The connector's own settings.
    pub settings: OwnSettings,
}

/// Which flow a source's leads go through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowChoice {
    /// Nothing is said: the default flow, where there is a CRM for it.
    Default,
    /// None: receive only (GS-1).
    None,
    /// The one of that name.
    Named(String),
}

/// `[destinations.NAME]`.
#[derive(Debug, Clone)]
pub struct DestinationDoc {
    /// Name of its workspace.
    pub workspace: String,
    /// Its kind.
    pub kind: &'static DestinationKind,
    /// Limits towards it.
    pub limits: Limits,
    /// The connector's own settings.
    pub settings: OwnSettings,
}

/// What a connector defines itself: plain values, and where the secrets come from.
#[derive(Debug, Clone, Default)]
pub struct OwnSettings {
    /// Plain values.
    pub values: Map<String, Value>,
    /// Secret fields by key.
    pub secrets: BTreeMap<String, Reference>,
}

/// `[flows.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowDoc {
    /// Name of its workspace.
    pub workspace: String,
    /// Its steps, in order.
    pub steps: Vec<StepDoc>,
}

/// `[[flows.NAME.steps]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDoc {
    /// Name, unique in the flow.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// Name of the destination; the only one of the workspace if none is given.
    pub destination: Option<String>,
    /// Object of the destination.
    pub object: Option<String>,
    /// Field → template.
    pub fields: BTreeMap<String, String>,
    /// Condition.
    pub when: Option<String>,
    /// Names of steps before it that it needs.
    pub needs: Vec<String>,
    /// Retry policy.
    pub retry: backoff::Policy,
    /// Where it stands, for messages.
    pub(super) path: String,
}
