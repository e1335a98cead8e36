//! The layer: a limiter, and the functions that read requests.

use crate::decide::LayerInner;
use crate::service::RateLimit;
use crate::{Observation, RequestHead};
use bytes::Bytes;
use http::{Response, Uri};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{
    BuildError, CheckError, CostMap, Decision, KeyPart, LimitSpec, Limiter, MemoryStore, Request,
    Store,
};
use tower_layer::Layer;

/// Puts limits before a service.
///
/// Clones share everything, and so do all services that the layer wraps: a limit applies to all of them
/// together. A reload of the limiter takes effect in all of them at once.
///
/// The section `client` of the configuration identifies clients. Functions of the application override it:
/// each gets the [head](RequestHead) of the request. If it returns `None`, the value from `client` applies.
///
/// ```
/// use tidegate::{KeyPart, LimitSpec, Limiter};
/// use tidegate_tower::RateLimitLayer;
///
/// /// Noted on the request by the authentication layer.
/// #[derive(Clone)]
/// struct Session { user: String, tenant: u32 }
///
/// let per_user = LimitSpec::new("per-user").key(KeyPart::User).band("10/s burst 50");
/// let per_tenant = LimitSpec::new("per-tenant").key(KeyPart::Attr("tenant".into())).band("1000/h");
/// let limiter = Limiter::builder().limit(per_user).limit(per_tenant).build()?;
///
/// let layer = RateLimitLayer::new(limiter)
///     .user(|head| Some(head.extension::<Session>()?.user.as_str().into()))
///     .attribute("tenant", |head| Some(head.extension::<Session>()?.tenant.to_string().into()))
///     .cost(|head| if head.target().path() == "/export" { 10 } else { 1 });
/// # Ok::<(), tidegate::BuildError>(())
/// ```
#[must_use]
pub struct RateLimitLayer<S = MemoryStore> {
    shared: Arc<LayerInner<S>>,
}

impl RateLimitLayer {
    /// Creates a layer with one limit, `per-ip`, that counts every client address in a separate bucket in
    /// memory. IPv6 addresses are counted by their /64 network.
    ///
    /// `rate` is a [`Rate`](tidegate::Rate), or its text. The server has to provide the
    /// [peer address](crate#client-identity): without it, all clients share one bucket, and a warning is
    /// logged.
    ///
    /// # Errors
    ///
    /// [`BuildError::Limit`] if the rate is invalid.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::Rate;
    /// use tidegate_tower::RateLimitLayer;
    ///
    /// let layer = RateLimitLayer::per_ip("10/s burst 50")?;
    /// let same = RateLimitLayer::per_ip(Rate::per_second(10).burst(50))?;
    /// assert!(RateLimitLayer::per_ip("fast").is_err());
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn per_ip(rate: impl Into<String>) -> Result<Self, BuildError> {
        let limit = LimitSpec::new("per-ip").key(KeyPart::Ip).band(rate);
        Ok(Self::new(Limiter::builder().limit(limit).build()?))
    }
}

impl<S: Store> RateLimitLayer<S> {
    /// Creates a layer that decides every request by the first policy of `limiter`.
    pub fn new(limiter: Limiter<S>) -> Self {
        Self {
            shared: Arc::new(LayerInner::new(limiter)),
        }
    }

    /// Decides requests by the policy `name` instead of the first.
    ///
    /// If a reload removes the policy later, requests cannot be decided, and callers get 503.
    ///
    /// # Errors
    ///
    /// [`CheckError::UnknownPolicy`] if there is no policy of this name, [`CheckError::Closed`] if the
    /// limiter is closed.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter};
    /// use tidegate_tower::RateLimitLayer;
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("1/s")).build()?;
    /// assert!(RateLimitLayer::new(limiter.clone()).policy("default").is_ok());
    /// assert!(RateLimitLayer::new(limiter).policy("shop").is_err());
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn policy(self, name: impl Into<String>) -> Result<Self, CheckError> {
        let name = name.into();
        let asked = Request::new().policy(&name);
        self.shared.limiter.rules()?.accepts(&asked)?;
        Ok(self.with(|shared| shared.policy = Some(name)))
    }

    /// Sets the function that returns the authenticated user, for limits by `user`.
    pub fn user<F>(self, user: F) -> Self
    where
        F: for<'r> Fn(RequestHead<'r>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.user = Some(Arc::new(user)))
    }

    /// Sets the function that returns the API key: a secret, of which only a hash is kept.
    pub fn api_key<F>(self, key: F) -> Self
    where
        F: for<'r> Fn(RequestHead<'r>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.api_key = Some(Arc::new(key)))
    }

    /// Sets the function that returns the route of a request. Default: axum's matched path, with the feature
    /// `axum`.
    pub fn route<F>(self, route: F) -> Self
    where
        F: for<'r> Fn(RequestHead<'r>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.route = Some(Arc::new(route)))
    }

    /// Sets the function that returns an attribute, for limits by `attr:NAME`. A later function for the same
    /// name replaces an earlier one.
    pub fn attribute<F>(self, name: impl Into<Arc<str>>, value: F) -> Self
    where
        F: for<'r> Fn(RequestHead<'r>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    {
        let name = name.into();
        self.with(|shared| {
            let attributes = &mut shared.extractors.attributes;
            attributes.retain(|(other, _)| *other != name);
            attributes.push((name, Arc::new(value)));
        })
    }

    /// Sets the function that returns the units that a request consumes: a number, or a
    /// [`CostMap`](tidegate::CostMap) with an amount of each unit that limits count. 0 reads only. Default:
    /// one request.
    pub fn cost<F, C>(self, cost: F) -> Self
    where
        F: Fn(RequestHead<'_>) -> C + Send + Sync + 'static,
        C: Into<CostMap<'static>>,
    {
        let cost = move |head: RequestHead<'_>| cost(head).into();
        self.with(|shared| shared.extractors.cost = Some(Arc::new(cost)))
    }

    /// Sets the function that returns the address at the other end of the connection, for servers that note
    /// it in another way. It replaces all other sources: if it returns `None`, the peer is unknown.
    ///
    /// The peer is not yet the client: if it is a trusted proxy, its headers are read afterwards. A server
    /// behind a proxy on a Unix socket, where peers have no address, returns the address of the proxy here:
    /// `|_| Some(Ipv4Addr::LOCALHOST.into())`.
    pub fn peer<F>(self, peer: F) -> Self
    where
        F: Fn(RequestHead<'_>) -> Option<IpAddr> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.peer = Some(Arc::new(peer)))
    }

    /// Sets the function that returns the target that the client sent, for servers behind layers that remove
    /// a prefix and note the whole target in another way. Conditions on paths, keys by `path`, and identities
    /// in paths and queries use it. If the function returns `None`, [`RequestHead::target`] applies, which
    /// supports axum with the feature `axum`.
    ///
    /// ```
    /// use http::Uri;
    /// use tidegate::{LimitSpec, Limiter};
    /// use tidegate_tower::RateLimitLayer;
    ///
    /// /// Noted by an outer layer before it removes a prefix.
    /// #[derive(Clone)]
    /// struct OriginalTarget(Uri);
    ///
    /// # let limiter = Limiter::builder().limit(LimitSpec::new("all").band("1/s")).build()?;
    /// let layer = RateLimitLayer::new(limiter)
    ///     .target(|head| Some(&head.extension::<OriginalTarget>()?.0));
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn target<F>(self, target: F) -> Self
    where
        F: for<'r> Fn(RequestHead<'r>) -> Option<&'r Uri> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.target = Some(Arc::new(target)))
    }

    /// Sets the function that writes the response to a refused request, instead of the format of `respond` in
    /// the configuration.
    ///
    /// The headers of the default response, such as `Retry-After` and the rate limit headers, are added unless
    /// the function sets them. gRPC requests keep their default response, because its body is not free.
    /// Responses to `HEAD` lose their body.
    ///
    /// ```
    /// use http::{Response, StatusCode};
    /// use tidegate_tower::RateLimitLayer;
    ///
    /// let layer = RateLimitLayer::per_ip("10/s burst 50")?.on_refusal(|head, decision| {
    ///     let limit = decision.limit().unwrap_or("a guard");
    ///     let text = format!("{limit} refuses {}, try again later\n", head.target().path());
    ///     let mut response = Response::new(text);
    ///     *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    ///     response
    /// });
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn on_refusal<F, B>(self, handler: F) -> Self
    where
        F: Fn(RequestHead<'_>, &Decision) -> Response<B> + Send + Sync + 'static,
        B: Into<Bytes>,
    {
        self.with(|shared| shared.handlers.set_refusal(handler))
    }

    /// Sets the function that writes the response if a request cannot be decided: the store did not answer and
    /// the limit has `on_failure: error`, or the policy does not exist. The same rules apply as to
    /// [`on_refusal`](Self::on_refusal). Default: 503, `Retry-After: 1`.
    ///
    /// A limit with `on_failure: deny` refuses instead: see
    /// [`Decision::decided_by`](tidegate::Decision::decided_by).
    ///
    /// ```
    /// use http::{Response, StatusCode};
    /// use tidegate_tower::RateLimitLayer;
    ///
    /// let layer = RateLimitLayer::per_ip("10/s")?.on_error(|head, error| {
    ///     eprintln!("{}: {error}", head.target().path());
    ///     let mut response = Response::new("try again later");
    ///     *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    ///     response
    /// });
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn on_error<F, B>(self, handler: F) -> Self
    where
        F: Fn(RequestHead<'_>, &CheckError) -> Response<B> + Send + Sync + 'static,
        B: Into<Bytes>,
    {
        self.with(|shared| shared.handlers.set_error(handler))
    }

    /// Calls `observer` with every decision before it takes effect: to count decisions, or to watch limits in
    /// shadow mode, which no response shows. It runs on the path of the request, so it must be quick.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter};
    /// use tidegate_tower::RateLimitLayer;
    ///
    /// # let limiter = Limiter::builder().limit(LimitSpec::new("all").band("1/s")).build()?;
    /// let layer = RateLimitLayer::new(limiter).observe(|seen| match seen.decided() {
    ///     Ok(decision) if decision.is_allowed() => {}
    ///     Ok(_) => eprintln!("refused: {}", seen.head().target().path()),
    ///     Err(error) => eprintln!("not decided: {error}"),
    /// });
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn observe<F>(self, observer: F) -> Self
    where
        F: Fn(Observation<'_>) + Send + Sync + 'static,
    {
        self.with(|shared| shared.observer = Some(Arc::new(observer)))
    }

    fn with(mut self, change: impl FnOnce(&mut LayerInner<S>)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }
}

impl<S> Clone for RateLimitLayer<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S> fmt::Debug for RateLimitLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("policy", &self.shared.policy)
            .finish_non_exhaustive()
    }
}

impl<Svc, S> Layer<Svc> for RateLimitLayer<S> {
    type Service = RateLimit<Svc, S>;

    fn layer(&self, inner: Svc) -> Self::Service {
        RateLimit::new(inner, Arc::clone(&self.shared))
    }
}
