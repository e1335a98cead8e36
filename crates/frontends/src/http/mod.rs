//! The HTTP API: `POST /v1/check`, reservations, requests in flight, and the route to `/v1/auth`.
//!
//! | module | what it is |
//! |---|---|
//! | this one | dispatch of a path to its handler |
//! | `check` | `POST /v1/check` |
//! | `acquire` | `POST /v1/acquire`, `/v1/renew` and `/v1/release` |
//! | `reserve` | `POST /v1/reserve`, `/v1/commit` and `/v1/refund` |
//! | `openapi` | the `OpenAPI` document at `GET /openapi.json` |

mod acquire;
mod check;
mod openapi;
mod reserve;

use super::auth::PendingAuth;
use super::respond::{self, FrontendResponse, WholeBody};
use super::{auth, body, rls_json};
use crate::decider::Decider;
use crate::wire::permit::PermitVerb;
use crate::wire::settle::SettleVerb;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, Request};
use hyper::body::Incoming;
use tidegate::{AnyStore, Store};
use tidegate_net::bounds::Bounds;
use tidegate_net::frontend::Frontend;
use tidegate_net::promise::Promise;
use tidegate_net::session::RequestContext;
use tidegate_telemetry::stopwatch::Stopwatch;
use tidegate_telemetry::traces::{AttributeValue, RequestTrace};

/// The capacity for one decision in JSON; nearly every decision fits.
const DECISION_BYTES: usize = 192;

/// The HTTP API.
#[derive(Debug)]
pub struct HttpFrontend<S = AnyStore> {
    decider: Decider<S>,
    bounds: Bounds,
}

/// The endpoints for `POST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostRoute {
    Check,
    Reserve,
    Settle(SettleVerb),
    Acquire,
    Permits(PermitVerb),
    /// The JSON form of Envoy's rate limit service.
    Envoy,
}

impl PostRoute {
    /// The endpoints with their paths.
    const ALL: [(&str, Self); 8] = [
        ("/v1/check", Self::Check),
        ("/v1/reserve", Self::Reserve),
        ("/v1/commit", Self::Settle(SettleVerb::Commit)),
        ("/v1/refund", Self::Settle(SettleVerb::Refund)),
        ("/v1/acquire", Self::Acquire),
        ("/v1/renew", Self::Permits(PermitVerb::Renew)),
        ("/v1/release", Self::Permits(PermitVerb::Release)),
        (rls_json::JSON, Self::Envoy),
    ];

    /// Returns the endpoint at `path`, if there is one.
    fn at(path: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == path);
        found.map(|(_, route)| *route)
    }
}

impl<S: Store> HttpFrontend<S> {
    /// Creates the frontend.
    pub fn new(decider: Decider<S>, bounds: Bounds) -> Self {
        Self { decider, bounds }
    }

    async fn answer_body(&self, asking: PostRoute, request: Request<Incoming>) -> FrontendResponse {
        let watch = Stopwatch::start();
        if !is_json(request.headers()) {
            return respond::unsupported();
        }
        // Every caller that may check here is trusted with its trace context too.
        let trace = self.decider.trace(request.headers(), || true);
        trace.name(|| request.uri().path().to_owned());
        trace.note(|| [("tidegate.listener", AttributeValue::Word("http"))]);
        let bounds = &self.bounds;
        let body = body::read(request.into_body(), bounds.body_bytes, bounds.body_time).await;
        let answer = match body {
            Ok(body) => self.ask(asking, &body, &trace).value().await,
            Err(error) => {
                // Lets hyper notice that the rest of the body is not read. Otherwise it would keep
                // waiting for the body after the response, and the connection would stay open.
                tokio::task::yield_now().await;
                return respond::no_body(error, bounds);
            }
        };
        trace.answered(answer.status().as_u16());
        self.decider.metrics().durations.observe(watch.elapsed());
        answer
    }

    fn ask<'a>(
        &'a self,
        asking: PostRoute,
        text: &'a [u8],
        trace: &'a RequestTrace,
    ) -> Promise<'a, FrontendResponse> {
        match asking {
            PostRoute::Check => self.check(text, trace),
            PostRoute::Reserve => Promise::Later(Box::pin(self.reserve(text, trace))),
            PostRoute::Settle(kind) => Promise::Later(Box::pin(self.settle(text, kind))),
            PostRoute::Acquire => Promise::Later(Box::pin(self.acquire(text, trace))),
            PostRoute::Permits(verb) => Promise::Later(Box::pin(self.settle_permits(text, verb))),
            PostRoute::Envoy => rls_json::answer(&self.decider, text, trace),
        }
    }
}

impl<S: Store + 'static> Frontend for HttpFrontend<S> {
    type Body = WholeBody;
    type Memory = ();
    type PendingState = Option<Box<PendingAuth<S>>>;

    fn answer_at_once(
        &self,
        request: &Request<Incoming>,
        visit: RequestContext<'_>,
    ) -> Result<FrontendResponse, Self::PendingState> {
        if !auth::is_at(request.uri().path()) {
            return Err(None);
        }
        auth::answer_at_once(&self.decider, request, visit.peer())
    }

    async fn answer(
        &self,
        request: Box<Request<Incoming>>,
        visit: RequestContext<'_>,
        begun: Self::PendingState,
    ) -> FrontendResponse {
        match (PostRoute::at(request.uri().path()), request.method()) {
            (Some(asking), &Method::POST) => self.answer_body(asking, *request).await,
            (Some(_), _) => respond::wrong_method("POST"),
            (None, _) if request.uri().path() == rls_json::HEALTH => {
                rls_json::health(&self.decider, visit.phase()).await
            }
            (None, method) if request.uri().path() == openapi::PATH => match *method {
                Method::GET | Method::HEAD => respond::document(openapi::document()),
                _ => respond::wrong_method("GET, HEAD"),
            },
            (None, _) if auth::is_at(request.uri().path()) => {
                let begun = (visit.peer(), begun);
                auth::answer(&self.decider, &self.bounds, *request, begun).await
            }
            (None, _) => respond::not_found(
                request.uri().path(),
                "decisions are at POST /v1/check, for proxies at /v1/auth; see /openapi.json",
            ),
        }
    }

    fn unauthorized() -> FrontendResponse {
        respond::unauthorized()
    }

    fn problem(answer: &FrontendResponse) -> Option<u16> {
        respond::problem_status(answer)
    }

    /// At `/v1/auth`, `Authorization` is the client's own, passed on by a proxy; the proxy is identified
    /// by its address. Health is for probes, which seldom can hold a secret. The `OpenAPI` document is the
    /// same for every server, and reveals nothing about this one.
    fn is_public(&self, request: &Request<Incoming>) -> bool {
        let path = request.uri().path();
        auth::is_at(path) || path == rls_json::HEALTH || path == openapi::PATH
    }
}

/// Returns true if the content type allows JSON: it is JSON, or missing, or the default of `curl -d`. The
/// body has to be JSON in any case.
fn is_json(headers: &HeaderMap) -> bool {
    if headers.contains_key(CONTENT_ENCODING) {
        return false;
    }
    let Some(kind) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let kind = kind.as_bytes();
    let end = kind
        .iter()
        .position(|byte| *byte == b';')
        .unwrap_or(kind.len());
    let kind = kind.get(..end).unwrap_or(kind).trim_ascii();
    let is_suffixed = kind.len().checked_sub(5).and_then(|at| kind.get(at..));
    kind.eq_ignore_ascii_case(b"application/json")
        || kind.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        || is_suffixed.is_some_and(|suffix| suffix.eq_ignore_ascii_case(b"+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_of_json_are_accepted() {
        let check = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            is_json(&headers)
        };
        for kind in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.example+json",
            "application/x-www-form-urlencoded",
        ] {
            assert!(check(kind), "{kind}");
        }
        for kind in [
            "text/xml",
            "multipart/form-data; boundary=json",
            "json",
            "+jso",
            "",
        ] {
            assert!(!check(kind), "{kind}");
        }
        assert!(is_json(&HeaderMap::new()));
    }

    #[test]
    fn compressed_bodies_are_rejected() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, "gzip".parse().unwrap());
        assert!(!is_json(&headers));
    }
}
