//! Upstreams that misbehave, and a gateway that can be watched.
//!
//! | module | what it is |
//! |---|---|
//! | `wild` | an upstream that does what a test says, byte for byte |
//! | `stand` | the gateway in this process, with bounds and metrics |
//! | `program` | the gateway as a process of its own |
//! | `page` | its metrics |
//! | `place` | a port, whether or not anybody listens there |

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
pub(crate) use stand::{Stand, config, stand};
pub(crate) use wild::{Link, Wild};

use crate::kit::Reply;

/// What a small answer is.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A request with a body that says how long it is.
pub(crate) fn post(target: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {target} HTTP/1.1\r\nhost: shop.example\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Asserts that an answer is a problem of this status, with an id by which it can be found again.
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
