//! The data directory: whose it is, and its key.

use super::*;
use crate::config::data_dir::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn belongs_to_its_owner_alone() {
    let outer = tempfile::tempdir().unwrap();
    let dir = DataDir::new(outer.path().join("a/data"));
    let lock = dir.lock().unwrap();
    assert_eq!(mode(dir.path()), 0o700);
    assert_eq!(mode(&dir.path().join("emanet.lock")), 0o600);
    drop(lock);
    fs::set_permissions(dir.path(), Permissions::from_mode(0o750)).unwrap();
    let message = dir.lock().unwrap_err().to_string();
    assert!(
        message.contains("(mode 0750); close it with: chmod 700 "),
        "{message}"
    );
}

#[test]
fn a_second_server_is_refused_by_the_first_ones_process_id() {
    let outer = tempfile::tempdir().unwrap();
    let dir = DataDir::new(outer.path().join("data"));
    let first = dir.lock().unwrap();
    let message = dir.lock().unwrap_err().to_string();
    let pid = format!("(process {})", std::process::id());
    assert!(message.contains(&pid), "{message}");
    drop(first);
    dir.lock().expect("the first has gone");
}

#[test]
fn the_key_is_made_once_and_read_ever_after() {
    let outer = tempfile::tempdir().unwrap();
    let dir = DataDir::new(outer.path().join("data"));
    let lock = dir.lock().unwrap();
    let made = dir.keyring(&lock, None, &Env::seeded(1)).unwrap();
    assert_eq!(mode(&dir.key_file()), 0o600);
    let read = dir.keyring(&lock, None, &Env::seeded(2)).unwrap();
    assert_eq!(read.to_text(), made.to_text());
    let given = dir
        .keyring(&lock, Some(made.to_text()), &Env::seeded(3))
        .unwrap();
    assert_eq!(given.to_text(), made.to_text());
    let empty = dir.keyring(&lock, Some(Secret::new("")), &Env::seeded(3));
    assert!(matches!(empty, Err(DataDirError::Key { .. })));
    fs::set_permissions(dir.key_file(), Permissions::from_mode(0o640)).unwrap();
    let open = dir.keyring(&lock, None, &Env::seeded(2));
    assert!(matches!(open, Err(DataDirError::Open { mode: 0o640, .. })));
}

#[test]
fn data_without_its_key_is_not_started_with_a_new_one() {
    let outer = tempfile::tempdir().unwrap();
    let dir = DataDir::new(outer.path().join("data"));
    let lock = dir.lock().unwrap();
    fs::write(dir.database(), "").unwrap();
    let message = dir
        .keyring(&lock, None, &Env::seeded(1))
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("put the key back from your backup"),
        "{message}"
    );
    assert!(!dir.key_file().exists());
}
