//! HTTP requests as limits see them, and decisions as HTTP responses: the same for every frontend.
//!
//! | module | content |
//! |---|---|
//! | [`question`] | from request headers to the attributes that limits use |
//! | [`answer`] | from a decision to headers, status and body |
//! | [`grpc`] | the same for callers over gRPC |
//! | [`text`] | encoding of values in JSON, markup and dates |
//!
//! The crate does no I/O and knows no server: it works on the types of the `http` crate. The
//! gateway, the check API for proxies and the tower layer all use it, so that a client gets the
//! same response from each.
//!
//! # Example
//!
//! A request of an untrusted client, checked and refused:
//!
//! ```
//! use http::{HeaderMap, Method, Uri};
//! use tidegate::Limiter;
//! use tidegate_http::answer::{self, Correlation};
//! use tidegate_http::question::{HttpQuestion, RequestHeadRef};
//!
//! let limiter = Limiter::from_yaml("
//! policies: [{ name: api, limits: [{ name: per-client, key: ip, rate: 1/min }] }]
//! ")?;
//! let rules = limiter.rules()?;
//! let (uri, headers) = (Uri::from_static("/"), HeaderMap::new());
//! let head = RequestHeadRef {
//!     method: &Method::GET,
//!     uri: &uri,
//!     headers: &headers,
//!     peer: "192.0.2.1".parse().ok(),
//! };
//! let question = HttpQuestion::direct(&rules, None, head);
//! let pairs = question.pairs();
//! assert!(limiter.check_now(&question.request(&pairs))?.is_allowed());
//!
//! let refused = limiter.check_now(&question.request(&pairs))?;
//! let response = answer::refuse(&refused, &Correlation::of(&headers, refused.respond()));
//! assert_eq!(response.status(), 429);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod answer;
mod clock;
pub mod grpc;
pub mod question;
pub mod text;

pub use clock::unix_seconds;
