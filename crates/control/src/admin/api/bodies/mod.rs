//! The bodies of requests and responses: one type for each. Its definition makes both the JSON and the
//! schema in the `OpenAPI` document.
//!
//! | module | its bodies |
//! |---|---|
//! | this one | those of several resources |
//! | `page` | a page of a list |
//! | `documents` | policies, guards, routes and limits, and their modes |
//! | `members` | members of lists, and bans |
//! | `plans` | plan sources and their entries |
//! | `buckets` | inspection and reset |
//! | `budgets` | the subject of budgets |
//! | `server` | the caller, the status, reloads |
//!
//! A request refuses members that it does not know (`deny_unknown_fields`). Responses may grow, so their
//! schemas do not exclude further members. Comments of types and fields are descriptions in the document.

pub(super) mod buckets;
pub(super) mod budgets;
pub(super) mod documents;
pub(super) mod members;
pub(super) mod page;
pub(super) mod plans;
pub(super) mod server;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A JSON merge patch (RFC 7396): members replace, `null` removes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MergePatch(pub(super) Map<String, Value>);

/// A document in the language of the configuration. The route names its schema in that language.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct LanguageDocument(pub(super) Map<String, Value>);

/// The body of a response that has none.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NoContent;

/// Something that uses a document, and so keeps it from being removed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "User")]
pub(super) struct DocumentUser {
    /// Its kind, such as `route`.
    pub(super) kind: &'static str,
    /// Its name.
    pub(super) name: String,
}

impl DocumentUser {
    pub(crate) fn new(kind: &'static str, name: impl Into<String>) -> Self {
        let name = name.into();
        Self { kind, name }
    }
}

impl fmt::Display for DocumentUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)
    }
}
