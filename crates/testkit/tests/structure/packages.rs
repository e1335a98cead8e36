//! The manifests of published crates, as cargo reads them.

use crate::sources::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

/// Returns the output of `cargo metadata` with these arguments, for this platform: packages of others may
/// not be downloaded.
pub(crate) fn metadata(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--format-version", "1"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

/// Returns the packages of the workspace that are published.
pub(crate) fn published() -> Vec<Value> {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().expect("a list");
    // `publish` is null for every registry, and empty for none.
    let published = packages.iter().filter(|it| it["publish"].is_null());
    published.cloned().collect()
}

#[test]
fn published_crates_have_the_metadata_for_registries_and_docs_rs() {
    let packages = published();
    assert!(packages.len() >= 20, "{} packages", packages.len());
    for package in packages {
        let name = &package["name"];
        for field in [
            "description",
            "license",
            "repository",
            "readme",
            "rust_version",
        ] {
            let text = package[field].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{name}: no {field}");
        }
        for field in ["keywords", "categories"] {
            let words = package[field].as_array().expect("a list");
            assert!((1..=5).contains(&words.len()), "{name}: {field}: {words:?}");
        }
        let docs = &package["metadata"]["docs"]["rs"];
        assert_eq!(
            docs["all-features"], true,
            "{name}: docs.rs shows all features"
        );
    }
}

/// Rust's version, such as 1.88.0.
type RustVersion = [u32; 3];

/// Returns the minimum version of Rust in a manifest; the oldest if it has none.
fn rust_version(package: &Value) -> RustVersion {
    let text = package["rust_version"].as_str().unwrap_or("1.0");
    let mut numbers = text.split('.').map(|it| it.parse().expect("a number"));
    [(); 3].map(|()| numbers.next().unwrap_or_default())
}

/// Clippy checks the same for the standard library (`incompatible_msrv`), by the manifest of each crate.
#[test]
fn no_dependency_needs_a_newer_rust_than_the_crates_that_use_it() {
    // Tests activate the features that are off by default.
    let metadata = metadata(&[]);
    let packages = metadata["packages"].as_array().expect("a list");
    let by_id: BTreeMap<&str, &Value> = packages
        .iter()
        .map(|it| (it["id"].as_str().expect("an id"), it))
        .collect();
    let nodes = metadata["resolve"]["nodes"].as_array().expect("a list");
    let uses: BTreeMap<&str, Vec<&str>> = nodes.iter().map(needs).collect();
    let published = published();
    for package in &published {
        let name = package["name"].as_str().expect("a name");
        let wanted = rust_version(package);
        let mut left = vec![package["id"].as_str().expect("an id")];
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some(id) = left.pop() {
            if !seen.insert(id) {
                continue;
            }
            let needed = rust_version(by_id[id]);
            assert!(
                needed <= wanted,
                "{name} has {wanted:?}, {id} needs {needed:?}"
            );
            left.extend(&uses[id]);
        }
        assert!(
            seen.len() > 1 || name == "tidegate-core",
            "{name}: {seen:?}"
        );
    }
}

/// Returns the id of a package, and those of the packages that it needs outside of tests.
fn needs(node: &Value) -> (&str, Vec<&str>) {
    let is_built = |dependency: &&Value| {
        let kinds = dependency["dep_kinds"].as_array().expect("a list");
        kinds.iter().any(|it| it["kind"] != "dev")
    };
    let dependencies = node["deps"].as_array().expect("a list").iter();
    let dependencies = dependencies
        .filter(is_built)
        .filter_map(|it| it["pkg"].as_str());
    (node["id"].as_str().expect("an id"), dependencies.collect())
}

#[test]
fn the_page_about_the_library_names_the_rust_that_it_needs() {
    let page = fs::read_to_string(root().join("docs/how-to/rust.md")).expect("a page");
    for package in published() {
        let name = package["name"].as_str().expect("a name");
        if page.contains(&format!("| `{name}` |")) {
            let version = package["rust_version"].as_str().expect("a version");
            assert!(
                page.contains(&format!("Rust {version}")),
                "{name}: {version}"
            );
        }
    }
}
