//! The admin API: from a request to who answers it.
//!
//! | module | what it is |
//! |---|---|
//! | `route`, `table` | what a route is; all of them, by what they are of |
//! | `path`, `query`, `json`, `etag` | what a request says: where, what, of which version |
//! | `caller`, `failures` | who calls; wrong tokens, bounded |
//! | `call` | a call, as those see it who answer it |
//! | `of` | those who answer |
//! | `patch`, `page` | documents: changed in part, a piece at a time |
//! | `audit` | who changed what |
//! | `openapi` | the list of routes as a document |
//! | `respond` | every status and header |

mod audit;
mod call;
mod caller;
mod etag;
mod failures;
mod json;
mod of;
mod openapi;
mod page;
mod patch;
mod path;
mod query;
mod respond;
mod route;
mod table;

use crate::bounds::Bounds;
use crate::changes::PendingChanges;
use crate::decider::Decider;
use crate::doors::body::{self, BodyError};
use crate::doors::respond::{DoorResponse, closing};
use crate::live::Composer;
use crate::server::session::RequestContext;
use arc_swap::ArcSwapOption;
use audit::{AuditEntry, AuditLog, AuditOutcome, AuditedChange};
use call::AdminCall;
use caller::{Caller, Stranger};
use etag::Expected;
use failures::Failures;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Request};
use hyper::body::{Body, Incoming};
use query::Query;
use respond::{AdminProblem, Done};
use route::{AdminRoute, BodyOf, RouteMethod};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_policy::admin::Admin;
use tokio::sync::{Mutex, Semaphore, oneshot};
use tracing::warn;

/// The most bytes of a body.
const BODY_MAX: usize = 1 << 20;

/// How many calls at a time may look through all of something: a set, the keys of a limit.
const WALKS_MAX: usize = 2;

/// The admin API. It exists for callers once there is somebody who may call it.
#[derive(Debug)]
pub(crate) struct Api {
    /// Who may; nobody while it is empty. A reload replaces it.
    admin: Arc<ArcSwapOption<Admin>>,
    decider: Decider,
    composer: Composer,
    bounds: Bounds,
    failures: Failures,
    book: AuditLog,
    /// What known callers may not do is written down as often as this says, and no more.
    denials: Failures,
    walks: Semaphore,
    /// Held by whoever changes what plans say: one at a time.
    planning: Mutex<()>,
    /// Changes under way, which are finished even if their callers go.
    changes: Arc<PendingChanges>,
}

impl Api {
    /// The API of the server whose policies `composer` keeps. Changes run among `changes`.
    pub(crate) fn new(composer: Composer, bounds: Bounds, changes: Arc<PendingChanges>) -> Self {
        let serving = composer.serving();
        Self {
            admin: Arc::clone(serving.admin()),
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

    /// Whether a path belongs here, where there is anybody who may call.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        let is_below = path
            .strip_prefix("/admin")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_below && self.admin.load().is_some()
    }

    /// Answers a request.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        visit: RequestContext<'_>,
    ) -> DoorResponse {
        let (parts, body) = request.into_parts();
        let place = path::find(table::all(), parts.uri.path());
        let verb = RouteMethod::of(&parts.method);
        let route = place.as_ref().and_then(|place| place.by(verb));
        let is_read = body.is_end_stream();
        let answered = async {
            let admin = self
                .admin
                .load_full()
                .ok_or_else(AdminProblem::unauthorized)?;
            let caller = self.welcome(&admin, &parts, visit)?;
            let nothing =
                || AdminProblem::new(404, "there is nothing here; see /admin/v1/openapi.json");
            let place = place.ok_or_else(nothing)?;
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
            Ok(done) => (done.into_answer(), true),
            Err(refusal) => (refusal.into_answer(), false),
        };
        let code = answer.status().as_u16();
        let metrics = &self.decider.metrics().admin;
        metrics.count(route.map(|route| route.id), code);
        if is_fine || is_read {
            return answer;
        }
        // What is left of the body cannot be told from the next request.
        tokio::task::yield_now().await;
        closing(answer)
    }

    /// Does what `call` asks for, to its end: what has begun is written down, even if the caller has
    /// gone meanwhile.
    async fn finish(self: &Arc<Self>, call: AdminCall) -> Result<Done, AdminProblem> {
        let (told, heard) = oneshot::channel();
        let api = Arc::clone(self);
        self.changes.spawn(async move {
            let done = (call.route.handler)(&api, &call).await;
            // Nobody may be there any more to hear it.
            told.send(done).ok();
        });
        heard.await.unwrap_or_else(|_| Err(AdminProblem::failed()))
    }

    /// Writes down that somebody tried what is not theirs to do; to its end, as with what is done.
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
                // What cannot be opened has been told.
                && let Ok(page) = api.book.open(&admin.audit).await
            {
                let written = api.book.write(page, &admin.audit, &api.decider, entry);
                written.await;
            }
            told.send(()).ok();
        });
        heard.await.ok();
    }

    /// Who calls, if it is somebody who may.
    fn welcome(
        &self,
        admin: &Admin,
        parts: &Parts,
        visit: RequestContext<'_>,
    ) -> Result<Caller, AdminProblem> {
        if caller::is_foreign(&parts.headers, &parts.uri) {
            let detail = "pages of other origins may not call this";
            return Err(
                AdminProblem::new(403, detail).with("header.Origin", "it is not this server")
            );
        }
        let certificate = visit.certificate();
        caller::identify(admin, &parts.headers, certificate).map_err(|why| match why {
            Stranger::Silent => AdminProblem::unauthorized(),
            Stranger::Wrong => match self.failures.note(visit.peer()) {
                Some(wait_s) => AdminProblem::too_often(wait_s),
                None => {
                    warn!(peer = %visit.peer(), "a token that is no administrator's was shown");
                    AdminProblem::unauthorized()
                }
            },
        })
    }

    /// Everything that a request says.
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
            Expected::of(&parts.headers)?
        } else {
            Expected::Any
        };
        let body = match &route.body {
            Some(of) => self.body(of, &parts.headers, body).await?,
            None if body.is_end_stream() => Value::Null,
            None => return Err(AdminProblem::bad("body", "there is none here")),
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

    /// The JSON of a body: an object, always.
    async fn body(
        &self,
        of: &BodyOf,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<Value, AdminProblem> {
        if !is_json(headers, of.is_patch) {
            let kind = if of.is_patch {
                "`application/merge-patch+json` or `application/json`"
            } else {
                "`application/json`"
            };
            let detail = format!("send `Content-Type: ` {kind}, not compressed");
            return Err(AdminProblem::new(415, detail.replace(": ` ", ": ")));
        }
        let read = body::read(body, BODY_MAX, self.bounds.body_time).await;
        let text = read.map_err(|error| match error {
            BodyError::TooLarge => {
                AdminProblem::new(413, format!("a body may have {BODY_MAX} bytes"))
            }
            BodyError::TooSlow => AdminProblem::new(408, "the body was not there in time"),
            BodyError::Broken => AdminProblem::bad("body", "it ended too early"),
        })?;
        let value = json::read(&text).map_err(|why| AdminProblem::bad("body", why))?;
        if !value.is_object() {
            return Err(AdminProblem::senseless("body", "expected an object"));
        }
        Ok(value)
    }

    /// Does what `work` does, which tells what it has changed, or may have changed before it was refused;
    /// and writes that down.
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
            return Err(AdminProblem::away("this server stops: nothing was done"));
        }
        let worked = tokio::select! {
            biased;
            worked = work => worked,
            () = self.changes.over() => Err(cut(call)),
        };
        let (worked, told) = match worked {
            Ok((done, change)) => (Ok(done), change.map(|it| (AuditOutcome::Done, it))),
            Err(mut refusal) => {
                let told = refusal.take_told();
                (Err(refusal), told)
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

/// The server stops, and there is no time left to find out what comes of a call. What was asked for may
/// be a secret that only those know who were asked, and so it is not told.
fn cut(call: &AdminCall) -> AdminProblem {
    let change = AuditedChange {
        target: call.route.target(&call.params),
        before: Value::Null,
        after: Value::Null,
    };
    let detail = "this server stops, and it is not known whether that was done";
    AdminProblem::away(detail).told(AuditOutcome::Unknown, change)
}

/// Whether a body says that it is JSON.
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
