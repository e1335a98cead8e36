//! The admin API: dispatches a request to its handler.
//!
//! | module | what it is |
//! |---|---|
//! | `routes` | the list of all routes |
//! | `routing` | the route of a request, and a call as its handler sees it |
//! | `bodies` | the types of requests and responses, which make the JSON and the schemas |
//! | `handlers` | the handlers, by resource |
//! | `openapi` | the list of routes as an `OpenAPI` document |
//! | `query`, `json`, `request`, `etag` | the parts of a request: query, body, version |
//! | `caller`, `failures` | authentication; a bound on wrong tokens |
//! | `patch` | merge patches |
//! | `audit` | the audit log |
//! | `reply`, `problem` | successful responses, and errors: every status and header |

mod audit;
mod bodies;
mod caller;
mod etag;
mod failures;
mod handlers;
mod json;
mod openapi;
mod patch;
mod problem;
mod query;
mod reply;
mod request;
mod routes;
mod routing;

use crate::admin::body::AdminBody;
use crate::live::Composer;
use crate::pending_changes::PendingChanges;
use arc_swap::ArcSwapOption;
use audit::{AuditEntry, AuditLog, AuditOutcome, AuditedChange};
use caller::{AuthenticationError, Caller};
use etag::ExpectedVersions;
use failures::Failures;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use hyper::body::{Body, Incoming};
use problem::AdminProblem;
use query::Query;
use reply::AdminReply;
use routing::call::AdminCall;
use routing::path;
use routing::route::{AdminRoute, BodySpec, RouteMethod};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_config::admin::Admin;
use tidegate_frontends::body::{self, BodyError};
use tidegate_frontends::decider::Decider;
use tidegate_frontends::respond::closing;
use tidegate_net::bounds::Bounds;
use tidegate_net::phase::PhaseWatch;
use tidegate_net::session::RequestContext;
use tokio::sync::{Mutex, Semaphore, oneshot};
use tracing::warn;

/// The maximum length of a body in bytes.
const BODY_MAX: usize = 1 << 20;

/// The number of calls that may scan a whole collection at a time: a set, or the keys of a limit.
const WALKS_MAX: usize = 2;

/// Returns true if a path can only belong to the admin API.
pub(super) fn is_below_admin(path: &str) -> bool {
    let rest = path.strip_prefix("/admin");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The admin API. It is disabled until a credential is configured.
#[derive(Debug)]
pub struct Api {
    /// The credentials; while this is empty, no caller is accepted. A reload replaces it.
    admin: Arc<ArcSwapOption<Admin>>,
    phase: PhaseWatch,
    decider: Decider,
    composer: Composer,
    bounds: Bounds,
    failures: Failures,
    book: AuditLog,
    /// Bounds how many denials of authenticated callers are recorded.
    denials: Failures,
    walks: Semaphore,
    /// Serializes changes to plans.
    planning: Mutex<()>,
    /// Changes in flight, which complete even if their callers disconnect.
    changes: Arc<PendingChanges>,
}

impl Api {
    /// Creates the API of the server in `phase`, whose configuration `composer` manages. Changes run among
    /// `changes`.
    pub fn new(
        phase: PhaseWatch,
        composer: Composer,
        bounds: Bounds,
        changes: Arc<PendingChanges>,
    ) -> Self {
        let serving = composer.serving();
        Self {
            admin: Arc::clone(serving.admin()),
            phase,
            decider: serving.decider().clone(),
            composer,
            bounds,
            failures: Failures::new(),
            book: AuditLog::default(),
            denials: Failures::new(),
            walks: Semaphore::new(WALKS_MAX),
            planning: Mutex::new(()),
            changes,
        }
    }

    /// Returns true if a path belongs to the admin API, and the API is enabled.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        is_below_admin(path) && self.admin.load().is_some()
    }

    /// Answers a request.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        visit: RequestContext<'_>,
    ) -> Response<AdminBody> {
        let (parts, body) = request.into_parts();
        let place = path::find(routes::all(), parts.uri.path());
        let verb = RouteMethod::of(&parts.method);
        let route = place.as_ref().and_then(|place| place.by(verb));
        let is_read = body.is_end_stream();
        let answered = async {
            let admin = self
                .admin
                .load_full()
                .ok_or_else(AdminProblem::unauthorized)?;
            let caller = self.authenticate(&admin, &parts, visit)?;
            let place = place.ok_or_else(AdminProblem::no_route)?;
            let route = route.ok_or_else(|| AdminProblem::wrong_method(&place.allowed()))?;
            if caller.role < route.role {
                let refusal = AdminProblem::forbidden(caller.role, route.role);
                self.deny(caller, visit.peer(), (place, route)).await;
                return Err(refusal);
            }
            let call = self.read(route, caller, visit.peer(), (place, &parts, body));
            let call = call.await?;
            let done = match route.verb {
                RouteMethod::Get => (route.handler)(&self, &call).await?,
                _ => self.finish(call).await?,
            };
            Ok(match done.etag() {
                Some(etag)
                    if verb == Some(RouteMethod::Get) && etag::is_seen(&parts.headers, etag) =>
                {
                    done.unchanged()
                }
                _ => done,
            })
        };
        let (answer, is_fine) = match answered.await {
            Ok(done) => (done.into_response(), true),
            Err(refusal) => (refusal.into_response(), false),
        };
        let code = answer.status().as_u16();
        let metrics = &self.decider.metrics().admin;
        metrics.count(route.map(|route| route.id), code);
        if is_fine || is_read {
            return answer;
        }
        // The rest of the body cannot be distinguished from the next request.
        tokio::task::yield_now().await;
        closing(answer)
    }

    /// Runs `call` to completion: a change that has begun is recorded even if the caller has
    /// disconnected.
    async fn finish(self: &Arc<Self>, call: AdminCall) -> Result<AdminReply, AdminProblem> {
        let (told, heard) = oneshot::channel();
        let api = Arc::clone(self);
        self.changes.spawn(async move {
            let done = (call.route.handler)(&api, &call).await;
            // The caller may have disconnected.
            told.send(done).ok();
        });
        heard
            .await
            .unwrap_or_else(|_| Err(AdminProblem::internal()))
    }

    /// Records that a caller tried a call that its role does not allow. Runs to completion, like a
    /// change.
    async fn deny(
        self: &Arc<Self>,
        caller: Caller,
        peer: IpAddr,
        (place, route): (path::RouteMatches, &'static AdminRoute),
    ) {
        if self.denials.note(peer).is_some() {
            return;
        }
        let change = AuditedChange {
            target: route.target(&place.params(route).unwrap_or_default()),
            before: Value::Null,
            after: Value::Null,
        };
        let (told, heard) = oneshot::channel::<()>();
        let api = Arc::clone(self);
        self.changes.spawn(async move {
            let entry = AuditEntry {
                caller: &caller,
                peer,
                action: route.id,
                outcome: AuditOutcome::Forbidden,
                change,
            };
            if let Some(admin) = api.admin.load_full()
                // A failure to open the log has been logged already.
                && let Ok(page) = api.book.open(&admin.audit).await
            {
                let written = api.book.write(page, &admin.audit, &api.decider, entry);
                written.await;
            }
            told.send(()).ok();
        });
        heard.await.ok();
    }

    /// Returns the caller, if it is authenticated.
    fn authenticate(
        &self,
        admin: &Admin,
        parts: &Parts,
        visit: RequestContext<'_>,
    ) -> Result<Caller, AdminProblem> {
        if caller::is_foreign(&parts.headers, &parts.uri) {
            return Err(AdminProblem::foreign_page());
        }
        let certificate = visit.certificate();
        caller::identify(admin, &parts.headers, certificate).map_err(|why| match why {
            AuthenticationError::Silent => AdminProblem::unauthorized(),
            AuthenticationError::Wrong => match self.failures.note(visit.peer()) {
                Some(wait_s) => AdminProblem::too_often(wait_s),
                None => {
                    warn!(event = "admin_token_unknown", peer = %visit.peer(), "admin API: unknown token");
                    AdminProblem::unauthorized()
                }
            },
        })
    }

    /// Reads all parts of a request.
    async fn read(
        &self,
        route: &'static AdminRoute,
        caller: Caller,
        peer: IpAddr,
        (place, parts, body): (path::RouteMatches, &Parts, Incoming),
    ) -> Result<AdminCall, AdminProblem> {
        let params = place.params(route)?;
        let query = Query::read(parts.uri.query(), route.query)?;
        let expected = if route.is_versioned {
            ExpectedVersions::of(&parts.headers)?
        } else {
            ExpectedVersions::Any
        };
        let body = match &route.body {
            Some(of) => self.body(of, &parts.headers, body).await?,
            None if body.is_end_stream() => Value::Null,
            None => return Err(AdminProblem::malformed("body", "there is none here")),
        };
        Ok(AdminCall {
            route,
            caller,
            peer,
            params,
            query,
            body,
            expected,
        })
    }

    /// Reads a body, which is always a JSON object.
    async fn body(
        &self,
        of: &BodySpec,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<Value, AdminProblem> {
        if !is_json(headers, of.is_patch) {
            return Err(AdminProblem::not_json(of.is_patch));
        }
        let read = body::read(body, BODY_MAX, self.bounds.body_time).await;
        let text = read.map_err(|error| match error {
            BodyError::TooLarge => AdminProblem::body_too_large(BODY_MAX),
            BodyError::TooSlow => AdminProblem::body_too_slow(),
            BodyError::Broken => AdminProblem::malformed("body", "it ended too early"),
        })?;
        let value = json::read(&text).map_err(|why| AdminProblem::malformed("body", why))?;
        if !value.is_object() {
            return Err(AdminProblem::invalid("body", "expected an object"));
        }
        Ok(value)
    }

    /// Runs `work`, and records the change that it reports. A failed `work` may also report one, if it
    /// may have changed something.
    async fn change<T>(
        &self,
        call: &AdminCall,
        work: impl Future<Output = Result<(T, Option<AuditedChange>), AdminProblem>>,
    ) -> Result<T, AdminProblem> {
        let admin = self
            .admin
            .load_full()
            .ok_or_else(AdminProblem::unauthorized)?;
        let page = self.book.open(&admin.audit).await?;
        if self.changes.is_over() {
            return Err(AdminProblem::unavailable(
                "this server stops: nothing was done",
            ));
        }
        let worked = tokio::select! {
            biased;
            worked = work => worked,
            () = self.changes.over() => Err(cut(call)),
        };
        let (worked, told) = match worked {
            Ok((done, change)) => (Ok(done), change.map(|it| (AuditOutcome::Done, it))),
            Err(mut refusal) => {
                let change = refusal.take_change();
                (Err(refusal), change)
            }
        };
        if let Some((outcome, change)) = told {
            let entry = AuditEntry {
                caller: &call.caller,
                peer: call.peer,
                action: call.route.id,
                outcome,
                change,
            };
            let written = self.book.write(page, &admin.audit, &self.decider, entry);
            written.await;
        }
        worked
    }
}

/// Returns the problem for a call that the shutdown interrupts, so its result is unknown. The audit entry
/// omits the requested state: it may contain a secret, which only the handler can recognize.
fn cut(call: &AdminCall) -> AdminProblem {
    let change = AuditedChange {
        target: call.route.target(&call.params),
        before: Value::Null,
        after: Value::Null,
    };
    let detail = "this server stops, and it is not known whether that was done";
    AdminProblem::unavailable(detail).with_change(AuditOutcome::Unknown, change)
}

/// Returns true if the content type of a body is JSON.
fn is_json(headers: &HeaderMap, is_patch: bool) -> bool {
    if headers.contains_key(CONTENT_ENCODING) {
        return false;
    }
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return false;
    };
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
        || (is_patch && kind.eq_ignore_ascii_case("application/merge-patch+json"))
}
