//! The configuration in force, ready to use: connectors built, mappings compiled, tokens looked up by hash. Made by
//! [`crate::config`] from the stored revision; read by ingest, engine, scheduler and API; never changed, only replaced.

use emanet_connectors::connector::{Destination, DestinationKind, Source, SourceKind};
use emanet_core::flow::StepPlan;
use emanet_core::ids::{DestinationId, SourceId, Target, WorkspaceId};
use emanet_core::lead::Required;
use emanet_core::mapping::Mapping;
use emanet_core::normalise;
use emanet_core::secret::Secret;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// Everything one revision of the configuration says.
#[derive(Debug, Default)]
pub struct Installation {
    /// Number of the revision.
    pub revision: u64,
    /// Workspaces by id.
    pub workspaces: BTreeMap<WorkspaceId, Workspace>,
    /// Sources by id.
    pub sources: BTreeMap<SourceId, Arc<SourceEntry>>,
    /// Destinations by id.
    pub destinations: BTreeMap<DestinationId, Arc<DestinationEntry>>,
    /// Sources and destinations of earlier revisions. Leads may still be queued for them; they end in the dead letters, visibly.
    pub retired: Vec<Target>,
    /// SHA-256 of an intake token → source.
    pub tokens: HashMap<[u8; 32], SourceId>,
}

/// A workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Name in the configuration.
    pub name: String,
    /// Language of texts for people: `tr` or `en`.
    pub language: String,
    /// Time zone its days are counted in.
    pub time_zone: jiff::tz::TimeZone,
    /// Suspended: stores and answers 200, delivers nothing.
    pub suspended: bool,
}

/// A source.
#[derive(Debug)]
pub struct SourceEntry {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: SourceId,
    /// Name in the configuration.
    pub name: String,
    /// Its kind.
    pub kind: &'static SourceKind,
    /// The connector.
    pub connector: Box<dyn Source>,
    /// The intake token.
    pub token: Secret,
    /// How leads are read.
    pub normalise: normalise::Options,
    /// What a lead must have.
    pub required: Required,
    /// What happens to a lead; none: receive only (GS-1).
    pub flow: Option<Arc<Flow>>,
    /// Paused: stores and answers 200, delivers nothing.
    pub paused: bool,
    /// Largest body accepted, in bytes.
    pub body_bytes_max: usize,
    /// Limits towards the platform leads are fetched from.
    pub limits: Limits,
}

/// A flow with its mappings compiled.
#[derive(Debug)]
pub struct Flow {
    /// In order.
    pub steps: Vec<FlowStep>,
}

/// A step of a flow.
#[derive(Debug)]
pub struct FlowStep {
    /// As configured.
    pub plan: StepPlan,
    /// Its templates and condition, compiled.
    pub mapping: Mapping,
}

/// A destination.
#[derive(Debug)]
pub struct DestinationEntry {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: DestinationId,
    /// Name in the configuration.
    pub name: String,
    /// Its kind.
    pub kind: &'static DestinationKind,
    /// The connector.
    pub connector: Box<dyn Destination>,
    /// Limits towards it.
    pub limits: Limits,
}

/// How hard a target may be worked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Events worked on for it at a time.
    pub concurrency: u32,
    /// Calls per second; none: no limit of ours.
    pub rate_per_second: Option<f64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 8,
            rate_per_second: None,
        }
    }
}

impl Installation {
    /// The limits of a target; the defaults for one that is configured no longer.
    pub fn limits(&self, target: Target) -> Limits {
        match target {
            Target::Source(id) => self.sources.get(&id).map(|s| s.limits),
            Target::Destination(id) => self.destinations.get(&id).map(|d| d.limits),
        }
        .unwrap_or_default()
    }

    /// Whether the target is configured.
    pub fn knows(&self, target: Target) -> bool {
        match target {
            Target::Source(id) => self.sources.contains_key(&id),
            Target::Destination(id) => self.destinations.contains_key(&id),
        }
    }

    /// Targets whose events may be worked on now: all but paused sources and those of suspended workspaces.
    pub fn workable_targets(&self) -> impl Iterator<Item = Target> {
        let active =
            |workspace: &WorkspaceId| self.workspaces.get(workspace).is_none_or(|w| !w.suspended);
        let sources = self
            .sources
            .values()
            .filter(move |s| !s.paused && active(&s.workspace))
            .map(|s| Target::Source(s.id));
        let destinations = self
            .destinations
            .values()
            .filter(move |d| active(&d.workspace))
            .map(|d| Target::Destination(d.id));
        sources
            .chain(destinations)
            .chain(self.retired.iter().copied())
    }

    /// The name of a target for people; its id for one that is configured no longer.
    pub fn target_name(&self, target: Target) -> String {
        match target {
            Target::Source(id) => self.sources.get(&id).map(|s| s.name.clone()),
            Target::Destination(id) => self.destinations.get(&id).map(|d| d.name.clone()),
        }
        .unwrap_or_else(|| target.to_string())
    }
}

/// The installation in force, shared; replaced as a whole when a revision is applied.
#[derive(Debug, Default)]
pub struct Current(RwLock<Arc<Installation>>);

impl Current {
    /// With this one in force.
    pub fn new(installation: Installation) -> Self {
        Self(RwLock::new(Arc::new(installation)))
    }

    /// The one in force.
    pub fn get(&self) -> Arc<Installation> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another in force.
    pub fn set(&self, installation: Installation) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(installation);
    }
}
