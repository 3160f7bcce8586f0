//! The data directory: who may read it, which server holds it, and the key beside the data.
//!
//! Nobody but the owner gets in (0700, files 0600), and one process at a time works in it: the embedded database has one
//! writer.

use crate::env::Env;
use emanet_core::seal::{Keyring, SealError};
use emanet_core::secret::Secret;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Environment variable that gives the key to several nodes.
pub const KEY_VARIABLE: &str = "EMANET_KEY";

/// Paths in a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDir(PathBuf);

/// Proof that this process, and no other, works in the directory. Given up when dropped, and when the process ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process works in it.
    #[error(
        "another emanet works in {}{}: stop it, or give this one a directory of its own with --data-dir",
        .dir.display(), .pid.map_or(String::new(), |pid| format!(" (process {pid})"))
    )]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// Its process, as far as it said.
        pid: Option<u32>,
    },
    /// Others may read it.
    #[error(
        "{0} is open to other users (mode {mode:04o}); close it with: chmod {wanted:o} {0}",
        .path.display()
    )]
    Open {
        /// What is open.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// The mode it should have.
        wanted: u32,
    },
    /// There is data, but no key for it.
    #[error(
        "{} is missing, but {} is there and was sealed with it: put the key back from your backup, or set EMANET_KEY",
        .key.display(), .database.display()
    )]
    KeyMissing {
        /// The key file.
        key: PathBuf,
        /// The database.
        database: PathBuf,
    },
    /// The key cannot be read.
    #[error("the key in {place} cannot be used: {source}")]
    Key {
        /// Where it was read from.
        place: String,
        /// Why.
        source: SealError,
    },
    /// The file system says no.
    #[error("{what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
}

impl DataDir {
    /// The directory of that path; nothing is touched yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The embedded database.
    pub fn database(&self) -> PathBuf {
        self.0.join("emanet.db")
    }

    /// The local socket of the running server.
    pub fn socket(&self) -> PathBuf {
        self.0.join("emanet.sock")
    }

    /// The key file.
    pub fn key_file(&self) -> PathBuf {
        self.0.join("emanet.key")
    }

    /// Whether there is an installation in it.
    pub fn exists(&self) -> bool {
        self.database().exists()
    }

    /// Makes the directory if it is not there, checks who may read it, and takes it for this process.
    ///
    /// # Errors
    /// If others may read it, or another process has it.
    pub fn lock(&self) -> Result<Lock, DataDirError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(|source| io_error("cannot make the data directory", &self.0, source))?;
        check_mode(&self.0, 0o700)?;
        let path = self.0.join("emanet.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|source| io_error("cannot open", &path, source))?;
        match file.try_lock() {
            Ok(()) => {
                write_pid(&mut file).map_err(|source| io_error("cannot write", &path, source))?;
                Ok(Lock(file))
            }
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse {
                dir: self.0.clone(),
                pid: read_pid(&mut file),
            }),
            Err(TryLockError::Error(source)) => Err(io_error("cannot lock", &path, source)),
        }
    }

    /// The keys: of the environment if given, else of the key file, which is made if the directory is new. Wants the lock,
    /// so that two first starts cannot make two keys.
    ///
    /// # Errors
    /// If the key cannot be read or is open to others, or is gone while its data is there.
    pub fn keyring(
        &self,
        _lock: &Lock,
        from_environment: Option<Secret>,
        env: &Env,
    ) -> Result<Keyring, DataDirError> {
        if let Some(text) = from_environment {
            return parse_key(KEY_VARIABLE.into(), text.expose());
        }
        let path = self.key_file();
        match fs::read_to_string(&path) {
            Ok(text) => {
                check_mode(&path, 0o600)?;
                parse_key(path.display().to_string(), &text)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.exists() {
                    return Err(DataDirError::KeyMissing {
                        key: path,
                        database: self.database(),
                    });
                }
                let keyring = Keyring::generate(env.bytes());
                self.write_key(&path, &keyring.to_text())
                    .map_err(|source| io_error("cannot write the key file", &path, source))?;
                Ok(keyring)
            }
            Err(source) => Err(io_error("cannot read the key file", &path, source)),
        }
    }

    /// Checks again that nobody else may read the directory or the key.
    ///
    /// # Errors
    /// Which of them is open.
    pub fn check_modes(&self) -> Result<(), DataDirError> {
        check_mode(&self.0, 0o700)?;
        if self.key_file().exists() {
            check_mode(&self.key_file(), 0o600)?;
        }
        Ok(())
    }

    /// Written aside, made durable, then put in place: there is never half a key.
    fn write_key(&self, path: &Path, text: &Secret) -> io::Result<()> {
        let aside = path.with_extension("key.new");
        match fs::remove_file(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)?;
        file.write_all(text.expose().as_bytes())?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        File::open(&self.0)?.sync_all()
    }
}

/// The key in the environment, if one is given.
pub fn key_from_environment() -> Option<Secret> {
    // One that is set but empty is given, and refused when it is read: a second key must not be made in silence.
    std::env::var(KEY_VARIABLE).ok().map(Secret::new)
}

fn parse_key(place: String, text: &str) -> Result<Keyring, DataDirError> {
    Keyring::parse(text).map_err(|source| DataDirError::Key { place, source })
}

/// Refuses what others than the owner may use.
fn check_mode(path: &Path, wanted: u32) -> Result<(), DataDirError> {
    let mode = fs::metadata(path)
        .map_err(|source| io_error("cannot look at", path, source))?
        .permissions()
        .mode()
        & 0o7777;
    if mode & 0o077 != 0 {
        return Err(DataDirError::Open {
            path: path.into(),
            mode,
            wanted,
        });
    }
    Ok(())
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> DataDirError {
    DataDirError::Io {
        what,
        path: path.into(),
        source,
    }
}
