//! The gateway: decides a request, and forwards it.
//!
//! | module | what it is |
//! |---|---|
//! | `table`, `lane` | a snapshot of all routes; one route, ready to forward requests |
//! | `doubt`, `strict_path` | rejection of ambiguous requests |
//! | `verdict` | the decision about a request |
//! | `outbound` | the request that an upstream gets |
//! | `upgrade`, `messages` | connections that switch protocols |
//! | `bridge` | WebSocket over HTTP/2 |
//! | `body` | the body of a response: an upstream's, or the gateway's own |
//! | `answer`, `grpc` | the gateway's own responses, if no upstream answers |
//! | `upkeep` | background tasks, and reloads |

mod answer;
mod body;
mod bridge;
mod doubt;
mod grpc;
mod lane;
mod messages;
mod outbound;
mod strict_path;
mod table;
mod upgrade;
mod upkeep;
mod verdict;

pub(crate) use upkeep::Gateway;

use self::answer::{Addressee, GatewayResponse, whole};
use self::body::GatewayBody;
use self::doubt::doubt;
use self::lane::{ActiveRoute, RouteRecord};
use self::outbound::{ForwardTerms, outbound, root};
use self::table::RouteTable;
use self::upgrade::{Upgrade, UpgradeProtocol, is_websocket};
use self::verdict::GatewayVerdict;
use super::respond::{self, DoorResponse};
use super::{Door, Http2Settings, Protocols};
use crate::decider::Decider;
use crate::proxy::backlog::{Backlog, Unread};
use crate::proxy::fleet::NoUpstreamAnswer;
use crate::proxy::hop;
use crate::proxy::http1::Interim;
use crate::proxy::outgoing::Outgoing;
use crate::proxy::target::Manner;
use crate::proxy::trace::ForwardingHeaders;
use crate::proxy::trouble::UpstreamError;
use crate::server::paced::PacedBody;
use crate::server::session::RequestContext;
use crate::telemetry::traces::{self, Context, TRACEPARENT, TRACESTATE};
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::{Body, Incoming};
use std::sync::{Arc, OnceLock};
use tidegate::{Decision, Policy, Store};
use tidegate_http::answer::inform;
use tidegate_policy::route::RefundRule;

/// Decides requests and forwards them.
#[derive(Debug)]
pub(crate) struct GatewayDoor<S> {
    decider: Decider<S>,
    gateway: Arc<Gateway>,
}

/// The state of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionMemory {
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
    fn unread(&self, request: &Request<Incoming>) -> Option<Unread> {
        let is_shared = request.version() == Version::HTTP_2 && !request.body().is_end_stream();
        is_shared.then(|| Unread::new(self.backlog.get_or_init(Arc::default)))
    }
}

impl<S: Store + 'static> GatewayDoor<S> {
    pub(crate) fn new(decider: Decider<S>, gateway: Arc<Gateway>) -> Self {
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
            return counted.end(answer);
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
        let unread = visit.memory().unread(&request);
        let wanted = lane.wanted_upgrade(&request);
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
            Box::new(Upgrade {
                protocol: if becomes_websocket {
                    UpgradeProtocol::WebSocket(messages)
                } else {
                    UpgradeProtocol::Other
                },
                client: hyper::upgrade::on(&mut *request),
                closing: Box::pin(visit.closing()),
                tasks: Arc::clone(visit.tasks()),
                bridge: handshake.map(|it| (it, visit.alive())),
            })
        });
        let terms = ForwardTerms {
            lane,
            trace: visit.memory().trace(&visit),
            is_trusted: table.rules.client().trusts(visit.peer()),
            upgrade: wanted,
            // Clients of HTTP/1.0 do not know interim responses (RFC 9110, 15.2).
            interim: visit
                .interims()
                .filter(|_| request.version() == Version::HTTP_11)
                .map(|client| Interim::new(client, &lane.response_changes)),
            unread,
        };
        let leg = recorded.leg();
        let parent = recorded.header(&leg);
        self.pass_trace(request.headers_mut(), parent, terms.is_trusted);
        let mut answer = match outbound(request, terms) {
            Ok(request) => match self.forward(lane, request, upgrade).await {
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

    /// Forwards a request, and returns the upstream's response.
    async fn forward(
        &self,
        lane: &Arc<ActiveRoute>,
        request: Box<Outgoing>,
        upgrade: Option<Box<Upgrade<S>>>,
    ) -> Result<GatewayResponse, NoUpstreamAnswer> {
        let manner = match upgrade {
            Some(_) => Manner::Upgrade,
            None => Manner::Usual,
        };
        let (answered, target, turn) = lane.fleet.forward(request, manner, &**lane).await?;
        match upgrade {
            Some(upgrade) if !upgrade.understands(&answered) => Err(NoUpstreamAnswer {
                trouble: UpstreamError::Malformed(
                    "it is no answer to the handshake of a WebSocket",
                ),
                is_unreached: false,
            }),
            Some(upgrade) if answered.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Ok(upgrade.begin(lane, answered, turn))
            }
            _ => {
                let upstream = turn.index();
                let answer = answered.relay(target, turn);
                Ok(lane.inbound(answer.map(|body| GatewayBody::theirs(body, lane, upstream))))
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
            && self.decider.give_back(decision).await
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
    let told = Context {
        is_sampled: false,
        ..context
    };
    if let Some(told) = told.header().filter(|_| context.is_sampled) {
        headers.insert(TRACEPARENT, told);
    }
}

impl ActiveRoute {
    /// Returns the response that the client gets.
    fn inbound(&self, mut answer: GatewayResponse) -> GatewayResponse {
        let is_offer = answer.status() == StatusCode::UPGRADE_REQUIRED;
        let headers = answer.headers_mut();
        let offered = headers.get(UPGRADE).filter(|_| is_offer).cloned();
        hop::strip_response(headers);
        self.response_changes.apply(headers);
        // A client needs the offered protocols to make use of this status (RFC 9110, 15.5.22).
        if let Some(offered) = offered {
            headers.insert(UPGRADE, offered);
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        // The client's connection has its own HTTP version, independent of the upstream's.
        *answer.version_mut() = Version::default();
        answer
    }
}

impl<S: Store + 'static> Door for GatewayDoor<S> {
    type Body = PacedBody<GatewayBody>;
    type Memory = ConnectionMemory;
    type Begun = ();

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
        let answer = grpc::translate(self.pass(request, visit).await);
        answer.map(|body| PacedBody::new(body, Some(visit.alive())))
    }

    fn whole(answer: DoorResponse) -> Response<Self::Body> {
        whole(answer).map(|body| PacedBody::new(body, None))
    }

    fn is_public(&self, _request: &Request<Incoming>) -> bool {
        false
    }

    /// Problems of upstreams are counted by route.
    fn problem(_answer: &Response<Self::Body>) -> Option<u16> {
        None
    }
}
