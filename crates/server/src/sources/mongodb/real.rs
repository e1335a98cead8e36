//! A server that tests may use as they like, each a database of its own.

use mongodb::bson::oid::ObjectId;

/// Where it is. Where there is none says so, for then a test is passed over; with `CI` set, where
/// nothing may be passed over, panics instead.
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

/// A name that no other database has.
pub(crate) fn database() -> String {
    format!("tidegate_test_{}", ObjectId::new().to_hex())
}
