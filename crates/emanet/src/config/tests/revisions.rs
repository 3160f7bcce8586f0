//! Configurations in the store: applied, started with, loaded back.

use super::*;
use crate::installation::Installation;
use emanet_core::ids::{DestinationId, SourceId};
use emanet_core::seal::Keyring;
use emanet_core::step::Kind;
use emanet_store::sqlite::SqliteStore;
use std::sync::Arc;
use tempfile::TempDir;

const META: &str = r#"
[sources.web]
kind = "web_form"
[sources.meta]
kind = "meta_lead_ads"
app_secret = "app-secret-in-the-file"
verify_token = "verify-token-in-the-file"
page_token = { env = "PATH" }
token = "a-token-of-our-own-choice"
[destinations.crm]
kind = "sandbox"
"#;

struct House {
    keeper: Keeper,
    _dir: TempDir,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::seeded(7);
        let store = SqliteStore::open_inline(dir.path()).unwrap();
        Self {
            keeper: Keeper {
                store: Arc::new(store),
                keyring: Arc::new(Keyring::generate(env.bytes())),
                env,
            },
            _dir: dir,
        }
    }

    async fn apply(&self, text: &str, by: &str) -> InForce {
        self.keeper.apply(&file(text), by).await.unwrap().0
    }
}

fn file(text: &str) -> File {
    File {
        name: "emanet.toml".into(),
        text: Secret::new(text),
    }
}

fn source(installation: &Installation, name: &str) -> (SourceId, String) {
    let found = installation.sources.values().find(|s| s.name == name);
    found.map(|s| (s.id, s.token.expose().to_owned())).unwrap()
}

fn destination(installation: &Installation, name: &str) -> DestinationId {
    let mut all = installation.destinations.values();
    all.find(|d| d.name == name).unwrap().id
}

/// GS-1: without a configuration there is a form, a sandbox and the default flow between them.
#[tokio::test]
async fn the_first_start_makes_a_form_and_a_sandbox() {
    let house = House::new();
    let first = house.keeper.start(None).await.unwrap();
    assert_eq!(
        (first.revision.number, first.revision.by.as_str()),
        (1, BY_DEFAULT)
    );
    let web = first.installation.sources.values().next().unwrap();
    let flow = web.flow.as_ref().unwrap();
    let steps: Vec<_> = flow
        .steps
        .iter()
        .map(|s| (s.plan.kind, s.plan.object.as_str(), s.plan.needs.len()))
        .collect();
    assert_eq!(
        steps,
        [
            (Kind::Crm, "lead", 0),
            (Kind::Task, "task", 1),
            (Kind::CheckTask, "task", 1)
        ]
    );
    let again = house.keeper.start(None).await.unwrap();
    assert_eq!(again.revision, first.revision);
    assert_eq!(again.installation.tokens, first.installation.tokens);
}

/// Names keep their ids and tokens for ever: they are part of every key at a vendor (design 9.3).
#[tokio::test]
async fn ids_and_tokens_survive_every_revision() {
    let house = House::new();
    let first = house.apply(META, "test").await;
    let second = house
        .apply(
            &META.replace("a-token-of-our-own-choice", "another-token-of-ours"),
            "test",
        )
        .await;
    let without = house.apply("", "test").await;
    assert!(without.installation.sources.is_empty());
    let back = house.apply(META, "test").await;
    assert_eq!(
        [1, 2, 3, 4],
        [&first, &second, &without, &back].map(|f| f.revision.number)
    );
    for name in ["web", "meta"] {
        assert_eq!(
            source(&back.installation, name),
            source(&first.installation, name)
        );
    }
    assert_eq!(
        source(&second.installation, "meta").0,
        source(&first.installation, "meta").0
    );
    assert_eq!(
        source(&second.installation, "meta").1,
        "another-token-of-ours"
    );
    assert_eq!(
        destination(&back.installation, "crm"),
        destination(&first.installation, "crm")
    );
    let loaded = house.keeper.load().await.unwrap().unwrap();
    assert_eq!(loaded.revision, back.revision);
    assert_eq!(loaded.installation.tokens, back.installation.tokens);
}

#[tokio::test]
async fn the_same_file_makes_no_new_revision() {
    let house = House::new();
    house.apply(META, "test").await;
    assert_eq!(house.apply(META, "test").await.revision.number, 1);
}

#[tokio::test]
async fn what_is_wrong_is_not_stored() {
    let house = House::new();
    house.apply(META, "test").await;
    let broken = META.replace("sandbox", "sandbx");
    assert!(matches!(
        house.keeper.apply(&file(&broken), "test").await,
        Err(ReviseError::Config(_))
    ));
    let unresolved = META.replace("PATH", "EMANET_TEST_NOT_SET");
    assert!(matches!(
        house.keeper.apply(&file(&unresolved), "test").await,
        Err(ReviseError::Config(_))
    ));
    let stored = house.keeper.store.configuration().await.unwrap().unwrap();
    assert_eq!(stored.revision.number, 1);
}

/// Design 9.12: a file is applied at start if it is new, and refused if it would undo an edit.
#[tokio::test]
async fn a_file_does_not_undo_what_was_edited_since() {
    let house = House::new();
    house.keeper.start(None).await.unwrap();
    let start = |text: &str| {
        let file = file(text);
        let keeper = house.keeper.clone();
        async move { keeper.start(Some(&file)).await }
    };
    assert_eq!(
        start(META).await.unwrap().revision.number,
        2,
        "the default is no edit"
    );
    assert_eq!(start(META).await.unwrap().revision.number, 2, "not changed");
    let paused = META.replace("[sources.meta]", "[sources.meta]\npaused = true");
    assert_eq!(
        start(&paused).await.unwrap().revision.number,
        3,
        "the file changed"
    );
    house.apply(META, "ayse").await;
    assert_eq!(
        start(META).await.unwrap().revision.number,
        4,
        "the same as the edit"
    );
    let error = start(&paused).await.unwrap_err().to_string();
    assert!(error.contains("revision 4, which ayse applied"), "{error}");
    assert!(
        error.contains("\n+ sources.meta.paused = true\n"),
        "{error}"
    );
    house.apply(&paused, "ayse").await;
    assert_eq!(start(&paused).await.unwrap().revision.number, 5);
}

/// Invariant 7: no secret in what is shown, printed or compared, and none readable in the store.
#[tokio::test]
async fn secrets_are_nowhere_to_be_seen() {
    let house = House::new();
    let in_force = house.apply(META, "test").await;
    let changed = META.replace("app-secret-in-the-file", "app-secret-that-is-new");
    let change = house.keeper.preview(&file(&changed)).await.unwrap();
    assert_eq!(
        change.differences,
        [r#"~ sources.meta.app_secret = "[secret]" (changed)"#]
    );
    let stored = house.keeper.store.configuration().await.unwrap().unwrap();
    let shown = [
        in_force.document.masked().to_string(),
        format!("{in_force:?}"),
        format!("{:?}", file(META)),
        String::from_utf8_lossy(&stored.revision.document).into_owned(),
        String::from_utf8_lossy(&stored.sources[0].token).into_owned(),
    ];
    let generated = source(&in_force.installation, "web").1;
    for text in shown {
        for secret in [
            "secret-in-the-file",
            "token-in-the-file",
            "our-own-choice",
            &generated,
        ] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    let masked = in_force.document.masked();
    assert_eq!(
        masked["sources"]["meta"]["page_token"]["env"], "PATH",
        "a reference is no secret"
    );
}

#[tokio::test]
async fn another_key_does_not_open_the_configuration() {
    let house = House::new();
    house.apply(META, "test").await;
    let keeper = Keeper {
        keyring: Arc::new(Keyring::generate([9; 72])),
        ..house.keeper.clone()
    };
    let error = keeper.start(None).await.unwrap_err();
    assert!(
        error.to_string().contains("Put back the emanet.key"),
        "{error}"
    );
}

/// GS-1: each layer stands alone.
#[tokio::test]
async fn a_source_may_receive_only() {
    let house = House::new();
    let check = async |text: &str, notes: usize| {
        let (in_force, change) = house.keeper.apply(&file(text), "test").await.unwrap();
        assert!(
            in_force
                .installation
                .sources
                .values()
                .all(|s| s.flow.is_none()),
            "{text}"
        );
        assert_eq!(change.notes.len(), notes, "{text}: {:?}", change.notes);
    };
    check("sources.web = { kind = 'web_form' }", 1).await;
    check("sources.web = { kind = 'web_form', flow = false }", 0).await;
    check(
        "sources.web = { kind = 'web_form', flow = 'none' }\ndestinations.crm.kind = 'sandbox'",
        0,
    )
    .await;
}

#[tokio::test]
async fn two_sources_never_share_a_token() {
    let house = House::new();
    let both = META.replace(
        "[sources.meta]",
        "token = \"a-token-of-our-own-choice\"\n[sources.meta]",
    );
    let error = house.keeper.apply(&file(&both), "test").await.unwrap_err();
    assert!(
        error.to_string().contains("another source has this token"),
        "{error}"
    );
}

#[tokio::test]
async fn what_needs_a_restart_is_said() {
    let house = House::new();
    house.apply("", "test").await;
    let check = async |text: &str, expected: &[&str]| {
        let change = house.keeper.preview(&file(text)).await.unwrap();
        assert_eq!(change.notes, expected, "{text}");
    };
    let note = "[server] and [network] take effect at the next start";
    check("server.listen = '127.0.0.1:1'", &[note]).await;
    check("network.allow_private = ['10.0.0.0/8']", &[note]).await;
    check("workspaces.default.language = 'en'", &[]).await;
}
