//! The reference pages of the HTTP APIs, written from their published `OpenAPI` documents.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod api;
mod operation;
mod schema;

use self::api::Api;
use std::collections::BTreeSet;
use std::fs;
use tidegate_testkit::golden;

/// Compares the generated parts of a page with a document.
///
/// `endpoints` has all operations, `errors` the errors that are the same everywhere. `bodies` has the schemas
/// that are not in a part with their own name.
#[track_caller]
fn check(page: &str, document: &str) {
    let page = golden::docs(page);
    let text = fs::read_to_string(&page).unwrap();
    let api = Api::read(&fs::read_to_string(golden::docs(document)).unwrap(), &text);
    let parts: BTreeSet<&str> = golden::parts(&text).collect();
    for part in ["endpoints", "errors", "bodies"] {
        assert!(parts.contains(part), "{}: no {part}", page.display());
    }
    golden::compare_parts(&page, |part| match part {
        "endpoints" => operation::write_all(&api),
        "errors" => operation::write_errors(&api),
        "bodies" => schema::write_others(&api),
        name => schema::write(&api, name),
    });
}

#[test]
fn the_http_api() {
    check("reference/http-api.md", "reference/openapi.json");
}

#[test]
fn the_admin_api() {
    check("reference/admin-api.md", "reference/admin-openapi.json");
}
