//! Crates that others build on do not contain unwanted dependencies.
//!
//! `deny.toml` lists the arrows between crates, including those of tests. Here cargo resolves the
//! features and leaves out the dependencies of tests.

use crate::sources::root;
use std::collections::BTreeSet;
use std::process::Command;

/// Readers of YAML, and the configuration language.
const YAML: &[&str] = &["saphyr-parser", "tidegate-config", "tidegate-import"];
/// Clients of Redis, and the stores that use them.
const REDIS: &[&str] = &[
    "redis",
    "tidegate-redis",
    "tidegate-redis-client",
    "tidegate-redis-shared",
];
/// Limits, and the decisions about them.
const LIMITS: &[&str] = &["tidegate", "tidegate-http", "tidegate-memory"];
/// Sockets and protocols.
const SOCKETS: &[&str] = &["hyper", "tidegate-net", "tidegate-proxy", "tokio-rustls"];

/// Returns the names of all crates that `package` needs without its default features, itself included.
fn needed_by(package: &str) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--no-default-features"])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(["--package", package])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "{package}: {errors}");
    let lines = String::from_utf8(tree.stdout).expect("names are text");
    let names = lines.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

/// Asserts that `package` needs none of `unwanted`.
fn assert_without(package: &str, unwanted: &[&[&str]]) {
    let needed = needed_by(package);
    // A name that is not there might be misspelt here.
    assert!(needed.contains("tidegate-core"), "{package}: {needed:?}");
    let unwanted = unwanted.iter().flat_map(|names| names.iter());
    let found: Vec<_> = unwanted.filter(|name| needed.contains(**name)).collect();
    assert!(found.is_empty(), "{package} depends on {found:?}");
}

#[test]
fn the_library_without_features_reads_no_yaml_and_has_no_redis_client() {
    for package in ["tidegate", "tidegate-http", "tidegate-tower"] {
        assert_without(package, &[YAML, REDIS, SOCKETS]);
    }
}

/// The most crates that the library needs without its features, itself included. governor needs 37.
const MINIMAL_CRATES_MAX: usize = 44;

/// Compilers of Rust's own syntax, which take longer to build than the library.
const MACROS: &[&str] = &["proc-macro2", "quote", "syn"];

#[test]
fn the_library_without_features_needs_few_crates_and_no_macros() {
    let needed = needed_by("tidegate");
    let count = needed.len();
    assert!(count <= MINIMAL_CRATES_MAX, "{count} crates: {needed:?}");
    assert_without("tidegate", &[MACROS]);
}

#[test]
fn policy_depends_on_no_config_language_store_or_socket() {
    assert_without("tidegate-policy", &[YAML, REDIS, LIMITS, SOCKETS]);
}

#[test]
fn net_and_proxy_depend_on_no_limits_and_no_config_language() {
    for package in ["tidegate-net", "tidegate-proxy"] {
        assert_without(package, &[YAML, REDIS, LIMITS]);
    }
}

/// Otherwise the tests above could look for names that no crate has.
#[test]
fn the_program_has_all_that_the_library_can_leave_out() {
    let needed = needed_by("tidegate-server");
    for name in [YAML, REDIS, LIMITS, SOCKETS, MACROS].concat() {
        assert!(needed.contains(name), "{name}");
    }
}
