//! Holds the dependency graph to `deny.toml`: licences, bans with their wrappers, sources; and finds dependencies that no
//! file of their package names. Why not the usual tools: `docs/decisions/0006-own-dependency-check.md`.

use crate::{licence, rust_code};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

/// What is wrong with the dependencies.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let rules = match rules(root) {
        Ok(rules) => rules,
        Err(problem) => return vec![problem],
    };
    let mut problems = BTreeSet::new();
    for target in &rules.graph.targets {
        match metadata(root, target) {
            Ok(metadata) => {
                problems.extend(licences(&metadata, &rules));
                problems.extend(bans(&metadata, &rules));
                problems.extend(sources(&metadata));
                problems.extend(unused(&metadata));
            }
            Err(problem) => {
                problems.insert(problem);
            }
        }
    }
    problems.into_iter().collect()
}

fn rules(root: &Path) -> Result<Rules, String> {
    let text = std::fs::read_to_string(root.join("deny.toml"))
        .map_err(|error| format!("deny.toml: {error}"))?;
    toml::from_str(&text).map_err(|error| format!("deny.toml: {error}"))
}

fn metadata(root: &Path, target: &str) -> Result<Metadata, String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            target,
        ])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

fn licences(metadata: &Metadata, rules: &Rules) -> Vec<String> {
    let refused = |package: &&Package| {
        !package
            .license
            .as_deref()
            .is_some_and(|l| licence::is_allowed(l, &rules.licenses.allow))
    };
    metadata
        .packages_in_use()
        .filter(refused)
        .map(|p| {
            let licence = p.license.as_deref().unwrap_or("none given");
            format!(
                "{} has a licence that deny.toml does not allow: {licence}",
                p.name
            )
        })
        .collect()
}

fn bans(metadata: &Metadata, rules: &Rules) -> Vec<String> {
    let names: HashMap<&str, &str> = metadata
        .packages
        .iter()
        .map(|p| (p.id.as_str(), p.name.as_str()))
        .collect();
    let mut problems = Vec::new();
    for node in &metadata.resolve.nodes {
        let user = names[node.id.as_str()];
        for used in node.deps.iter().filter(|d| d.ships()) {
            let used = names[used.pkg.as_str()];
            let ban = rules.bans.deny.iter().find(|ban| ban.name == used);
            if ban.is_some_and(|ban| !ban.wrappers.iter().any(|w| w == user)) {
                problems.push(format!("{user} may not depend on {used} (deny.toml)"));
            }
        }
    }
    let wildcards = metadata.packages.iter().filter(|p| p.source.is_none());
    problems.extend(wildcards.flat_map(|package| {
        let open = |d: &&Dependency| d.req == "*" && d.path.is_none();
        package
            .dependencies
            .iter()
            .filter(open)
            .map(|d| format!("{} takes any version of {}: give one", package.name, d.name))
    }));
    problems
}

fn sources(metadata: &Metadata) -> Vec<String> {
    let foreign =
        |source: &str| !(source.starts_with("registry+") && source.ends_with("/crates.io-index"));
    metadata
        .packages
        .iter()
        .filter(|p| p.source.as_deref().is_some_and(foreign))
        .map(|p| format!("{} does not come from crates.io", p.name))
        .collect()
}

/// Dependencies of our own packages that no Rust file of the package names.
fn unused(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for package in metadata.packages.iter().filter(|p| p.source.is_none()) {
        let folder = Path::new(&package.manifest_path)
            .parent()
            .unwrap_or(Path::new("."));
        let code: String = rust_code::files(folder)
            .iter()
            .filter_map(|file| std::fs::read_to_string(file).ok())
            .collect();
        for dependency in &package.dependencies {
            let name = dependency
                .rename
                .as_ref()
                .unwrap_or(&dependency.name)
                .replace('-', "_");
            // A package names itself to switch a feature on for its own tests.
            let is_itself = dependency.name == package.name;
            if !is_itself && !rust_code::names(&code, &name) {
                problems.push(format!("{} does not use {}", package.name, dependency.name));
            }
        }
    }
    problems
}

#[derive(Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    #[serde(default)]
    wrappers: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

impl Metadata {
    /// The packages that are built for the platform asked for.
    fn packages_in_use(&self) -> impl Iterator<Item = &Package> {
        let in_use: BTreeSet<&str> = self.resolve.nodes.iter().map(|n| n.id.as_str()).collect();
        self.packages
            .iter()
            .filter(move |p| in_use.contains(p.id.as_str()))
    }
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    license: Option<String>,
    source: Option<String>,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    rename: Option<String>,
    req: String,
    path: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Use>,
}

#[derive(Deserialize)]
struct Use {
    pkg: String,
    dep_kinds: Vec<UseKind>,
}

impl Use {
    /// Whether it is more than a development dependency.
    fn ships(&self) -> bool {
        self.dep_kinds
            .iter()
            .any(|k| k.kind.as_deref() != Some("dev"))
    }
}

#[derive(Deserialize)]
struct UseKind {
    kind: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages: `emanet` depends on `driver` in the way given.
    fn metadata(kind: &str, license: &str, source: &str) -> Metadata {
        let text = format!(
            r#"{{"packages":[
              {{"id":"a","name":"emanet","license":"MIT","source":null,"manifest_path":"/none/Cargo.toml","dependencies":[]}},
              {{"id":"b","name":"driver","license":{license},"source":"{source}","manifest_path":"/none/Cargo.toml","dependencies":[]}}],
              "resolve":{{"nodes":[{{"id":"a","deps":[{{"pkg":"b","dep_kinds":[{{"kind":{kind}}}]}}]}},{{"id":"b","deps":[]}}]}}}}"#
        );
        serde_json::from_str(&text).expect("well-formed")
    }

    fn rules(wrappers: &str) -> Rules {
        toml::from_str(&format!(
            "graph.targets = []\nlicenses.allow = ['MIT']\nbans.deny = [{{ crate = 'driver', wrappers = [{wrappers}] }}]"
        ))
        .expect("well-formed")
    }

    const CRATES_IO: &str = "registry+x/crates.io-index";

    #[test]
    fn a_banned_crate_may_be_used_by_its_wrappers_and_by_tests_only() {
        let direct = metadata("null", "\"MIT\"", CRATES_IO);
        assert_eq!(bans(&direct, &rules("'store'")).len(), 1);
        assert_eq!(bans(&direct, &rules("'emanet'")).len(), 0);
        let in_tests = metadata("\"dev\"", "\"MIT\"", CRATES_IO);
        assert_eq!(bans(&in_tests, &rules("'store'")).len(), 0);
    }

    #[test]
    fn a_missing_or_foreign_licence_and_a_foreign_source_are_found() {
        let rules = rules("");
        assert_eq!(
            licences(&metadata("null", "null", CRATES_IO), &rules).len(),
            1
        );
        assert_eq!(
            licences(&metadata("null", "\"GPL-3.0\"", CRATES_IO), &rules).len(),
            1
        );
        assert_eq!(
            licences(&metadata("null", "\"MIT\"", CRATES_IO), &rules).len(),
            0
        );
        assert_eq!(
            sources(&metadata("null", "\"MIT\"", "git+x/driver")).len(),
            1
        );
        assert_eq!(sources(&metadata("null", "\"MIT\"", CRATES_IO)).len(), 0);
    }
}
