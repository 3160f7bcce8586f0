//! From a document to an [`Installation`]: names become ids, settings become connectors, templates are compiled.

use super::document::{
    DEFAULT_WORKSPACE, DestinationDoc, Document, FlowChoice, OwnSettings, SourceDoc,
};
use super::flows::{self, Flows};
use super::names::Names;
use super::parse;
use super::problem::{ConfigError, Problems, choices, did_you_mean, join};
use super::secret::{Reference, Resolve};
use crate::installation::{DestinationEntry, Flow, Installation, SourceEntry, Workspace};
use crate::sandbox::Faults;
use emanet_core::field::{Field, Invalid, Settings};
use emanet_core::ids::WorkspaceId;
use emanet_core::secret::Secret;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads a configuration and tries it out, without putting it into force.
///
/// # Errors
/// Every mistake, of spelling and of sense.
pub fn check(file: &str, text: &str, resolve: Resolve<'_>) -> Result<Document, ConfigError> {
    let (document, problems) = parse::read(file, text)?;
    let names = Names::provisional(&document);
    Builder::new(&document, &names, resolve, &problems).installation(0);
    problems.into_result(&document.places)?;
    Ok(document)
}

/// Builds what is in force from a document. `names` must know every name in it.
///
/// # Errors
/// Every part that does not fit, or that its connector does not accept, and every secret that is not to be had.
pub fn build(
    document: &Document,
    revision: u64,
    names: &Names,
    resolve: Resolve<'_>,
) -> Result<Installation, ConfigError> {
    let problems = Problems::default();
    let installation = Builder::new(document, names, resolve, &problems).installation(revision);
    problems.into_result(&document.places)?;
    Ok(installation)
}

/// What building needs at every turn.
pub(super) struct Builder<'a> {
    pub(super) document: &'a Document,
    pub(super) problems: &'a Problems,
    names: &'a Names,
    resolve: Resolve<'a>,
}

impl<'a> Builder<'a> {
    fn new(
        document: &'a Document,
        names: &'a Names,
        resolve: Resolve<'a>,
        problems: &'a Problems,
    ) -> Self {
        Self {
            document,
            problems,
            names,
            resolve,
        }
    }

    fn installation(&self, revision: u64) -> Installation {
        let destinations = self.destinations();
        let flows = flows::build(self, &destinations);
        let mut installation = Installation {
            revision,
            workspaces: self.workspaces(),
            ..Installation::default()
        };
        for (name, document) in &self.document.sources {
            let Some(source) = self.source(name, document, &flows) else {
                continue;
            };
            let digest = Sha256::digest(source.token.expose()).into();
            if installation.tokens.insert(digest, source.id).is_some() {
                self.problems.add(
                    join(&join("sources", name), "token"),
                    "another source has this token; every source needs its own",
                );
            }
            installation.sources.insert(source.id, Arc::new(source));
        }
        installation.destinations = destinations.into_values().map(|d| (d.id, d)).collect();
        installation.retired = self
            .names
            .targets()
            .filter(|target| !installation.knows(*target))
            .collect();
        installation
    }

    fn workspaces(&self) -> BTreeMap<WorkspaceId, Workspace> {
        let ids = self.document.workspaces.iter().filter_map(|(name, doc)| {
            let id = *self.names.workspaces.get(name)?;
            let workspace = Workspace {
                id,
                name: name.clone(),
                language: doc.language.clone(),
                time_zone: doc.time_zone.clone(),
                suspended: doc.suspended,
            };
            Some((id, workspace))
        });
        ids.collect()
    }

    fn destinations(&self) -> BTreeMap<String, Arc<DestinationEntry>> {
        let all = self.document.destinations.iter().filter_map(|(name, doc)| {
            let destination = self.destination(name, doc)?;
            Some((name.clone(), Arc::new(destination)))
        });
        all.collect()
    }

    fn destination(&self, name: &str, doc: &DestinationDoc) -> Option<DestinationEntry> {
        let path = join("destinations", name);
        let workspace = self.workspace(&path, &doc.workspace)?;
        let id = self.names.destination(&doc.workspace, name)?;
        let mut settings = self.settings(&path, &doc.settings, doc.kind.fields);
        settings
            .values
            .insert("destination_id".into(), Value::String(id.to_string()));
        let connector = self.connector(&path, (doc.kind.build)(&settings))?;
        if let Err(error) = faults(doc) {
            self.problems.add(join(&path, "faults"), error.to_string());
        }
        Some(DestinationEntry {
            workspace,
            id,
            name: name.to_owned(),
            kind: doc.kind,
            connector,
            limits: doc.limits,
        })
    }

    fn source(&self, name: &str, doc: &SourceDoc, flows: &Flows) -> Option<SourceEntry> {
        let path = join("sources", name);
        let workspace = self.workspace(&path, &doc.workspace)?;
        let (id, kept) = self.names.source(&doc.workspace, name)?;
        let token = match &doc.token {
            Some(reference) => self.token(&join(&path, "token"), reference),
            None => Some(kept.clone()),
        };
        let flow = self.flow(&path, doc, flows);
        let mut settings = self.settings(&path, &doc.settings, doc.kind.fields);
        settings
            .values
            .insert("source_id".into(), Value::String(id.to_string()));
        let connector = self.connector(&path, (doc.kind.build)(&settings))?;
        Some(SourceEntry {
            workspace,
            id,
            name: name.to_owned(),
            kind: doc.kind,
            connector,
            token: token?,
            normalise: doc.normalise.clone(),
            required: doc.required.clone(),
            flow,
            paused: doc.paused,
            body_bytes_max: doc
                .body_bytes_max
                .unwrap_or(self.document.server.body_bytes_max),
            limits: doc.limits,
        })
    }

    fn workspace(&self, path: &str, name: &str) -> Option<WorkspaceId> {
        let id = self.names.workspaces.get(name).copied();
        if !self.document.workspaces.contains_key(name) && !self.is_written("workspaces", name) {
            let known = self.document.workspaces.keys().map(String::as_str);
            let hint = did_you_mean(name, known).unwrap_or_default();
            self.problems.add(
                join(path, "workspace"),
                format!(
                    "there is no workspace {name:?}.{hint} Add [{}].",
                    join("workspaces", name)
                ),
            );
            return None;
        }
        id
    }

    fn token(&self, path: &str, reference: &Reference) -> Option<Secret> {
        let token = self.secret(path, reference)?;
        let usable = (16..=128).contains(&token.expose().len())
            && token
                .expose()
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !usable {
            self.problems.add(
                path,
                "a token has 16 to 128 of A-Z, a-z, 0-9, - and _; leave the key out and one is made",
            );
            return None;
        }
        Some(token)
    }

    fn flow(&self, path: &str, doc: &SourceDoc, flows: &Flows) -> Option<Arc<Flow>> {
        match &doc.flow {
            FlowChoice::None => None,
            FlowChoice::Default => match flows.default.get(&doc.workspace)? {
                Ok(flow) => Some(Arc::clone(flow)),
                Err(several) => {
                    self.problems.add(
                        path,
                        format!(
                            "which CRM do its leads go to? There are several ({}): define a flow (docs/configuration.md shows one) and name it with flow = \"…\", or write flow = false to receive only",
                            choices(several.iter().map(String::as_str))
                        ),
                    );
                    None
                }
            },
            FlowChoice::Named(name) => {
                let flow = self
                    .document
                    .flows
                    .get(name)
                    .filter(|flow| flow.workspace == doc.workspace);
                if flow.is_none() && !self.is_written("flows", name) {
                    let known = self.document.flows.keys().map(String::as_str);
                    let hint = did_you_mean(name, known).unwrap_or_default();
                    self.problems.add(
                        join(path, "flow"),
                        format!(
                            "there is no flow {name:?} in workspace {:?}.{hint} Write flow = false to receive only.",
                            doc.workspace
                        ),
                    );
                } else if flow.is_none() && self.document.flows.contains_key(name) {
                    self.problems.add(
                        join(path, "flow"),
                        format!("the flow {name:?} belongs to another workspace"),
                    );
                }
                flows.named.get(name).cloned()
            }
        }
    }

    /// The settings as far as they are to be had; what is missing has been noted.
    fn settings(&self, path: &str, own: &OwnSettings, fields: &[Field]) -> Settings {
        for field in fields.iter().filter(|field| field.required) {
            let key = join(path, field.key);
            let is_given = own.values.contains_key(field.key)
                || own.secrets.contains_key(field.key)
                || self.document.places.lines.contains_key(&key);
            if !is_given {
                self.problems.add(
                    key,
                    format!("is missing. {}: {}", field.label_en, field.help),
                );
            }
        }
        let secrets = own.secrets.iter().filter_map(|(key, reference)| {
            Some((key.clone(), self.secret(&join(path, key), reference)?))
        });
        Settings {
            secrets: secrets.collect(),
            values: own.values.clone(),
        }
    }

    fn secret(&self, path: &str, reference: &Reference) -> Option<Secret> {
        match (self.resolve)(reference) {
            Ok(secret) => Some(secret),
            Err(message) => {
                self.problems.add(path, message);
                None
            }
        }
    }

    /// The connector, or a note of everything it objects to, but for what has been noted before it was asked.
    fn connector<T: ?Sized>(
        &self,
        path: &str,
        built: Result<Box<T>, Vec<Invalid>>,
    ) -> Option<Box<T>> {
        match built {
            Ok(connector) => Some(connector),
            Err(invalid) => {
                for wrong in invalid {
                    let key = format!("{path}.{}", with_indexes(&wrong.key));
                    if !self.problems.has(&key) {
                        self.problems.add(key, wrong.message);
                    }
                }
                None
            }
        }
    }

    /// Whether the file has a table of that name, be it readable or not: then a mistake was noted there, and that it is
    /// missing here is no second one.
    pub(super) fn is_written(&self, section: &str, name: &str) -> bool {
        (section == "workspaces" && name == DEFAULT_WORKSPACE)
            || self
                .document
                .places
                .lines
                .contains_key(&join(section, name))
    }
}

/// What a sandbox is configured to do wrong. The sandbox itself reads it, not its connector: it stands on the other side.
pub(super) fn faults(doc: &DestinationDoc) -> Result<Option<Faults>, serde_json::Error> {
    match doc.settings.values.get("faults") {
        Some(faults) if doc.kind.kind == "sandbox" => {
            serde_json::from_value(faults.clone()).map(Some)
        }
        _ => Ok(None),
    }
}

/// A connector writes `rows.0.hint`, the file is counted as `rows[0].hint`.
fn with_indexes(key: &str) -> String {
    let mut path = String::new();
    for part in key.split('.') {
        if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(part);
        }
    }
    path
}
