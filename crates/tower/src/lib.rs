//! Rate limits as a tower layer: for axum, hyper and tonic, and whatever else is a
//! [`Service`](tower_service::Service) of HTTP requests.
//!
//! A [`RateLimitLayer`] is a [`Limiter`](tidegate::Limiter) and a way to understand requests. What a
//! limit allows reaches the application, once; what it refuses is answered here, and never is an
//! error of the service. The decision and the answer are those of every other door of Tidegate.
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
//! // Servers note who is at the other end of the connection; see below.
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
//! # Who asks
//!
//! Limits by address need the peer: who is at the other end of the connection. It is the first of
//! these that is there:
//!
//! | told by | for |
//! |---|---|
//! | a function given to [`RateLimitLayer::peer`], which then tells alone | servers with ways of their own |
//! | [`RateLimit::peer`] | services made for one connection, as with hyper |
//! | the request extension [`PeerAddr`] | whoever accepts connections |
//! | axum's `ConnectInfo<SocketAddr>`, with the feature `axum` | `into_make_service_with_connect_info` |
//! | tonic's `TcpConnectInfo`, with the feature `tonic` | tonic's server, without TLS |
//!
//! **Without any of them, the peer is not known.** Then no proxy is believed, requests have no
//! address, and a limit by address does what it says of those who lack one (`missing`): unless told,
//! they all share one bucket. The first such request is warned of with `tracing`, if limits look at
//! addresses. No header ever takes the place of the peer.
//!
//! If the peer is a trusted proxy, the client is who the proxy says it is. That, users, API keys and
//! attributes are found out as the section `client` of the configuration says, or
//! [`LimiterBuilder::client`](tidegate::LimiterBuilder::client) in code. What the application knows better, it
//! tells by functions: [`RateLimitLayer`] has an example.
//!
//! Paths are those that clients ask for, also inside a nested router of axum's (with the feature
//! `axum`): see [`RequestHead::target`] and [`RateLimitLayer::target`].
//!
//! # Where to put it
//!
//! Limits by address outside of authentication; limits by what authentication notes inside of it;
//! both outside of whatever makes requests wait. The layer is ready when the service inside of it is:
//! under a full `ConcurrencyLimit`, a request that would be refused waits for room as well, unless a
//! `LoadShed` or a `Buffer` stands between them.
//!
//! # What callers are told
//!
//! | | over HTTP | over gRPC |
//! |---|---|---|
//! | allowed | the application's answer, with headers that tell of the limits | the same |
//! | refused | 429, or as `respond` in the configuration says | `RESOURCE_EXHAUSTED`, with `google.rpc.RetryInfo` |
//! | the store is away, and `on_failure` says `deny` or `error` | 503 | `UNAVAILABLE`, with `google.rpc.RetryInfo` |
//!
//! A caller speaks gRPC if the content type says so. What the application answers, or fails with, is
//! passed on as it is. An application that refuses by itself is not touched either.
//!
//! # What it costs
//!
//! With the buckets in this process a request is decided within `call`: nothing is boxed, and nothing
//! is allocated but for the headers that are added to the answer. With the buckets across a network
//! the futures that wait are allocated.

mod answer;
mod body;
mod decide;
mod extract;
mod future;
mod head;
mod layer;
mod observe;
mod peer;
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
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
