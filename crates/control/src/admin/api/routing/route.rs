//! The definition of an admin API route: everything needed to dispatch, check and describe it.

use super::call::AdminCall;
use crate::admin::api::Api;
use crate::admin::api::handlers::plans::LEVELS;
use crate::admin::api::openapi::StaticDocument;
use crate::admin::api::reply::ReplyResult;
use crate::admin::api::request::{self, RequestBody};
use crate::admin::body::AdminBody;
use futures_util::future::{BoxFuture, FutureExt};
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use tidegate_config::admin::AdminRole;

/// The path prefix of all routes.
pub(in crate::admin::api) const BASE: &str = "/admin/v1";

/// A route. Both the dispatch and the `OpenAPI` document come from the one list of routes.
pub(in crate::admin::api) struct AdminRoute {
    pub(in crate::admin::api) verb: RouteMethod,
    /// The path below [`BASE`]. Segments in braces are parameters.
    pub(in crate::admin::api) path: &'static str,
    /// The name in metrics, in the audit log, and in generated clients.
    pub(in crate::admin::api) id: &'static str,
    /// The resource, which groups routes in the `OpenAPI` document.
    pub(in crate::admin::api) tag: &'static str,
    /// The description, in one sentence.
    pub(in crate::admin::api) about: &'static str,
    /// The role that callers need.
    pub(in crate::admin::api) role: AdminRole,
    pub(in crate::admin::api) query: &'static [Param],
    pub(in crate::admin::api) body: Option<BodySpec>,
    /// The status of success.
    pub(in crate::admin::api) status: u16,
    /// The call may also succeed with 200: there was nothing to create.
    pub(in crate::admin::api) may_be_ok: bool,
    /// The schema of the response; without one it has no body.
    pub(in crate::admin::api) response: Option<SchemaOf>,
    /// The response has a version (`ETag`).
    pub(in crate::admin::api) has_version: bool,
    /// Changes something that has a version, which the caller must have seen (`If-Match`).
    pub(in crate::admin::api) is_versioned: bool,
    /// The additional error statuses that do not follow from the other fields.
    pub(in crate::admin::api) failures: &'static [u16],
    pub(in crate::admin::api) handler: Handler,
}

/// A handler of any type: it reads the body as the type that it has, and writes its response as JSON.
pub(in crate::admin::api) type Handler =
    Box<dyn for<'a> Fn(&'a Api, &'a AdminCall) -> RouteReply<'a, AdminBody> + Send + Sync>;

/// The future response of a handler.
pub(in crate::admin::api) type RouteReply<'a, T> = BoxFuture<'a, ReplyResult<T>>;

/// A handler of calls without a body.
pub(in crate::admin::api) type ReadHandler<T> =
    for<'a> fn(&'a Api, &'a AdminCall) -> RouteReply<'a, T>;

/// A handler of calls with a body.
pub(in crate::admin::api) type WriteHandler<B, T> =
    for<'a> fn(&'a Api, &'a AdminCall, B) -> RouteReply<'a, T>;

/// Returns the schema of a type, and adds the schemas that it refers to.
pub(in crate::admin::api) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A response of a typed handler.
pub(in crate::admin::api) trait ReplyBody:
    Serialize + JsonSchema + Send + 'static
{
}

impl<T: Serialize + JsonSchema + Send + 'static> ReplyBody for T {}

/// A method. `HEAD` is `GET` without a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admin::api) enum RouteMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A query parameter.
pub(in crate::admin::api) struct Param {
    pub(in crate::admin::api) name: &'static str,
    pub(in crate::admin::api) kind: ParamKind,
    pub(in crate::admin::api) about: &'static str,
}

/// The type of a parameter.
pub(in crate::admin::api) enum ParamKind {
    /// A whole number: minimum, maximum, default.
    Whole(u64, u64, u64),
    /// Text, up to [`TEXT_MAX`] bytes.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The request body of a route.
pub(in crate::admin::api) struct BodySpec {
    /// The schema of its type.
    pub(in crate::admin::api) schema: SchemaOf,
    /// The name of its schema in the language of the configuration, if it is a document.
    pub(in crate::admin::api) language: Option<&'static str>,
    /// The body is a JSON merge patch.
    pub(in crate::admin::api) is_patch: bool,
}

/// The maximum length of a text in a query, in bytes.
pub(in crate::admin::api) const TEXT_MAX: usize = 1_024;

/// Returns the maximum length of the path parameter `param`, in bytes. Most are names, which are short.
pub(in crate::admin::api) fn longest(param: &str) -> usize {
    match param {
        "member" | "entry" => TEXT_MAX,
        _ => 128,
    }
}

/// Returns the words that the path parameter `param` may be, if it is restricted.
pub(in crate::admin::api) fn words(param: &str) -> Option<&'static [&'static str]> {
    (param == "level").then_some(&LEVELS)
}

/// The path and the id of a route.
type RouteAddress = (&'static str, &'static str);

/// Returns a route that only reads.
pub(in crate::admin::api) fn get<T: ReplyBody>(
    path: &'static str,
    id: &'static str,
    handler: ReadHandler<T>,
) -> AdminRoute {
    bodiless((RouteMethod::Get, AdminRole::Read), (path, id), handler)
}

/// Returns a route that serves a document of the program, without a copy.
pub(in crate::admin::api) fn get_static(
    path: &'static str,
    id: &'static str,
    of: fn() -> &'static StaticDocument,
) -> AdminRoute {
    let handler: Handler = Box::new(move |_, _| std::future::ready(Ok(of().reply())).boxed());
    let schema: SchemaOf = |_| schemars::json_schema!({ "type": "object" });
    let route = AdminRoute::new((RouteMethod::Get, AdminRole::Read), (path, id), handler);
    AdminRoute {
        response: Some(schema),
        has_version: true,
        ..route
    }
}

/// Returns a route for an action without a body.
pub(in crate::admin::api) fn run<T: ReplyBody>(
    role: AdminRole,
    path: &'static str,
    id: &'static str,
    handler: ReadHandler<T>,
) -> AdminRoute {
    bodiless((RouteMethod::Post, role), (path, id), handler)
}

/// Returns a route for an action that its body describes.
pub(in crate::admin::api) fn post<B: RequestBody, T: ReplyBody>(
    role: AdminRole,
    path: &'static str,
    id: &'static str,
    handler: WriteHandler<B, T>,
) -> AdminRoute {
    with_body((RouteMethod::Post, role), (path, id), handler).fails(&[503])
}

/// Returns a route that creates an item.
pub(in crate::admin::api) fn create<B: RequestBody, T: ReplyBody>(
    role: AdminRole,
    path: &'static str,
    id: &'static str,
    handler: WriteHandler<B, T>,
) -> AdminRoute {
    let route = with_body((RouteMethod::Post, role), (path, id), handler);
    AdminRoute {
        status: 201,
        ..route.fails(&[409, 503])
    }
}

/// Returns a route that changes a part of an item. The caller must have seen its version.
pub(in crate::admin::api) fn put<B: RequestBody, T: ReplyBody>(
    role: AdminRole,
    path: &'static str,
    id: &'static str,
    handler: WriteHandler<B, T>,
) -> AdminRoute {
    let route = with_body((RouteMethod::Put, role), (path, id), handler);
    AdminRoute {
        is_versioned: true,
        ..route.versioned().fails(&[409, 503])
    }
}

/// Returns a route that applies a merge patch to an item. The caller must have seen its version.
pub(in crate::admin::api) fn patch<B: RequestBody, T: ReplyBody>(
    role: AdminRole,
    path: &'static str,
    id: &'static str,
    handler: WriteHandler<B, T>,
) -> AdminRoute {
    let mut route = put(role, path, id, handler);
    route.verb = RouteMethod::Patch;
    if let Some(body) = &mut route.body {
        body.is_patch = true;
    }
    route
}

/// Returns a route that removes an item. The caller must have seen its version.
pub(in crate::admin::api) fn delete<T: ReplyBody>(
    role: AdminRole,
    path: &'static str,
    id: &'static str,
    handler: ReadHandler<T>,
) -> AdminRoute {
    let route = bodiless((RouteMethod::Delete, role), (path, id), handler);
    AdminRoute {
        status: 204,
        response: None,
        is_versioned: true,
        ..route.fails(&[409, 422, 503])
    }
}

fn bodiless<T: ReplyBody>(
    verb: (RouteMethod, AdminRole),
    place: RouteAddress,
    handler: ReadHandler<T>,
) -> AdminRoute {
    let handler: Handler =
        Box::new(move |api, call| async move { handler(api, call).await?.into_json() }.boxed());
    let route = AdminRoute::new(verb, place, handler);
    AdminRoute {
        response: Some(SchemaGenerator::subschema_for::<T>),
        ..route
    }
}

fn with_body<B: RequestBody, T: ReplyBody>(
    verb: (RouteMethod, AdminRole),
    place: RouteAddress,
    handler: WriteHandler<B, T>,
) -> AdminRoute {
    let schema = request::schema::<B>();
    let handler: Handler = Box::new(move |api, call| {
        let body = B::read(&schema, &call.body);
        async move { handler(api, call, body?).await?.into_json() }.boxed()
    });
    let route = AdminRoute::new(verb, place, handler);
    AdminRoute {
        body: Some(BodySpec {
            schema: SchemaGenerator::subschema_for::<B::SchemaType>,
            language: None,
            is_patch: false,
        }),
        response: Some(SchemaGenerator::subschema_for::<T>),
        ..route
    }
}

impl RouteMethod {
    pub(in crate::admin::api) fn of(method: &Method) -> Option<Self> {
        Some(match *method {
            Method::GET | Method::HEAD => Self::Get,
            Method::POST => Self::Post,
            Method::PUT => Self::Put,
            Method::PATCH => Self::Patch,
            Method::DELETE => Self::Delete,
            _ => return None,
        })
    }

    pub(in crate::admin::api) fn as_str(self) -> &'static str {
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
    fn new(
        (verb, role): (RouteMethod, AdminRole),
        (path, id): RouteAddress,
        handler: Handler,
    ) -> Self {
        Self {
            verb,
            path,
            id,
            tag: "",
            about: "",
            role,
            query: &[],
            body: None,
            status: 200,
            may_be_ok: false,
            response: None,
            has_version: false,
            is_versioned: false,
            failures: &[],
            handler,
        }
    }

    /// Sets the description.
    pub(in crate::admin::api) fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Sets the parameters of the query.
    pub(in crate::admin::api) fn query(mut self, query: &'static [Param]) -> Self {
        self.query = query;
        self
    }

    /// Sets the error statuses that do not follow from the rest.
    pub(in crate::admin::api) fn fails(mut self, failures: &'static [u16]) -> Self {
        self.failures = failures;
        self
    }

    /// Adds a version (`ETag`) to the response.
    pub(in crate::admin::api) fn versioned(mut self) -> Self {
        self.has_version = true;
        self
    }

    /// Removes the need for `If-Match`: the item has no version.
    pub(in crate::admin::api) fn unconditional(mut self) -> Self {
        self.is_versioned = false;
        self
    }

    /// Allows the call to succeed with 200 as well.
    pub(in crate::admin::api) fn or_ok(mut self) -> Self {
        self.may_be_ok = true;
        self
    }

    /// Sets the schema of the body to this one of the configuration language.
    pub(in crate::admin::api) fn in_language(mut self, schema: &'static str) -> Self {
        if let Some(body) = &mut self.body {
            body.language = Some(schema);
        }
        self
    }

    /// Returns the names of the path parameters, in order.
    pub(in crate::admin::api) fn params(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(named)
    }

    /// Returns the target of a call, with these values of the path parameters. Parameters that may be
    /// secrets are omitted.
    pub(in crate::admin::api) fn target(&self, params: &[(&'static str, String)]) -> String {
        let segments = self.path.split('/').filter(|it| !it.is_empty());
        let segments = segments.map(|segment| {
            let name = named(segment).filter(|it| !matches!(*it, "member" | "entry"));
            let given = params.iter().find(|(it, _)| Some(*it) == name);
            given.map_or(segment, |(_, text)| text)
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// Returns every error status of this route, in order.
    pub(in crate::admin::api) fn refusals(&self) -> Vec<u16> {
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
        all.extend(self.failures);
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Returns the name of a path parameter, if the segment is one.
pub(in crate::admin::api) fn named(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

impl std::fmt::Debug for AdminRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}{}", self.verb.as_str(), BASE, self.path)
    }
}
