//! The doors: from a protocol to a question, and from a decision back.
//!
//! | module | what it is |
//! |---|---|
//! | `http` | `POST /v1/check`, and the way to `auth` |
//! | `auth` | `/v1/auth`: forward-auth for proxies |
//! | `deny` | the query of `/v1/auth` |
//! | `admin` | `/livez`, `/readyz`, `/metrics` |
//! | `body` | a request's body, bounded in size and time |
//! | `promptly` | runs what nearly always ends at once |
//! | `respond` | every status and header that is ever answered |

pub(crate) mod admin;
mod auth;
mod body;
mod deny;
pub(crate) mod http;
mod promptly;
pub(crate) mod respond;

use self::respond::Answer;
use ::http::Request;
use hyper::body::Incoming;
use std::future::Future;
use std::net::IpAddr;

/// What a door does with a request. Accepting, TLS, tokens, bounds and draining are the server's.
pub(crate) trait Door: Send + Sync + 'static {
    /// The answer to a request that came from `peer`, if neither its body is needed nor anything has
    /// to be waited for; else [`answer`](Self::answer) has it. What waits is large, and this spares most
    /// requests from carrying it around.
    fn answer_at_once(&self, _request: &Request<Incoming>, _peer: IpAddr) -> Option<Answer> {
        None
    }

    /// Answers a request that came from `peer`; a door always has an answer.
    fn answer(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
    ) -> impl Future<Output = Answer> + Send;

    /// Whether a request needs no token, even where the door asks for one.
    fn is_public(&self, request: &Request<Incoming>) -> bool;
}
