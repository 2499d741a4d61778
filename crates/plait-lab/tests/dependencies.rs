//! What the workspace may depend on: licences, banned crates and sources, as `deny.toml` has them.
//!
//! cargo-deny reads the same file and knows advisories too, but building it takes longer than all
//! other checks together: docs/decisions/0012-dependencies.md.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

/// As much of `deny.toml` as is checked here.
#[derive(Deserialize)]
struct Deny {
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
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    /// Those that may depend on it all the same.
    #[serde(default)]
    wrappers: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

/// Who depends on whom, with the features that are on.
#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

impl Metadata {
    /// The names of those that depend on a package.
    fn dependents(&self, id: &str) -> BTreeSet<&str> {
        let depends = |node: &&Node| node.dependencies.iter().any(|other| other == id);
        let ids: BTreeSet<&str> =
            self.resolve.nodes.iter().filter(depends).map(|node| node.id.as_str()).collect();
        let is_one = |package: &&Package| ids.contains(package.id.as_str());
        self.packages.iter().filter(is_one).map(|package| package.name.as_str()).collect()
    }
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

impl Package {
    /// As `cargo tree` has it.
    fn name_and_version(&self) -> String {
        format!("{} v{}", self.name, self.version)
    }
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Whether an SPDX expression is fulfilled by allowed licences: `OR` (once written `/`) binds less
/// than `AND`, and `WITH` makes a licence with its exception one name.
fn is_allowed(expression: &str, allow: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let allowed = any_of(&mut words, allow);
    allowed && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allow: &BTreeSet<String>) -> bool {
    let mut result = all_of(words, allow);
    while words.next_if_eq(&"OR").is_some() {
        result |= all_of(words, allow);
    }
    result
}

fn all_of(words: &mut Words<'_>, allow: &BTreeSet<String>) -> bool {
    let mut result = one(words, allow);
    while words.next_if_eq(&"AND").is_some() {
        result &= one(words, allow);
    }
    result
}

fn one(words: &mut Words<'_>, allow: &BTreeSet<String>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let result = any_of(words, allow);
        return words.next_if_eq(&")").is_some() && result;
    }
    let Some(mut name) = words.next().map(str::to_owned) else { return false };
    if words.next_if_eq(&"WITH").is_some() {
        name = format!("{name} WITH {}", words.next().unwrap_or_default());
    }
    allow.contains(&name)
}

/// What is wrong with the packages that are `used`, one text each.
fn findings(deny: &Deny, metadata: &Metadata, used: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let is_used = |package: &&Package| used.contains(&package.name_and_version());
    for package in metadata.packages.iter().filter(is_used) {
        let Package { name, version, .. } = package;
        match deny.bans.deny.iter().find(|banned| banned.name == *name) {
            Some(banned) if banned.wrappers.is_empty() => {
                found.push(format!("{name} {version} is banned"));
            }
            Some(banned) => {
                let others = metadata.dependents(&package.id);
                let others = others.into_iter().filter(|other| !banned.wrappers.contains(*other));
                found.extend(others.map(|other| format!("{other} may not depend on {name}")));
            }
            None => {}
        }
        if metadata.workspace_members.contains(&package.id) {
            let loose =
                |dependency: &&Dependency| dependency.req == "*" && dependency.path.is_none();
            let loose = package.dependencies.iter().filter(loose);
            found.extend(loose.map(|loose| format!("{name} takes any version of {}", loose.name)));
            continue;
        }
        if package.source.as_deref() != Some(CRATES_IO) {
            let source = package.source.as_deref().unwrap_or("a folder");
            found.push(format!("{name} {version} comes from {source}"));
        }
        match &package.license {
            Some(license) if is_allowed(license, &deny.licenses.allow) => {}
            license => found.push(format!("{name} {version} has the licence {license:?}")),
        }
    }
    found
}

fn deny() -> Deny {
    toml::from_str(include_str!("../../../deny.toml")).unwrap()
}

fn cargo(arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(arguments).arg("--locked").current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn licences_sources_and_banned_crates() {
    let deny = deny();
    for target in &deny.graph.targets {
        let metadata = cargo(&["metadata", "--format-version", "1", "--filter-platform", target]);
        let metadata: Metadata = serde_json::from_str(&metadata).unwrap();
        // The metadata also have crates that a feature only touches where something else uses them.
        let tree = ["tree", "--workspace", "--prefix", "none", "--format", "{p}"];
        let tree = cargo(&[&tree[..], &["--target", target]].concat());
        let name_and_version = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().take(2).collect();
            words.join(" ")
        };
        let used: BTreeSet<String> = tree.lines().map(name_and_version).collect();
        assert!(used.len() > 50, "this is not the whole tree");
        let found = findings(&deny, &metadata, &used);
        assert!(found.is_empty(), "{target}: see deny.toml:\n  {}", found.join("\n  "));
    }
}

/// docs/decisions/0003-no-async-runtime.md: in the program the server of metrics alone.
#[test]
fn no_runtime_is_near_the_packets() {
    fn visit(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let names = ["tokio::", "hyper::", "hyper_util::"].iter().any(|it| text.contains(it));
            if names {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    let mut found = Vec::new();
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../plait/src"), &mut found);
    assert!(!found.is_empty(), "the server of metrics was found nowhere");
    found.retain(|file| !file.contains("/daemon/metrics/"));
    assert!(found.is_empty(), "these name a runtime: {found:?}");
}

/// As much of npm's `package-lock.json` as is checked.
#[derive(Deserialize)]
struct Lock {
    packages: BTreeMap<String, Locked>,
}

#[derive(Deserialize)]
struct Locked {
    license: Option<String>,
    /// Where it was fetched from: this would tie the lock to a registry.
    resolved: Option<String>,
    integrity: Option<String>,
    #[serde(default)]
    dependencies: BTreeMap<String, String>,
    #[serde(default, rename = "devDependencies")]
    dev_dependencies: BTreeMap<String, String>,
}

/// What is wrong with the packages of the page, one text each. The first is the page itself.
fn findings_of_page(allow: &BTreeSet<String>, lock: &Lock) -> Vec<String> {
    let mut found = Vec::new();
    for (name, package) in &lock.packages {
        let license = package.license.as_deref().unwrap_or_default();
        if !is_allowed(license, allow) {
            found.push(format!("{name} has the licence {license:?}"));
        }
        if !name.is_empty() && (package.resolved.is_some() || package.integrity.is_none()) {
            found.push(format!("{name} has an address, or no digest"));
        }
        let own = [&package.dependencies, &package.dev_dependencies].into_iter().flatten();
        let is_exact =
            |version: &str| version.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
        for (other, version) in own.filter(|(_, version)| name.is_empty() && !is_exact(version)) {
            found.push(format!("the page takes {other} {version}, not one version"));
        }
    }
    found
}

#[test]
fn packages_of_the_page() {
    let lock: Lock = serde_json::from_str(include_str!("../qoe-app/package-lock.json")).unwrap();
    assert!(lock.packages.contains_key("node_modules/shaka-player"));
    let allow = deny().licenses.allow;
    let found = findings_of_page(&allow, &lock);
    assert!(found.is_empty(), "see deny.toml:\n  {}", found.join("\n  "));
    let wrong = r#"{"packages":{"":{"license":"MIT","dependencies":{"a":"^1.0.0"}},
        "node_modules/a":{"license":"GPL-3.0-only","resolved":"https://example.org/a"}}}"#;
    let wrong = findings_of_page(&allow, &serde_json::from_str(wrong).unwrap());
    assert_eq!(
        wrong,
        [
            "the page takes a ^1.0.0, not one version",
            "node_modules/a has the licence \"GPL-3.0-only\"",
            "node_modules/a has an address, or no digest",
        ]
    );
}

#[test]
fn expressions_are_read_as_spdx_has_them() {
    let allow: BTreeSet<_> =
        ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].map(String::from).into();
    for sound in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0-only OR MIT",
        "MIT AND Apache-2.0",
        "(GPL-2.0 OR MIT) AND Apache-2.0 WITH LLVM-exception",
        "GPL-2.0 AND ISC OR MIT",
    ] {
        assert!(is_allowed(sound, &allow), "{sound}");
    }
    for refused in
        ["", "GPL-3.0-only", "MIT AND GPL-2.0", "MIT WITH GCC-exception", "(MIT", "MIT Apache-2.0"]
    {
        assert!(!is_allowed(refused, &allow), "{refused}");
    }
}

#[test]
fn each_kind_of_fault_is_found() {
    let package = |name: &str, license: &str, source: &str| {
        format!(
            r#"{{"id":"{name}","name":"{name}","version":"1.0.0","license":"{license}",
            "source":"{source}","dependencies":[]}}"#
        )
    };
    let packages = [
        package("sound", "MIT", CRATES_IO),
        package("ring", "MIT", CRATES_IO),
        package("tokio", "MIT", CRATES_IO),
        package("free", "GPL-3.0-only", CRATES_IO),
        package("near", "MIT", "git+https://example.org/near"),
        r#"{"id":"own","name":"own","version":"1.0.0","license":null,"source":null,
            "dependencies":[{"name":"sound","req":"*","path":null}]}"#
            .into(),
        package("openssl", "MIT", CRATES_IO),
    ];
    let used =
        ["sound", "ring", "tokio", "free", "near", "own"].map(|name| format!("{name} v1.0.0"));
    let nodes = r#"{"id":"own","dependencies":["sound","tokio"]},
        {"id":"plait-lab","dependencies":["tokio"]}"#;
    let text = format!(
        r#"{{"packages":[{}],"workspace_members":["own"],"resolve":{{"nodes":[{nodes}]}}}}"#,
        packages.join(",")
    );
    let metadata: Metadata = serde_json::from_str(&text).unwrap();
    assert_eq!(
        findings(&deny(), &metadata, &used.into()),
        [
            "ring 1.0.0 is banned",
            "own may not depend on tokio",
            "free 1.0.0 has the licence Some(\"GPL-3.0-only\")",
            "near 1.0.0 comes from git+https://example.org/near",
            "own takes any version of sound",
        ]
    );
}
