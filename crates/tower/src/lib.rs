//! Rate limits as a tower layer: for axum, hyper, tonic, and any other [`Service`](tower_service::Service) of
//! HTTP requests.
//!
//! A [`RateLimitLayer`] combines a [`Limiter`](tidegate::Limiter) with functions that read requests. An
//! allowed request reaches the application once. A refused request gets its response here, and is never an
//! error of the service. Decisions and responses are the same as those of the program `tidegate`.
//!
//! ```
//! use http::{Request, Response};
//! use std::convert::Infallible;
//! use tidegate::Limiter;
//! use tidegate_tower::{PeerAddr, RateLimitLayer};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::from_yaml("
//! policies:
//!   - name: api
//!     limits:
//!       - { name: per-client, key: ip, rate: 2/min }
//! ")?;
//! let service = ServiceBuilder::new()
//!     .layer(RateLimitLayer::new(limiter))
//!     .service(service_fn(async |_: Request<()>| {
//!         Ok::<_, Infallible>(Response::new(String::from("hello")))
//!     }));
//!
//! // The server notes the peer address on each request; see below.
//! let peer = PeerAddr("192.0.2.1:4711".parse()?);
//! let request = || Request::get("/").extension(peer).body(());
//!
//! let allowed = service.clone().oneshot(request()?).await?;
//! assert_eq!(allowed.status(), 200);
//! assert_eq!(allowed.headers()["x-ratelimit-remaining"], "1");
//!
//! service.clone().oneshot(request()?).await?;
//! let refused = service.clone().oneshot(request()?).await?;
//! assert_eq!(refused.status(), 429);
//! assert!(refused.headers().contains_key("retry-after"));
//! # Ok(())
//! # }
//! ```
//!
//! # Client identity
//!
//! Limits by address need the peer: the address at the other end of the connection. The first of these
//! sources that has one applies:
//!
//! | source | for |
//! |---|---|
//! | a function passed to [`RateLimitLayer::peer`], which replaces all others | servers that note it in another way |
//! | [`RateLimit::peer`] | services made for one connection, as with hyper |
//! | the request extension [`PeerAddr`] | servers that accept connections themselves |
//! | axum's `ConnectInfo<SocketAddr>`, with the feature `axum` | `into_make_service_with_connect_info` |
//! | tonic's `TcpConnectInfo`, with the feature `tonic` | tonic's server, without TLS |
//!
//! **Without any of them, requests have no peer address.** Then no proxy is trusted, requests have no client
//! address, and the `missing` setting of a limit by address applies. By default, all such requests share one
//! bucket. The limiter [counts](tidegate::Limiter::unknown_clients) these requests, and logs the first of them
//! with `tracing`, as the event `client_address_missing`. No header replaces the peer.
//!
//! If the peer is a trusted proxy, its headers name the client. The section `client` of the configuration, or
//! [`LimiterBuilder::client`](tidegate::LimiterBuilder::client) in code, defines how the client address,
//! users, API keys and attributes are read. Functions of the application override them: see
//! [`RateLimitLayer`].
//!
//! Paths are those that the client sent, also inside a nested axum router (with the feature `axum`): see
//! [`RequestHead::target`] and [`RateLimitLayer::target`].
//!
//! # Order of layers
//!
//! Put limits by address outside of authentication, and limits by user inside of it. Put both outside of
//! layers that queue requests. The layer is ready when the inner service is: under a full `ConcurrencyLimit`,
//! a request that would be refused waits as well, unless a `LoadShed` or a `Buffer` is between them. With
//! nested rate limit layers, the headers of the outermost one reach the client.
//!
//! # Responses
//!
//! | | over HTTP | over gRPC |
//! |---|---|---|
//! | allowed | the application's response, with rate limit headers | the same |
//! | refused | 429, or as `respond` in the configuration specifies | `RESOURCE_EXHAUSTED`, with `google.rpc.RetryInfo` |
//! | the store is unreachable, and `on_failure` is `deny` or `error` | 503 | `UNAVAILABLE`, with `google.rpc.RetryInfo` |
//!
//! The content type of the request selects gRPC. Responses and errors of the application are passed on
//! unchanged, apart from the rate limit headers.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `config` | yes | configurations in YAML or JSON |
//! | `redis` | yes | buckets in Redis or Valkey |
//! | `axum` | no | the peer, the route and the full target from axum's extensions |
//! | `tonic` | no | the peer from the extensions of tonic's server |
//!
//! `config` and `redis` are those of `tidegate`: turn its default features off as well.
//!
//! # Cost
//!
//! With buckets in memory, a request is decided within `call`: nothing is boxed, and only the headers added
//! to the response are allocated. With buckets across a network, the pending futures are allocated.

mod answer;
mod body;
mod custom;
mod decide;
mod extract;
mod future;
mod head;
mod layer;
mod observe;
mod peer;
mod permit;
mod service;

pub use body::ResponseBody;
pub use future::ResponseFuture;
pub use head::RequestHead;
pub use layer::RateLimitLayer;
pub use observe::Observation;
pub use peer::PeerAddr;
pub use service::RateLimit;

/// The page about the library: what it shows must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/rust.md")]
struct LibraryPage;
