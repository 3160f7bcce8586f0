//! The CRM inside the product.

use super::Harness;
use super::world::{World, at, page};
use crate::{Error, NewSandboxObject, SandboxChange, SandboxFilter};
use serde_json::json;

fn object(world: &World, id: &str, key: Option<&str>) -> NewSandboxObject {
    NewSandboxObject {
        workspace: world.workspace,
        destination: world.destination,
        id: id.into(),
        object: "lead".into(),
        external_id: Some("src:1".into()),
        key: key.map(Into::into),
        fields: json!({"name": "İpek", "n": 1}).as_object().unwrap().clone(),
        now: at(1),
    }
}

/// ID-1: a key used before answers with what was made then.
pub async fn same_key_makes_one_object(harness: &dyn Harness) {
    let world = World::new(harness);
    let store = &world.store;
    let first = store
        .sandbox_create(object(&world, "1", Some("k")))
        .await
        .unwrap();
    let again = store
        .sandbox_create(object(&world, "2", Some("k")))
        .await
        .unwrap();
    assert_eq!(again, first);
    store
        .sandbox_create(object(&world, "3", Some("other")))
        .await
        .unwrap();
    store
        .sandbox_create(object(&world, "4", None))
        .await
        .unwrap();
    store
        .sandbox_create(object(&world, "5", None))
        .await
        .unwrap();
    let mut elsewhere = object(&world, "1", Some("k"));
    elsewhere.destination = emanet_core::ids::DestinationId::new(at(0), world.random());
    let elsewhere = store.sandbox_create(elsewhere).await.unwrap();
    assert_ne!(elsewhere.destination, first.destination);
    let all = store
        .sandbox_objects(SandboxFilter::default(), page(10))
        .await;
    assert_eq!(all.unwrap().rows.len(), 5);
    let taken = store.sandbox_create(object(&world, "1", None)).await;
    assert!(matches!(taken, Err(Error::Conflict(_))), "{taken:?}");
}

/// An update leaves the other fields alone.
pub async fn named_fields_are_replaced(harness: &dyn Harness) {
    let world = World::new(harness);
    world
        .store
        .sandbox_create(object(&world, "1", None))
        .await
        .unwrap();
    let change = |id: &str| SandboxChange {
        workspace: world.workspace,
        destination: world.destination,
        id: id.into(),
        fields: json!({"n": 2}).as_object().unwrap().clone(),
        now: at(2),
    };
    let changed = world.store.sandbox_update(change("1")).await.unwrap();
    assert_eq!(json!(changed.fields), json!({"name": "İpek", "n": 2}));
    assert_eq!((changed.created_at, changed.updated_at), (at(1), at(2)));
    let missing = world.store.sandbox_update(change("2")).await;
    assert!(matches!(missing, Err(Error::NotFound(_))), "{missing:?}");
}

/// ID-2: look-up by external id.
pub async fn objects_are_found_by_id_and_external_id(harness: &dyn Harness) {
    let world = World::new(harness);
    for n in 0..3 {
        let mut new = object(&world, &n.to_string(), None);
        new.external_id = Some(format!("src:{n}"));
        world.store.sandbox_create(new).await.unwrap();
    }
    let checks = [
        (
            SandboxFilter {
                external_id: Some("src:1".into()),
                ..SandboxFilter::default()
            },
            1,
        ),
        (
            SandboxFilter {
                id: Some("2".into()),
                ..SandboxFilter::default()
            },
            1,
        ),
        (
            SandboxFilter {
                object: Some("task".into()),
                ..SandboxFilter::default()
            },
            0,
        ),
        (
            SandboxFilter {
                destination: Some(world.destination),
                ..SandboxFilter::default()
            },
            3,
        ),
    ];
    for (filter, expected) in checks {
        let found = world.store.sandbox_objects(filter, page(10)).await.unwrap();
        assert_eq!(found.rows.len(), expected);
    }
    let first = world
        .store
        .sandbox_objects(SandboxFilter::default(), page(2))
        .await
        .unwrap();
    let page = crate::Page {
        after: first.next,
        limit: 2,
    };
    let second = world
        .store
        .sandbox_objects(SandboxFilter::default(), page)
        .await
        .unwrap();
    assert_eq!((second.rows.len(), second.next), (1, None));
}
