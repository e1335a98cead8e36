//! The doors: from a protocol to a question, and from a decision back.
//!
//! | module | what it is |
//! |---|---|
//! | `http` | `POST /v1/check`, and the way to `auth` |
//! | `auth` | `/v1/auth`: forward-auth for proxies |
//! | `deny` | the query of `/v1/auth` |
//! | `gateway` | the reverse proxy |
//! | `admin` | `/livez`, `/readyz`, `/metrics` |
//! | `body` | a request's body, bounded in size and time |
//! | `promptly` | runs what nearly always ends at once |
//! | `respond` | every status and header that is ever answered |

pub(crate) mod admin;
mod auth;
mod body;
mod deny;
pub(crate) mod gateway;
pub(crate) mod http;
mod promptly;
pub(crate) mod respond;

use self::respond::Answer;
use crate::server::session::Visit;
use ::http::{Request, Response};
use hyper::body::{Body, Incoming};
use std::error::Error;
use std::future::Future;

/// What a door does with a request. Accepting, TLS, tokens, bounds and draining are the server's.
pub(crate) trait Door: Send + Sync + 'static {
    /// What the bodies of its answers are.
    type Body: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// What it remembers of a connection, from its first request to its last.
    type Memory: Default + Send + Sync + 'static;

    /// What is spoken on its connections.
    const PROTOCOLS: Protocols = Protocols::Http1;

    /// The answer to a request, if neither its body is needed nor anything has to be waited for; else
    /// [`answer`](Self::answer) has it. What waits is large, and this spares most requests from
    /// carrying it around.
    fn answer_at_once(
        &self,
        _request: &Request<Incoming>,
        _visit: Visit<'_, Self::Memory>,
    ) -> Option<Response<Self::Body>> {
        None
    }

    /// Answers a request; a door always has an answer. Runs in the connection's own task, and is
    /// dropped when the client goes.
    fn answer(
        &self,
        request: Request<Incoming>,
        visit: Visit<'_, Self::Memory>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// An answer that the server itself gives at this door.
    fn whole(answer: Answer) -> Response<Self::Body>;

    /// Whether a request needs no token, even where the door asks for one.
    fn is_public(&self, request: &Request<Incoming>) -> bool;

    /// Whether an answer says that something was wrong with the request, which is then counted.
    fn is_problem(answer: &Response<Self::Body>) -> bool {
        answer.status().is_client_error() && !respond::is_decision(answer)
    }
}

/// What is spoken on the connections of a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// HTTP/1, between a few programs that know each other.
    Http1,
    /// HTTP/1, read strictly, and HTTP/2: whatever strangers bring.
    Http1AndHttp2,
}
