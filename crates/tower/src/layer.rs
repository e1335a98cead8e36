//! The layer: a limiter, and how requests are understood.

use crate::decide::LayerInner;
use crate::service::RateLimit;
use crate::{Observation, RequestHead};
use http::Uri;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{CheckError, Limiter, MemoryStore, Request, Store};
use tower_layer::Layer;

/// Puts limits before a service.
///
/// Clones share everything, and so do all services that it is put before: a limit holds for all of
/// them together. A [reload](Limiter::reload) of the limiter is seen by all of them at once.
///
/// Who asks is found out as the section `client` of the configuration says; what the application
/// knows better, it tells by functions. Each is given the [head](RequestHead) of the request; where
/// it returns `None`, what `client` found stands.
///
/// ```
/// use tidegate::{KeyPart, LimitSpec, Limiter};
/// use tidegate_tower::RateLimitLayer;
///
/// /// Whom an earlier layer has authenticated.
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

impl<S: Store> RateLimitLayer<S> {
    /// Asks the first policy of `limiter` about every request.
    pub fn new(limiter: Limiter<S>) -> Self {
        Self {
            shared: Arc::new(LayerInner::new(limiter)),
        }
    }

    /// Asks this policy instead of the first.
    ///
    /// Fails if there is none of this name. If a reload takes it away later, nothing can be decided
    /// any more, and that is what callers are told.
    pub fn policy(self, name: impl Into<String>) -> Result<Self, CheckError> {
        let name = name.into();
        let asked = Request::new().policy(&name);
        self.shared.limiter.accepts(&asked)?;
        Ok(self.with(|shared| shared.policy = Some(name)))
    }

    /// Who is asking, once authenticated.
    pub fn user<F>(self, user: F) -> Self
    where
        F: for<'r> Fn(RequestHead<'r>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.user = Some(Arc::new(user)))
    }

    /// The API key: a secret, of which nothing but a hash is ever kept.
    pub fn api_key<F>(self, key: F) -> Self
    where
        F: for<'r> Fn(RequestHead<'r>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.api_key = Some(Arc::new(key)))
    }

    /// The route that the request takes. With the feature `axum`, it is axum's matched path unless
    /// told here.
    pub fn route<F>(self, route: F) -> Self
    where
        F: for<'r> Fn(RequestHead<'r>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.route = Some(Arc::new(route)))
    }

    /// An attribute, for limits by `attr:NAME`. Of two functions for one name, the later counts.
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

    /// How much the request takes; 0 only looks.
    pub fn cost<F>(self, cost: F) -> Self
    where
        F: Fn(RequestHead<'_>) -> u64 + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.cost = Some(Arc::new(cost)))
    }

    /// Who is at the other end of the connection, for servers that note it in a way of their own.
    /// The function alone tells then: where it returns `None`, the peer is not known.
    ///
    /// This is the peer and not yet the client: if the peer is a trusted proxy, what it says of the
    /// client is looked at afterwards. A server behind a proxy on a Unix socket, where peers have
    /// no address, says here whom to take the proxy for: `|_| Some(Ipv4Addr::LOCALHOST.into())`.
    pub fn peer<F>(self, peer: F) -> Self
    where
        F: Fn(RequestHead<'_>) -> Option<IpAddr> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.peer = Some(Arc::new(peer)))
    }

    /// The target that the client asked for, for servers behind layers that cut a prefix off and
    /// note the whole of it in a way of their own. Conditions on paths, keys by `path`, and what
    /// `client` finds in paths and queries go by it. Where the function returns `None`, it is
    /// [`RequestHead::target`], which with the feature `axum` knows the way of axum's.
    ///
    /// ```
    /// use http::Uri;
    /// use tidegate::{LimitSpec, Limiter};
    /// use tidegate_tower::RateLimitLayer;
    ///
    /// /// What a layer outside of the limits notes before it cuts a prefix off.
    /// #[derive(Clone)]
    /// struct Whole(Uri);
    ///
    /// # let limiter = Limiter::builder().limit(LimitSpec::new("all").band("1/s")).build()?;
    /// let layer = RateLimitLayer::new(limiter)
    ///     .target(|head| Some(&head.extension::<Whole>()?.0));
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn target<F>(self, target: F) -> Self
    where
        F: for<'r> Fn(RequestHead<'r>) -> Option<&'r Uri> + Send + Sync + 'static,
    {
        self.with(|shared| shared.extractors.target = Some(Arc::new(target)))
    }

    /// Sees every decision before it takes effect: to count them, or to watch shadow limits, of
    /// which nobody else is told. It must be quick.
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
