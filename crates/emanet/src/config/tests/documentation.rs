//! `docs/configuration.md` can be copied, and names every key there is.

use super::super::build::check;
use super::super::parse::parse;
use super::super::secret::Reference;
use emanet_connectors::{destinations, sources};
use emanet_core::secret::Secret;

const PAGE: &str = include_str!("../../../../../docs/configuration.md");

/// The configurations the page shows.
fn blocks() -> Vec<&'static str> {
    PAGE.split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect()
}

#[test]
fn every_configuration_of_the_page_is_valid() {
    assert!(blocks().len() >= 2);
    for block in blocks() {
        let resolve = |_: &Reference| Ok(Secret::new("a-value-for-the-check"));
        let checked = check("docs/configuration.md", block, &resolve);
        assert!(
            checked.is_ok(),
            "{}",
            checked.err().map(|e| e.to_string()).unwrap_or_default()
        );
    }
}

/// The complete example has the two destinations and the three kinds of steps that people look for.
#[test]
fn the_example_shows_several_destinations() {
    let document = parse("docs/configuration.md", blocks()[0]).unwrap();
    assert_eq!(
        document.destinations.keys().collect::<Vec<_>>(),
        ["crm", "list"]
    );
    let steps = &document.flows["sales"].steps;
    let named: Vec<_> = steps.iter().map(|s| s.kind.as_str()).collect();
    assert_eq!(named, ["crm", "task", "check_task", "crm"]);
}

/// Whatever a table knows, which is what its refusal of an unknown key lists, stands on the page. A connector's own settings stand on the connector's.
#[test]
fn every_key_is_on_the_page() {
    let check = |table: &str| {
        let text = format!("{table}\nzzzzzzzzzzzz = 1\n");
        let refused = parse("emanet.toml", &text).unwrap_err().to_string();
        let known = refused
            .lines()
            .find_map(|line| line.split_once("zzzzzzzzzzzz: unknown key. Known here: "))
            .map(|(_, known)| known)
            .unwrap_or_else(|| panic!("{refused}"));
        let keys: Vec<_> = known.split('"').skip(1).step_by(2).collect();
        assert!(!keys.is_empty(), "{refused}");
        let is_general = |key: &&str| {
            let sources = sources::ALL.iter().flat_map(|kind| kind.fields);
            let destinations = destinations::ALL.iter().flat_map(|kind| kind.fields);
            sources.chain(destinations).all(|field| field.key != *key)
        };
        for key in keys.into_iter().filter(is_general) {
            let is_there = [
                format!("`{key}`"),
                format!(".{key}`"),
                format!("`{key}."),
                format!(".{key}]"),
            ];
            assert!(
                is_there.iter().any(|way| PAGE.contains(way)),
                "{table} {key}"
            );
        }
    };
    check("[server]");
    check("[network]");
    check("[workspaces.default]");
    let source = "[sources.web]\nkind = \"web_form\"\n";
    check(source);
    check(&format!("{source}[sources.web.required]"));
    check("[destinations.crm]\nkind = \"http\"\n");
    check("[destinations.crm]\nkind = \"sandbox\"\n[destinations.crm.limits]");
    check("[flows.sales]");
    let step = "[[flows.sales.steps]]\nname = \"crm\"\nkind = \"crm\"\n";
    check(step);
    check(&format!("{step}[flows.sales.steps.retry]"));
}
