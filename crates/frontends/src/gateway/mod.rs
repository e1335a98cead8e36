//! The gateway: decides a request, and forwards it.
//!
//! | module | what it is |
//! |---|---|
//! | `route_table`, `active_route` | a snapshot of all routes; one route, ready to forward requests |
//! | `ambiguity`, `strict_path` | rejection of ambiguous requests |
//! | `decide` | the decision about a request |
//! | `outbound` | the request that an upstream gets |
//! | `upgrade`, `messages` | connections that switch protocols |
//! | `bridge` | WebSocket over HTTP/2 |
//! | `body` | the body of a response: an upstream's, or the gateway's own |
//! | `answer`, `grpc` | the gateway's own responses, if no upstream answers |
//! | `upkeep` | background tasks, and reloads |

mod active_route;
mod ambiguity;
mod answer;
mod body;
mod bridge;
mod decide;
mod grpc;
mod messages;
mod outbound;
mod route_table;
mod strict_path;
mod upgrade;
mod upkeep;

pub use upkeep::Gateway;

use self::active_route::{ActiveRoute, RouteRecord};
use self::ambiguity::doubt;
use self::answer::{Addressee, GatewayResponse, whole};
use self::body::GatewayBody;
use self::decide::GatewayVerdict;
use self::outbound::{ForwardTerms, outbound, root};
use self::route_table::RouteTable;
use self::upgrade::{Upgrade, UpgradeProtocol, is_websocket};
use super::respond;
use crate::decider::Decider;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::{Body, Incoming};
use std::sync::{Arc, OnceLock};
use tidegate::{Decision, Permit, Policy, Store};
use tidegate_http::answer::inform;
use tidegate_net::frontend::{Frontend, Http2Settings, Protocols};
use tidegate_net::paced_body::PacedBody;
use tidegate_net::session::RequestContext;
use tidegate_policy::route::RefundRule;
use tidegate_proxy::backlog::{Backlog, UnreadBody};
use tidegate_proxy::connection_kind::ConnectionKind;
use tidegate_proxy::error::UpstreamError;
use tidegate_proxy::fleet::NoUpstreamAnswer;
use tidegate_proxy::forwarding_headers::ForwardingHeaders;
use tidegate_proxy::hop::{self, RequestFields};
use tidegate_proxy::interim::InterimForwarder;
use tidegate_proxy::outgoing::OutgoingRequest;
use tidegate_telemetry::traces::{self, Context, TRACEPARENT, TRACESTATE};

/// Decides requests and forwards them.
#[derive(Debug)]
pub struct GatewayFrontend<S> {
    decider: Decider<S>,
    gateway: Arc<Gateway>,
}

/// The state of one connection.
#[derive(Debug, Default)]
pub struct ConnectionMemory {
    /// The origin of its requests, as forwarding headers describe it.
    trace: OnceLock<ForwardingHeaders>,
    /// Its request bodies that wait to be read; unused over HTTP/1, which has one body at a time.
    backlog: OnceLock<Arc<Backlog>>,
}

impl ConnectionMemory {
    /// Returns the origin of the connection's requests.
    fn trace(&self, visit: &RequestContext<'_, Self>) -> &ForwardingHeaders {
        let new = || ForwardingHeaders::new(visit.peer(), visit.is_secure());
        self.trace.get_or_init(new)
    }

    /// Records that the body of a request waits to be read, if other bodies share its connection.
    fn unread(&self, request: &Request<Incoming>, has_body: bool) -> Option<UnreadBody> {
        let is_http2 = request.version() == Version::HTTP_2;
        let is_shared = has_body && is_http2 && !request.body().is_end_stream();
        is_shared.then(|| UnreadBody::new(self.backlog.get_or_init(Arc::default)))
    }
}

impl<S: Store + 'static> GatewayFrontend<S> {
    /// Creates the frontend of `gateway`.
    pub fn new(decider: Decider<S>, gateway: Arc<Gateway>) -> Self {
        Self { decider, gateway }
    }

    /// Finds the route of a request, and forwards it.
    async fn pass(
        &self,
        request: Box<Request<Incoming>>,
        visit: RequestContext<'_, ConnectionMemory>,
    ) -> GatewayResponse {
        let table = self.gateway.table();
        let is_passed = !matches!(*request.method(), Method::CONNECT | Method::TRACE);
        let doubt = doubt(&request, table.paths()).filter(|_| is_passed);
        let way = match doubt {
            None if is_passed => table.find(&request),
            _ => None,
        };
        if let Some(way) = way {
            let is_trusted = || table.rules.client().trusts(visit.peer());
            let trace = self.decider.trace(request.headers(), is_trusted);
            way.describe(&request, &trace);
            let counted = RouteRecord::new(way.lane, way.pattern, trace);
            let way = (&table, way.lane);
            let answer = self.take(way, request, visit, counted.trace()).await;
            counted.end(answer.status());
            return answer;
        }
        let respond = table.rules.policy(None).map(Policy::respond);
        let addressee = Addressee::of(&request, respond);
        let answer = match doubt {
            Some(why) => addressee.doubtful(why),
            None if is_passed => addressee.no_route(),
            None => addressee.wrong_method(),
        };
        self.gateway.count_unmatched(answer.status().as_u16());
        answer
    }

    async fn take(
        &self,
        (table, lane): (&Arc<RouteTable>, &Arc<ActiveRoute>),
        mut request: Box<Request<Incoming>>,
        visit: RequestContext<'_, ConnectionMemory>,
        recorded: &traces::RequestTrace,
    ) -> GatewayResponse {
        let unread = visit.memory().unread(&request, visit.has_body());
        let fields = RequestFields::of(request.headers());
        let wanted = lane.wanted_upgrade(&request, fields);
        let becomes_websocket = wanted.as_ref().is_some_and(is_websocket);
        let Ok(handshake) = bridge::handshake(&mut request, becomes_websocket) else {
            return Addressee::of(&request, lane.respond(table)).no_websocket();
        };
        let from = (&*request, visit.peer());
        let (verdict, messages) = self.decide((table, lane), from, recorded, becomes_websocket);
        let decision = match verdict.value().await {
            GatewayVerdict::Pass(decision) => decision,
            GatewayVerdict::Answer(answer) => return *answer,
        };
        let addressee = Addressee::of(&request, lane.respond(table));
        let upgrade = wanted.as_ref().map(|_| {
            let protocol = UpgradeProtocol::of(becomes_websocket, messages);
            Upgrade::new(&mut request, visit, protocol, handshake)
        });
        let permit = decision.as_deref().and_then(Decision::permit);
        let terms = ForwardTerms {
            lane,
            fields,
            has_body: visit.has_body(),
            trace: visit.memory().trace(&visit),
            is_trusted: table.rules.client().trusts(visit.peer()),
            upgrade: wanted,
            interim: lane.interim(&request, visit),
            unread,
        };
        let leg = recorded.leg();
        let parent = recorded.header(&leg);
        self.pass_trace(request.headers_mut(), parent, terms.is_trusted);
        let mut answer = match outbound(request, terms) {
            Ok(request) => match self.forward(lane, request, (upgrade, permit)).await {
                Ok(answer) => {
                    recorded.forwarded(leg, Some(answer.status().as_u16()));
                    answer
                }
                Err(unanswered) => {
                    recorded.forwarded(leg, None);
                    Box::pin(self.refund(lane, decision.as_deref(), &unanswered)).await;
                    addressee.trouble(&unanswered.trouble)
                }
            },
            Err(error) => addressee.upload(error),
        };
        if let Some(decision) = &decision {
            inform(decision, answer.headers_mut());
        }
        answer
    }

    /// Writes the trace context that an upstream continues.
    fn pass_trace(&self, headers: &mut HeaderMap, parent: Option<HeaderValue>, is_trusted: bool) {
        match parent {
            Some(parent) => belong(headers, parent),
            // Upstreams trust the gateway, so an untrusted client's trace is not passed on as recorded.
            None if !is_trusted && self.decider.tracer().is_some() => unrecorded(headers),
            None => {}
        }
    }

    /// Forwards a request, and returns the upstream's response. That holds the permits of the request until it
    /// ends, or its tunnel does.
    async fn forward(
        &self,
        lane: &Arc<ActiveRoute>,
        request: Box<OutgoingRequest>,
        (upgrade, permit): (Option<Box<Upgrade<S>>>, Option<Permit>),
    ) -> Result<GatewayResponse, NoUpstreamAnswer> {
        let manner = match upgrade {
            Some(_) => ConnectionKind::Upgrade,
            None => ConnectionKind::Usual,
        };
        let (answered, target, turn) = lane.fleet.forward(request, manner, &**lane).await?;
        match upgrade {
            Some(upgrade) if !upgrade.understands(&answered) => Err(NoUpstreamAnswer {
                trouble: UpstreamError::Malformed("it is not a valid WebSocket handshake response"),
                is_unreached: false,
            }),
            Some(upgrade) if answered.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Ok(upgrade.begin(lane, answered, (turn, permit)))
            }
            _ => {
                let upstream = turn.index();
                let answer = answered.relay(target, turn);
                let body = |body| GatewayBody::upstream(body, (lane, upstream), permit);
                let mut answer = answer.map(body);
                lane.inbound(&mut answer);
                Ok(answer)
            }
        }
    }

    /// Refunds a request that no upstream has seen, if the route is configured so.
    async fn refund(
        &self,
        lane: &ActiveRoute,
        decision: Option<&Decision>,
        unanswered: &NoUpstreamAnswer,
    ) {
        let is_due = lane.route.refund == RefundRule::Unreached && unanswered.is_unreached;
        if let Some(decision) = decision.filter(|_| is_due)
            && self.decider.refund_decision(decision).await
        {
            lane.metrics.count_refund();
        }
    }
}

/// Makes `parent` the parent of the upstream's spans.
fn belong(headers: &mut HeaderMap, parent: HeaderValue) {
    // The vendor state of an invalid trace context belongs to no trace.
    if Context::of(headers).is_none() {
        headers.remove(TRACESTATE);
    }
    headers.insert(TRACEPARENT, parent);
}

/// Marks the trace context as not recorded, because its sender is not trusted.
fn unrecorded(headers: &mut HeaderMap) {
    let Some(context) = Context::of(headers) else {
        // An upstream might accept a context that this parser rejects: the first of two, say, or
        // upper-case digits.
        if headers.remove(TRACEPARENT).is_some() {
            headers.remove(TRACESTATE);
        }
        return;
    };
    let forwarded = Context {
        is_sampled: false,
        ..context
    };
    if let Some(forwarded) = forwarded.header().filter(|_| context.is_sampled) {
        headers.insert(TRACEPARENT, forwarded);
    }
}

impl ActiveRoute {
    /// Returns the channel for interim responses to a request, if its client accepts any.
    fn interim<B, M>(
        &self,
        request: &Request<B>,
        visit: RequestContext<'_, M>,
    ) -> Option<InterimForwarder> {
        // Clients of HTTP/1.0 do not know interim responses (RFC 9110, 15.2).
        let knows = request.version() == Version::HTTP_11;
        let client = visit.interims().filter(|_| knows)?;
        Some(InterimForwarder::new(client, &self.response_changes))
    }

    /// Turns an upstream's response into the one that the client gets.
    fn inbound(&self, answer: &mut GatewayResponse) {
        let is_offer = answer.status() == StatusCode::UPGRADE_REQUIRED;
        let headers = answer.headers_mut();
        let offered = is_offer.then(|| headers.get(UPGRADE).cloned()).flatten();
        hop::strip_response(headers);
        self.response_changes.apply(headers);
        // A client needs the offered protocols to make use of this status (RFC 9110, 15.5.22).
        if let Some(offered) = offered {
            headers.insert(UPGRADE, offered);
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        // The client's connection has its own HTTP version, independent of the upstream's.
        *answer.version_mut() = Version::default();
    }
}

impl<S: Store + 'static> Frontend for GatewayFrontend<S> {
    type Body = PacedBody<GatewayBody>;
    type Memory = ConnectionMemory;
    type PendingState = ();

    const PROTOCOLS: Protocols = Protocols::Http1AndHttp2;

    const HTTP2: Http2Settings = Http2Settings {
        takes_websockets: true,
        ..Http2Settings::OF_STRANGERS
    };

    async fn answer(
        &self,
        mut request: Box<Request<Incoming>>,
        visit: RequestContext<'_, ConnectionMemory>,
        (): (),
    ) -> Response<Self::Body> {
        root(&mut request);
        bridge::translate(&mut request);
        let mut answer = self.pass(request, visit).await;
        grpc::translate(&mut answer);
        answer.map(|body| PacedBody::new(body, Some(visit.alive())))
    }

    fn unauthorized() -> Response<Self::Body> {
        whole(respond::unauthorized()).map(|body| PacedBody::new(body, None))
    }

    fn is_public(&self, _request: &Request<Incoming>) -> bool {
        false
    }

    /// Problems of upstreams are counted by route.
    fn problem(_answer: &Response<Self::Body>) -> Option<u16> {
        None
    }
}
