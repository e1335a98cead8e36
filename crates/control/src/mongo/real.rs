//! A real server for tests, each of which has a separate database.

use mongodb::bson::oid::ObjectId;

/// Returns the URL of the server. Without one, prints a notice and returns `None`, so that the test is
/// skipped; with `CI` set, where no test may be skipped, panics instead.
pub(crate) fn url() -> Option<String> {
    if let Some(url) = std::env::var_os("TIDEGATE_TEST_MONGODB_URL") {
        return Some(url.into_string().expect("text"));
    }
    let missing =
        "there is no MongoDB: ./scripts/test runs one, or set TIDEGATE_TEST_MONGODB_URL to its URL";
    let in_ci =
        std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0");
    assert!(!in_ci, "{missing}");
    eprintln!("skipped: {missing}");
    None
}

/// Returns a name that no other database has.
pub(crate) fn database() -> String {
    format!("tidegate_test_{}", ObjectId::new().to_hex())
}
