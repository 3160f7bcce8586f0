//! Names and the ids they keep for ever. An id is part of every key at a vendor, so a name that comes back, after a pause or
//! a restore, must meet its old id.

use super::document::Document;
use crate::env::Env;
use emanet_core::ids::{DestinationId, SourceId, Target, WorkspaceId};
use emanet_core::seal::{Keyring, SealError};
use emanet_core::secret::Secret;
use emanet_store::{Configuration, NamedDestination, NamedSource};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// (workspace, name).
type Key = (String, String);

/// Name → id, and the intake token each source has unless its configuration gives one.
#[derive(Debug, Default, Clone)]
pub struct Names {
    pub(super) workspaces: BTreeMap<String, WorkspaceId>,
    sources: BTreeMap<Key, (SourceId, Secret)>,
    destinations: BTreeMap<Key, DestinationId>,
}

/// Names a document brings that have no id yet, as the store takes them.
#[derive(Debug, Default)]
pub struct NewNames {
    /// Workspaces.
    pub workspaces: BTreeMap<String, WorkspaceId>,
    /// Sources, tokens sealed.
    pub sources: Vec<NamedSource>,
    /// Destinations.
    pub destinations: Vec<NamedDestination>,
}

impl Names {
    /// The names the store knows.
    ///
    /// # Errors
    /// A token that cannot be opened: the key file is not the one it was sealed with.
    pub fn of(configuration: &Configuration, keyring: &Keyring) -> Result<Self, SealError> {
        let by_id: BTreeMap<_, _> = configuration
            .workspaces
            .iter()
            .map(|(name, id)| (*id, name.as_str()))
            .collect();
        let mut names = Self {
            workspaces: configuration.workspaces.clone(),
            ..Self::default()
        };
        for source in &configuration.sources {
            if let Some(workspace) = by_id.get(&source.workspace) {
                let token = open_token(keyring, source)?;
                names.sources.insert(
                    ((*workspace).to_owned(), source.name.clone()),
                    (source.id, token),
                );
            }
        }
        for destination in &configuration.destinations {
            if let Some(workspace) = by_id.get(&destination.workspace) {
                names.destinations.insert(
                    ((*workspace).to_owned(), destination.name.clone()),
                    destination.id,
                );
            }
        }
        Ok(names)
    }

    /// Gives every name of the document that has none an id, and every such source a token.
    pub fn complete(&mut self, document: &Document, env: &Env, keyring: &Keyring) -> NewNames {
        let now = env.now();
        let mut new = NewNames::default();
        for name in document.workspaces.keys() {
            if !self.workspaces.contains_key(name) {
                let id = WorkspaceId::new(now, env.bytes());
                self.workspaces.insert(name.clone(), id);
                new.workspaces.insert(name.clone(), id);
            }
        }
        for (name, doc) in &document.sources {
            let Some(&workspace) = self.workspaces.get(&doc.workspace) else {
                continue;
            };
            self.sources
                .entry((doc.workspace.clone(), name.clone()))
                .or_insert_with(|| {
                    let id = SourceId::new(now, env.bytes());
                    let token = new_token(env);
                    new.sources.push(NamedSource {
                        workspace,
                        name: name.clone(),
                        id,
                        token: keyring.seal(
                            &token_place(id),
                            token.expose().as_bytes(),
                            env.bytes(),
                        ),
                    });
                    (id, token)
                });
        }
        for (name, doc) in &document.destinations {
            let Some(&workspace) = self.workspaces.get(&doc.workspace) else {
                continue;
            };
            self.destinations
                .entry((doc.workspace.clone(), name.clone()))
                .or_insert_with(|| {
                    let id = DestinationId::new(now, env.bytes());
                    new.destinations.push(NamedDestination {
                        workspace,
                        name: name.clone(),
                        id,
                    });
                    id
                });
        }
        new
    }

    /// Ids for trying a document out: distinct, and good for nothing else.
    pub(super) fn provisional(document: &Document) -> Self {
        let mut count = 0_u32;
        let mut bytes = || {
            count += 1;
            let mut bytes = [0; 10];
            bytes[..4].copy_from_slice(&count.to_be_bytes());
            bytes
        };
        let at = Timestamp::UNIX_EPOCH;
        let mut names = Self::default();
        for name in document.workspaces.keys() {
            names
                .workspaces
                .insert(name.clone(), WorkspaceId::new(at, bytes()));
        }
        for (name, doc) in &document.sources {
            let id = SourceId::new(at, bytes());
            names.sources.insert(
                (doc.workspace.clone(), name.clone()),
                (id, Secret::new(id.to_string())),
            );
        }
        for (name, doc) in &document.destinations {
            names.destinations.insert(
                (doc.workspace.clone(), name.clone()),
                DestinationId::new(at, bytes()),
            );
        }
        names
    }

    /// Everything that has a name, or had one in an earlier revision.
    pub(super) fn targets(&self) -> impl Iterator<Item = Target> {
        let sources = self.sources.values().map(|(id, _)| Target::Source(*id));
        let destinations = self.destinations.values().copied();
        sources.chain(destinations.map(Target::Destination))
    }

    pub(super) fn source(&self, workspace: &str, name: &str) -> Option<(SourceId, &Secret)> {
        self.sources
            .get(&(workspace.to_owned(), name.to_owned()))
            .map(|(id, token)| (*id, token))
    }

    pub(super) fn destination(&self, workspace: &str, name: &str) -> Option<DestinationId> {
        self.destinations
            .get(&(workspace.to_owned(), name.to_owned()))
            .copied()
    }
}

/// 192 random bits, in letters that survive every form and header.
fn new_token(env: &Env) -> Secret {
    use base64::Engine as _;
    Secret::new(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(env.bytes::<24>()))
}

fn token_place(source: SourceId) -> String {
    format!("sources/{source}/token")
}

fn open_token(keyring: &Keyring, source: &NamedSource) -> Result<Secret, SealError> {
    let bytes = keyring.open(&token_place(source.id), &source.token)?;
    String::from_utf8(bytes)
        .map(Secret::new)
        .map_err(|_| SealError::Tampered)
}
