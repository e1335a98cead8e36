//! The definition of an admin API route: everything needed to dispatch, check and describe it.

use super::Api;
use super::call::AdminCall;
use super::of::plans::LEVELS;
use super::respond::{AdminProblem, Done};
use futures_util::future::BoxFuture;
use http::Method;
use tidegate_policy::admin::AdminRole;

/// The path prefix of all routes.
pub(super) const BASE: &str = "/admin/v1";

/// A route. Both the dispatch and the `OpenAPI` document come from the one list of routes.
pub(super) struct AdminRoute {
    pub(super) verb: RouteMethod,
    /// The path below [`BASE`]. Segments in braces are parameters.
    pub(super) path: &'static str,
    /// The name in metrics, in the audit log, and in generated clients.
    pub(super) id: &'static str,
    /// The subject, which groups routes in the `OpenAPI` document.
    pub(super) tag: &'static str,
    /// The description, in one sentence.
    pub(super) about: &'static str,
    /// The role that callers need.
    pub(super) role: AdminRole,
    pub(super) query: &'static [Param],
    pub(super) body: Option<BodyOf>,
    pub(super) gives: Gives,
    /// Changes something that has a version, which the caller must have seen.
    pub(super) is_versioned: bool,
    /// The additional error statuses that do not follow from the other fields.
    pub(super) refuses: &'static [u16],
    pub(super) handler: Handler,
}

/// The function that handles a call.
pub(super) type Handler =
    for<'a> fn(&'a Api, &'a AdminCall) -> BoxFuture<'a, Result<Done, AdminProblem>>;

/// A method. `HEAD` is `GET` without a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A query parameter.
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) kind: ParamKind,
    pub(super) about: &'static str,
}

/// The type of a parameter.
pub(super) enum ParamKind {
    /// A whole number: minimum, maximum, default.
    Whole(u64, u64, u64),
    /// Text, up to [`TEXT_MAX`] bytes.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The maximum length of a text in a query, in bytes.
pub(super) const TEXT_MAX: usize = 1_024;

/// Returns the maximum length of the path parameter `param`, in bytes. Most are names, which are short.
pub(super) fn longest(param: &str) -> usize {
    match param {
        "member" | "entry" => TEXT_MAX,
        _ => 128,
    }
}

/// Returns the words that the path parameter `param` may be, if it is restricted.
pub(super) fn words(param: &str) -> Option<&'static [&'static str]> {
    (param == "level").then_some(&LEVELS)
}

/// The request body of a route.
pub(super) struct BodyOf {
    /// The name of its schema.
    pub(super) schema: &'static str,
    /// The body is a JSON merge patch.
    pub(super) is_patch: bool,
}

/// The successful response of a route.
pub(super) struct Gives {
    pub(super) status: u16,
    /// The name of its schema; without one the response has no body.
    pub(super) schema: Option<&'static str>,
    /// The response has a version (`ETag`).
    pub(super) has_version: bool,
}

impl BodyOf {
    pub(super) const fn json(schema: &'static str) -> Self {
        Self {
            schema,
            is_patch: false,
        }
    }

    pub(super) const fn patch(schema: &'static str) -> Self {
        Self {
            schema,
            is_patch: true,
        }
    }
}

impl Gives {
    /// No content.
    pub(super) const NOTHING: Self = Self {
        status: 204,
        schema: None,
        has_version: false,
    };

    pub(super) const fn seen(status: u16, schema: &'static str) -> Self {
        Self {
            status,
            schema: Some(schema),
            has_version: false,
        }
    }

    /// A response that has a version.
    pub(super) const fn versioned(status: u16, schema: &'static str) -> Self {
        Self {
            has_version: true,
            ..Self::seen(status, schema)
        }
    }
}

impl RouteMethod {
    pub(super) fn of(method: &Method) -> Option<Self> {
        Some(match *method {
            Method::GET | Method::HEAD => Self::Get,
            Method::POST => Self::Post,
            Method::PUT => Self::Put,
            Method::PATCH => Self::Patch,
            Method::DELETE => Self::Delete,
            _ => return None,
        })
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl AdminRoute {
    /// Returns the names of the path parameters, in order.
    pub(super) fn params(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(named)
    }

    /// Returns the target of a call, with these values of the path parameters. Parameters that may be
    /// secrets are omitted.
    pub(super) fn target(&self, params: &[(&'static str, String)]) -> String {
        let segments = self.path.split('/').filter(|it| !it.is_empty());
        let segments = segments.map(|segment| {
            let name = named(segment).filter(|it| !matches!(*it, "member" | "entry"));
            let given = params.iter().find(|(it, _)| Some(*it) == name);
            given.map_or(segment, |(_, text)| text)
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// Returns every error status of this route, in order.
    pub(super) fn refusals(&self) -> Vec<u16> {
        let mut all = vec![400, 401, 403, 429, 431, 500];
        if self.params().next().is_some() {
            all.push(404);
        }
        if self.body.is_some() {
            all.extend([408, 413, 415, 422]);
        }
        if self.is_versioned {
            all.extend([412, 428]);
        }
        all.extend(self.refuses);
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Returns the name of a path parameter, if the segment is one.
pub(super) fn named(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

impl std::fmt::Debug for AdminRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}{}", self.verb.as_str(), BASE, self.path)
    }
}
