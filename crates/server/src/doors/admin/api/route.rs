//! What a route of the admin API is: everything that dispatching, checking and describing it takes.

use super::Api;
use super::call::AdminCall;
use super::of::plans::LEVELS;
use super::respond::{AdminProblem, Done};
use futures_util::future::BoxFuture;
use http::Method;
use tidegate_policy::admin::AdminRole;

/// Where all routes are.
pub(super) const BASE: &str = "/admin/v1";

/// A route. There is one list of them, and both who answers and what the `OpenAPI` document says come
/// from it.
pub(super) struct AdminRoute {
    pub(super) verb: RouteMethod,
    /// Below [`BASE`]: segments, of which those in braces stand for any.
    pub(super) path: &'static str,
    /// By which metrics, the audit and generated clients call it.
    pub(super) id: &'static str,
    /// What it is about.
    pub(super) tag: &'static str,
    /// What it does, in a sentence.
    pub(super) about: &'static str,
    /// What callers need to be.
    pub(super) role: AdminRole,
    pub(super) query: &'static [Param],
    pub(super) body: Option<BodyOf>,
    pub(super) gives: Gives,
    /// Whether it changes something that has a version, which the caller must have seen.
    pub(super) is_versioned: bool,
    /// Refusals of its own, beside those that follow from the rest.
    pub(super) refuses: &'static [u16],
    pub(super) handler: Handler,
}

/// Who answers.
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

/// A parameter of the query.
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) kind: ParamKind,
    pub(super) about: &'static str,
}

/// What a parameter may be.
pub(super) enum ParamKind {
    /// A whole number: from, to, unless told.
    Whole(u64, u64, u64),
    /// Text, up to [`TEXT_MAX`] bytes.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The most bytes of a text in a query.
pub(super) const TEXT_MAX: usize = 1_024;

/// The most bytes of what stands for `param` in a path. Most are names, which are short.
pub(super) fn longest(param: &str) -> usize {
    match param {
        "member" | "entry" => TEXT_MAX,
        _ => 128,
    }
}

/// The words that may stand for `param` in a path, where not any may.
pub(super) fn words(param: &str) -> Option<&'static [&'static str]> {
    (param == "level").then_some(&LEVELS)
}

/// What a body is.
pub(super) struct BodyOf {
    /// The schema that describes it.
    pub(super) schema: &'static str,
    /// Whether it is a JSON merge patch.
    pub(super) is_patch: bool,
}

/// What is answered if all is well.
pub(super) struct Gives {
    pub(super) status: u16,
    /// The schema that describes it; nothing is said where there is none.
    pub(super) schema: Option<&'static str>,
    /// Whether it has a version (`ETag`).
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
    /// Nothing is left to say.
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

    /// Something that has a version.
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
    /// The names of what stands for any segment, in order.
    pub(super) fn params(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(named)
    }

    /// What it is about, with these in place of the braces; but none of those that may be secrets.
    pub(super) fn target(&self, params: &[(&'static str, String)]) -> String {
        let segments = self.path.split('/').filter(|it| !it.is_empty());
        let segments = segments.map(|segment| {
            let name = named(segment).filter(|it| !matches!(*it, "member" | "entry"));
            let given = params.iter().find(|(it, _)| Some(*it) == name);
            given.map_or(segment, |(_, text)| text)
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// Every status that it is ever refused with, in order.
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

/// The name in a segment that stands for any.
pub(super) fn named(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

impl std::fmt::Debug for AdminRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}{}", self.verb.as_str(), BASE, self.path)
    }
}
