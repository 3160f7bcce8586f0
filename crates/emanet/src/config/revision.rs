//! Putting a configuration into force: numbered revisions in the store, sealed, loaded back as an [`Installation`].

use super::build::build;
use super::document::{Document, FlowChoice};
use super::names::Names;
use super::parse::parse;
use super::problem::ConfigError;
use super::secret::Reference;
use crate::env::Env;
use crate::installation::Installation;
use crate::sandbox::Faults;
use emanet_core::ids::DestinationId;
use emanet_core::seal::{Keyring, SealError};
use emanet_store::{Configuration, NewRevision, Revision, Store};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Who applied a revision that was read from a file at start.
pub const BY_FILE: &str = "file";
/// Who applied the configuration Emanet starts with when it is given none.
pub const BY_DEFAULT: &str = "default";

/// What Emanet starts with when it is given nothing.
const DEFAULT_TEXT: &str = include_str!("default.toml");
/// What the sealed document is bound to.
const DOCUMENT_PLACE: &str = "configuration/document";

/// A configuration file: what it is called, and what is in it.
#[derive(Debug, Clone)]
pub struct File {
    /// Name, for messages.
    pub name: String,
    /// Its text; it may hold secrets.
    pub text: emanet_core::secret::Secret,
}

/// What is in force.
#[derive(Debug)]
pub struct InForce {
    /// Number, who and when.
    pub revision: Stamp,
    /// As written.
    pub document: Document,
    /// Ready to use.
    pub installation: Installation,
}

impl InForce {
    /// What each sandbox is configured to do wrong; the loader sets it at start and whenever a configuration is applied.
    pub fn sandbox_faults(&self) -> Vec<(DestinationId, Faults)> {
        let destinations = self.installation.destinations.values();
        destinations
            .filter_map(|destination| {
                let doc = self.document.destinations.get(&destination.name)?;
                let faults = super::build::faults(doc).ok()??;
                Some((destination.id, faults))
            })
            .collect()
    }
}

/// A revision without its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Number; counts from 1.
    pub number: u64,
    /// SHA-256 of the file it came from, hexadecimal.
    pub digest: String,
    /// Who applied it.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// What applying a file changes, or has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// One line per key; empty if nothing changes.
    pub differences: Vec<String>,
    /// What is worth knowing, though not wrong.
    pub notes: Vec<String>,
}

/// Why a configuration is not in force.
#[derive(Debug, thiserror::Error)]
pub enum ReviseError {
    /// It is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The one in the store cannot be opened.
    #[error(
        "the configuration in the store cannot be opened: {0}. Put back the emanet.key (or EMANET_KEY) this data directory was made with"
    )]
    Seal(#[from] SealError),
    /// The store failed, or another revision was applied at the same moment.
    #[error(transparent)]
    Store(#[from] emanet_store::Error),
    /// The configuration was edited after the file was last applied; the file would undo that (design 9.12).
    #[error(
        "{file} differs from revision {revision}, which {by} applied after the file: starting with it would undo that.\n{}\nEither bring the file up to date, or put it into force with: emanet apply {file}",
        .differences.join("\n")
    )]
    Edited {
        /// The file.
        file: String,
        /// Revision in force.
        revision: u64,
        /// Who applied it.
        by: String,
        /// What the file would change.
        differences: Vec<String>,
    },
}

/// Keeps the configuration of one installation.
#[derive(Debug, Clone)]
pub struct Keeper {
    /// Where revisions are.
    pub store: Arc<dyn Store>,
    /// What they are sealed with.
    pub keyring: Arc<Keyring>,
    /// Clock and random source.
    pub env: Env,
}

impl Keeper {
    /// What to start with: the file, if it is new; else what is in the store; else the default.
    ///
    /// # Errors
    /// [`ReviseError::Edited`] if the file is new and the store was edited since the last file.
    pub async fn start(&self, file: Option<&File>) -> Result<InForce, ReviseError> {
        let stored = self.store.configuration().await?;
        let Some(stored) = stored else {
            return match file {
                Some(file) => self.revise(None, file, BY_FILE).await,
                None => self.revise(None, &default_file(), BY_DEFAULT).await,
            };
        };
        let Some(file) = file.filter(|file| digest(file) != stored.revision.digest) else {
            return self.open(&stored);
        };
        let by = stored.revision.by.as_str();
        if by != BY_FILE && by != BY_DEFAULT {
            let document = parse(&file.name, file.text.expose())?;
            return Err(ReviseError::Edited {
                file: file.name.clone(),
                revision: stored.revision.number,
                by: by.to_owned(),
                differences: self.document(&stored.revision)?.differences(&document),
            });
        }
        self.revise(Some(stored), file, BY_FILE).await
    }

    /// What is in force; nothing before the first start.
    ///
    /// # Errors
    /// If it cannot be opened or built, for example because a secret it refers to is gone.
    pub async fn load(&self) -> Result<Option<InForce>, ReviseError> {
        match self.store.configuration().await? {
            Some(stored) => self.open(&stored).map(Some),
            None => Ok(None),
        }
    }

    /// Says what applying a file would change. Everything is tried out; nothing is kept.
    ///
    /// # Errors
    /// Whatever would be wrong with it.
    pub async fn preview(&self, file: &File) -> Result<Change, ReviseError> {
        let document = parse(&file.name, file.text.expose())?;
        let stored = self.store.configuration().await?;
        let mut names = self.names(stored.as_ref())?;
        names.complete(&document, &self.env, &self.keyring);
        build(&document, 0, &names, &Reference::resolve)?;
        self.change(stored.as_ref(), &document)
    }

    /// Puts a file into force as the next revision. A file that is in force already makes no new one.
    ///
    /// # Errors
    /// Whatever is wrong with it; then nothing has changed.
    pub async fn apply(&self, file: &File, by: &str) -> Result<(InForce, Change), ReviseError> {
        let stored = self.store.configuration().await?;
        let document = parse(&file.name, file.text.expose())?;
        let change = self.change(stored.as_ref(), &document)?;
        let in_force = match stored {
            Some(stored) if stored.revision.digest == digest(file) => self.open(&stored)?,
            stored => self.revise(stored, file, by).await?,
        };
        Ok((in_force, change))
    }

    /// Builds first, stores then: what is stored can be started with.
    async fn revise(
        &self,
        stored: Option<Configuration>,
        file: &File,
        by: &str,
    ) -> Result<InForce, ReviseError> {
        let document = parse(&file.name, file.text.expose())?;
        let based_on = stored.as_ref().map_or(0, |s| s.revision.number);
        let mut names = self.names(stored.as_ref())?;
        let new = names.complete(&document, &self.env, &self.keyring);
        build(&document, based_on + 1, &names, &Reference::resolve)?;
        let sealed = self.keyring.seal(
            DOCUMENT_PLACE,
            file.text.expose().as_bytes(),
            self.env.bytes(),
        );
        let stored = self
            .store
            .apply(NewRevision {
                based_on,
                digest: digest(file),
                document: sealed,
                by: by.to_owned(),
                at: self.env.now(),
                workspaces: new.workspaces,
                sources: new.sources,
                destinations: new.destinations,
            })
            .await?;
        self.open(&stored)
    }

    fn open(&self, stored: &Configuration) -> Result<InForce, ReviseError> {
        let document = self.document(&stored.revision)?;
        let names = self.names(Some(stored))?;
        let revision = &stored.revision;
        Ok(InForce {
            installation: build(&document, revision.number, &names, &Reference::resolve)?,
            document,
            revision: Stamp {
                number: revision.number,
                digest: revision.digest.clone(),
                by: revision.by.clone(),
                at: revision.at,
            },
        })
    }

    fn document(&self, revision: &Revision) -> Result<Document, ReviseError> {
        let text = self.keyring.open(DOCUMENT_PLACE, &revision.document)?;
        let text = String::from_utf8(text).map_err(|_| SealError::Tampered)?;
        Ok(parse(&format!("revision {}", revision.number), &text)?)
    }

    fn names(&self, stored: Option<&Configuration>) -> Result<Names, SealError> {
        stored.map_or(Ok(Names::default()), |stored| {
            Names::of(stored, &self.keyring)
        })
    }

    fn change(
        &self,
        stored: Option<&Configuration>,
        document: &Document,
    ) -> Result<Change, ReviseError> {
        let mut change = Change {
            differences: Vec::new(),
            notes: notes(document),
        };
        if let Some(stored) = stored {
            let before = self.document(&stored.revision)?;
            change.differences = before.differences(document);
            if before.server != document.server || before.network != document.network {
                change
                    .notes
                    .push("[server] and [network] take effect at the next start".into());
            }
        }
        Ok(change)
    }
}

/// The configuration Emanet starts with when it is given none.
pub fn default_file() -> File {
    File {
        name: "the built-in configuration".into(),
        text: emanet_core::secret::Secret::new(DEFAULT_TEXT),
    }
}

/// What is worth knowing about a document, though it is not wrong.
pub fn notes(document: &Document) -> Vec<String> {
    let has_crm = |workspace: &str| {
        document
            .destinations
            .values()
            .any(|d| d.workspace == workspace && d.kind.module == "CRM")
    };
    document
        .sources
        .iter()
        .filter(|(_, s)| s.flow == FlowChoice::Default && !has_crm(&s.workspace))
        .map(|(name, _)| {
            format!("leads of source {name:?} are stored and go nowhere: its workspace has no CRM and it names no flow")
        })
        .collect()
}

fn digest(file: &File) -> String {
    Sha256::digest(file.text.expose())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
