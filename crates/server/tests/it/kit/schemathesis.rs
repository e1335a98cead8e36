//! Schemathesis, which tests a server against its `OpenAPI` document.

use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Bound of a run. It sends thousands of requests, one at a time.
const PATIENCE: Duration = Duration::from_mins(15);

/// The folder where `scripts/test` installs it.
const LIBRARY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/tools/python/schemathesis"
);

/// Returns true if schemathesis is installed. Under CI it must be.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn is_installed() -> bool {
    if Path::new(LIBRARY).join("schemathesis/__init__.py").exists() {
        return true;
    }
    let ci = std::env::var_os("CI");
    let in_ci = ci.is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0");
    assert!(!in_ci, "schemathesis is not installed");
    eprintln!("skipped: schemathesis is not installed; see scripts/test");
    false
}

/// Runs it with these arguments in addition to the common ones, and fails unless the server matches
/// the document. `checks` is its configuration.
pub(crate) async fn run(address: SocketAddr, document: &Path, checks: &str, arguments: &[&str]) {
    // Without this file it would use one from a parent folder.
    std::fs::write(document.with_file_name("schemathesis.toml"), checks).unwrap();
    let mut command = Command::new("python3");
    command
        .arg(Path::new(LIBRARY).join("bin/schemathesis"))
        .arg("run")
        .arg(document)
        .args(["--url", &format!("http://{address}")])
        .args(["--phases", "examples,coverage,fuzzing"])
        .args(["--generation-deterministic", "--workers", "1"])
        .args(["--request-timeout", "10", "--no-color"])
        .args(arguments)
        .env("PYTHONPATH", LIBRARY)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(document.parent().unwrap())
        .kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("schemathesis has not ended within {PATIENCE:?}"))
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns every operation of a document.
pub(crate) fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document["paths"].as_object_mut().unwrap();
    paths
        .values_mut()
        .flat_map(|at| at.as_object_mut().unwrap().values_mut())
}
