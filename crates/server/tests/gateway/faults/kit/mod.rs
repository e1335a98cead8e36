//! Upstreams that misbehave, and a gateway with metrics.
//!
//! | module | contents |
//! |---|---|
//! | `wild` | an upstream that a test controls byte for byte |
//! | `stand` | the gateway in this process, with bounds and metrics |
//! | `program` | the gateway as a separate process |
//! | `page` | its metrics |
//! | `place` | a reserved port, with or without a listener |

pub(crate) mod page;
pub(crate) mod place;
pub(crate) mod program;
pub(crate) mod stand;
pub(crate) mod wild;

#[path = "../../../it/kit/folder.rs"]
mod folder;

pub(crate) use page::Page;
pub(crate) use place::Place;
pub(crate) use program::Program;
pub(crate) use stand::{TestGateway, config, stand};
pub(crate) use wild::{Link, RawUpstream};

use crate::kit::Reply;

/// A small response.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Returns a request with a body and its length.
pub(crate) fn post(target: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {target} HTTP/1.1\r\nhost: shop.example\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Asserts that a response is a problem of this status, with a correlation id.
#[track_caller]
pub(crate) fn assert_problem(reply: &Reply, status: u16, detail: &str) {
    assert_eq!(reply.status(), status, "{reply:#?}");
    let kind = reply.head.get("content-type");
    assert_eq!(kind, Some("application/problem+json"));
    assert_eq!(reply.head.get("cache-control"), Some("no-store"));
    let problem: serde_json::Value = serde_json::from_str(reply.text()).unwrap();
    assert_eq!(problem["status"], status);
    assert_eq!(problem["detail"], detail);
    let id = reply.head.get("x-correlation-id").expect("an id");
    assert_eq!(problem["correlationId"], id);
    assert_eq!(id.len(), 32);
}
