//! Secrets by reference.

use super::*;
use serde_json::{Value, json};

fn read(value: Value) -> Result<Reference, String> {
    Reference::read(&value)
}

#[test]
fn come_from_the_environment_a_file_or_the_text() {
    assert_eq!(
        read(json!({"env": "CRM_TOKEN"})),
        Ok(Reference::Env("CRM_TOKEN".into()))
    );
    assert_eq!(
        read(json!({"file": "/run/secrets/crm"})),
        Ok(Reference::File("/run/secrets/crm".into()))
    );
    assert_eq!(
        read(json!("abc")),
        Ok(Reference::Literal(Secret::new("abc")))
    );
    for wrong in [
        json!(""),
        json!(7),
        json!({}),
        json!({"env": "A B"}),
        json!({"env": "A", "file": "/b"}),
        json!({"file": "b"}),
        json!({"vault": "x"}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn a_file_is_read_when_used_without_its_last_line_break() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    let reference = Reference::File(path.clone());
    assert!(reference.resolve().unwrap_err().contains("cannot be read"));
    std::fs::write(&path, "one\r\n").unwrap();
    assert_eq!(reference.resolve(), Ok(Secret::new("one")));
    std::fs::write(&path, "two\n\n").unwrap();
    assert_eq!(reference.resolve(), Ok(Secret::new("two\n")));
    std::fs::write(&path, "\n").unwrap();
    assert!(reference.resolve().unwrap_err().contains("is empty"));
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let error = Reference::Env("EMANET_TEST_NOT_SET".into()).resolve();
    assert_eq!(
        error,
        Err("the environment variable EMANET_TEST_NOT_SET is not set where the server runs".into())
    );
    let error = Reference::Env("EMANET_TEST_NOT_SET".into()).resolve_here();
    assert_eq!(
        error,
        Err("the environment variable EMANET_TEST_NOT_SET is not set here; it must be set where the server runs".into()),
        "a check looks in its own shell"
    );
}
