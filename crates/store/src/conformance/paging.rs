//! Lists: each row once, no empty last page (H46), and no row that breaks a page (H59).

use super::Harness;
use super::world::{World, at, bury, page};
use crate::{Error, Filter, Page};
use emanet_core::classify::Class;
use emanet_core::step::EventState;
use std::collections::HashSet;

/// H46: exactly n, n + 1 and 2n rows, all of one instant.
pub async fn every_event_is_listed_once(harness: &dyn Harness) {
    let world = World::new(harness);
    let mut n_rows = 0;
    for (n_more, n_pages) in [(5, 1), (1, 2), (4, 2), (1, 3)] {
        for _ in 0..n_more {
            world.accept(&format!("{n_rows}")).await;
            n_rows += 1;
        }
        for workspace in [None, Some(world.workspace)] {
            let filter = Filter {
                workspace,
                ..Filter::default()
            };
            let (mut seen, mut pages) = (HashSet::new(), 0);
            let mut after = None;
            loop {
                let page = Page { after, limit: 5 };
                let listed = world.store.events(filter.clone(), page).await.unwrap();
                assert!(!listed.rows.is_empty());
                pages += 1;
                for event in listed.rows {
                    assert!(seen.insert(event.id));
                }
                after = listed.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!((seen.len(), pages), (n_rows, n_pages));
        }
    }
}

/// H46: rows that come in between pages neither repeat nor hide others.
pub async fn rows_that_come_between_pages_disturb_nothing(harness: &dyn Harness) {
    let world = World::new(harness);
    for n in 0..4 {
        world.accept_all(&[&format!("{n}")], at(n)).await;
    }
    let first = world
        .store
        .events(Filter::default(), page(2))
        .await
        .unwrap();
    world.accept_all(&["new"], at(9)).await;
    let page = Page {
        after: first.next,
        limit: 2,
    };
    let second = world.store.events(Filter::default(), page).await.unwrap();
    let refs = |rows: &[crate::EventSummary]| {
        rows.iter()
            .map(|row| row.source_ref.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(refs(&first.rows), ["3", "2"]);
    assert_eq!(refs(&second.rows), ["1", "0"]);
    assert_eq!(second.next, None);
}

/// Newest first, over all workspaces too.
pub async fn lists_over_workspaces_are_merged(harness: &dyn Harness) {
    let world = World::new(harness);
    for n in 0..6 {
        let mut receipt = world.receipt(&[&format!("{n}")], at(n));
        if n % 2 == 0 {
            receipt.workspace = emanet_core::ids::WorkspaceId::new(at(0), [9; 10]);
        }
        world.store.accept(receipt).await.unwrap();
    }
    let mut order = Vec::new();
    let mut after = None;
    loop {
        let page = Page { after, limit: 2 };
        let listed = world.store.events(Filter::default(), page).await.unwrap();
        order.extend(listed.rows.iter().map(|row| row.source_ref.clone()));
        after = listed.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(order, ["5", "4", "3", "2", "1", "0"]);
}

/// H46: the same for dead letters.
pub async fn dead_letters_are_listed_once(harness: &dyn Harness) {
    let world = World::new(harness);
    for n in 0..4 {
        world.ended(&format!("{n}"), bury()).await;
    }
    let store = &world.store;
    let first = store
        .dead_letters(Filter::default(), page(2))
        .await
        .unwrap();
    let page = Page {
        after: first.next,
        limit: 2,
    };
    let second = store.dead_letters(Filter::default(), page).await.unwrap();
    assert_eq!(second.next, None);
    let rows = first.rows.iter().chain(&second.rows);
    let ids: HashSet<_> = rows.map(|letter| letter.id).collect();
    assert_eq!(ids.len(), 4);
    let letter = &first.rows[0];
    let one = store.dead_letter(world.workspace, letter.id).await;
    assert_eq!(&one.unwrap(), letter);
    let none = store.dead_letter(world.workspace, world.dead_letter_id());
    assert!(matches!(none.await, Err(Error::NotFound(_))));
}

/// A limit of 0 is 1, one over the cap is the cap; a cursor that is none is refused.
pub async fn limits_and_cursors_are_checked(harness: &dyn Harness) {
    let world = World::new(harness);
    let refs: Vec<_> = (0..1001).map(|n| n.to_string()).collect();
    let refs: Vec<_> = refs.iter().map(String::as_str).collect();
    world.accept_all(&refs, at(0)).await;
    for (limit, expected) in [(0, 1), (1, 1), (1000, 1000), (u32::MAX, 1000)] {
        let listed = world.store.events(Filter::default(), page(limit)).await;
        assert_eq!(listed.unwrap().rows.len(), expected);
    }
    let page = Page {
        after: Some("no cursor".into()),
        limit: 5,
    };
    let refused = world.store.events(Filter::default(), page).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
}

/// Events are found by state, text, time and by what is wrong with them.
pub async fn events_are_found_by_every_part_of_a_filter(harness: &dyn Harness) {
    let world = World::new(harness);
    world.ended("dead", bury()).await;
    world.accept_all(&["fresh"], at(9)).await;
    let checks = [
        ("all", Filter::default(), 2),
        (
            "source",
            Filter {
                source: Some(world.source),
                ..Filter::default()
            },
            2,
        ),
        (
            "state",
            Filter {
                state: Some(EventState::Dead),
                ..Filter::default()
            },
            1,
        ),
        (
            "target",
            Filter {
                target: Some(world.crm()),
                ..Filter::default()
            },
            1,
        ),
        (
            "its source",
            Filter {
                target: Some(world.inbox()),
                ..Filter::default()
            },
            2,
        ),
        (
            "class",
            Filter {
                class: Some(Class::PermanentData),
                ..Filter::default()
            },
            1,
        ),
        (
            "cause",
            Filter {
                cause: Some("bad-field".into()),
                ..Filter::default()
            },
            1,
        ),
        (
            "no cause",
            Filter {
                cause: Some("x".into()),
                ..Filter::default()
            },
            0,
        ),
        (
            "step",
            Filter {
                step: Some("crm".into()),
                ..Filter::default()
            },
            1,
        ),
        (
            "since",
            Filter {
                since: Some(at(9)),
                ..Filter::default()
            },
            1,
        ),
        (
            "until",
            Filter {
                until: Some(at(9)),
                ..Filter::default()
            },
            1,
        ),
        (
            "open",
            Filter {
                open: Some(true),
                ..Filter::default()
            },
            1,
        ),
        (
            "name",
            Filter {
                text: Some("Çağlar".into()),
                ..Filter::default()
            },
            1,
        ),
        (
            "ref",
            Filter {
                text: Some("RES".into()),
                ..Filter::default()
            },
            1,
        ),
        (
            "wildcard",
            Filter {
                text: Some("%".into()),
                ..Filter::default()
            },
            0,
        ),
    ];
    for (what, filter, expected) in checks {
        let found = world.store.events(filter, page(10)).await.unwrap();
        assert_eq!(found.rows.len(), expected, "{what}");
    }
}
