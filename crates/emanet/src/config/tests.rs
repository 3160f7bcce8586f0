use super::*;
use crate::env::Env;
use emanet_core::secret::Secret;

/// Every message of a configuration that is wrong.
fn problems(text: &str) -> Vec<String> {
    match check("emanet.toml", text, &Reference::resolve) {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

/// Each broken file gives exactly these messages, in the order of its lines.
#[track_caller]
fn check_problems(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "{text}");
}

#[test]
fn what_is_no_toml_is_named_with_its_line() {
    let found = problems("[server]\nlisten = \n[network\n");
    assert!(
        found[0].starts_with("emanet.toml:2: this is no TOML: "),
        "{found:?}"
    );
    check_problems(
        "[server]\nbody_bytes_max = 99999999999999999999\n",
        &["emanet.toml:2: server.body_bytes_max: this number is out of range"],
    );
}

#[test]
fn every_mistake_is_named_at_once_with_line_and_key() {
    check_problems(
        r#"[server]
lissten = "127.0.0.1:1"
listen = "localhost"
public_url = "ftp://example.com"
trusted_proxies = ["10.0.0.0/8"]
body_bytes_max = 12

[network]
allow_private = ["127.0.0.0/8", "home", 7]
extra_root_certificates = ["ca.pem"]

[workspaces.default]
language = "de"
time_zone = "Istanbul"
suspended = "no"

[colours]
red = 1
"#,
        &[
            "emanet.toml:2: server.lissten: unknown key. Did you mean \"listen\"?",
            "emanet.toml:3: server.listen: expected an address and a port (\"127.0.0.1:7420\"), found \"localhost\"",
            "emanet.toml:4: server.public_url: expected http:// or https://, a host and nothing behind the path",
            "emanet.toml:5: server.trusted_proxies[0]: expected an address (\"10.0.0.7\"), found \"10.0.0.0/8\"",
            "emanet.toml:6: server.body_bytes_max: expected a whole number from 1024 to 67108864, found 12",
            "emanet.toml:9: network.allow_private[1]: expected a range of addresses (\"10.0.0.0/8\"), found \"home\"",
            "emanet.toml:9: network.allow_private[2]: expected a range of addresses (\"10.0.0.0/8\"), found 7",
            "emanet.toml:10: network.extra_root_certificates[0]: expected a full path to a PEM file, found \"ca.pem\"",
            "emanet.toml:13: workspaces.default.language: expected \"tr\", \"en\", found \"de\"",
            "emanet.toml:14: workspaces.default.time_zone: there is no time zone \"Istanbul\"; write it like \"Europe/Istanbul\"",
            "emanet.toml:15: workspaces.default.suspended: expected true or false, found \"no\"",
            "emanet.toml:17: colours: unknown key. Known here: \"server\", \"network\", \"workspaces\", \"sources\", \"destinations\", \"flows\".",
        ],
    );
}

#[test]
fn steps_are_checked_one_by_one() {
    check_problems(
        r#"[flows.a]
[[flows.a.steps]]
name = "CRM yazımı"
kind = "crm"
[[flows.a.steps]]
name = "x"
kind = "mail"
[[flows.a.steps]]
kind = "task"
retry = { atempts_max = 3, base_ms = 0 }
fields = { title = 1 }
[flows.b]
"#,
        &[
            "emanet.toml:3: flows.a.steps[0].name: a step's name has 1 to 32 of a-z, 0-9, _ and -: it is part of keys at the vendor",
            "emanet.toml:7: flows.a.steps[1].kind: expected \"crm\", \"task\", \"check_task\", found \"mail\"",
            "emanet.toml:8: flows.a.steps[2]: `name` is missing; add name = \"crm\"",
            "emanet.toml:10: flows.a.steps[2].retry.atempts_max: unknown key. Did you mean \"attempts_max\"?",
            "emanet.toml:10: flows.a.steps[2].retry.base_ms: expected a whole number from 1 to 86400000, found 0",
            "emanet.toml:11: flows.a.steps[2].fields.title: expected a text in quotes, found 1",
            "emanet.toml:12: flows.b: a flow needs at least one step; a source that only receives has flow = false",
        ],
    );
}

#[test]
fn an_empty_file_is_a_configuration() {
    let document = parse("emanet.toml", "").unwrap();
    assert_eq!(document.server, Server::default());
    assert_eq!(document.network, Network::default());
    assert_eq!(
        document.workspaces.into_keys().collect::<Vec<_>>(),
        [DEFAULT_WORKSPACE]
    );
}

mod secrets {
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
            Err(
                "the environment variable EMANET_TEST_NOT_SET is not set where the server runs"
                    .into()
            )
        );
    }
}

mod data_directory {
    use super::data_dir::*;
    use super::*;
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
}
