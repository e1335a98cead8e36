//! A limit written in code.
//!
//! | module | settings |
//! |---|---|
//! | this one | all others |
//! | `conditions` | the requests that it applies to |
//! | `concurrent` | requests in flight |

mod concurrent;
mod conditions;

use crate::error::BuildError;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Algorithm, LimitMode, OnChange};
use tidegate_policy::respond::RefusalStyle;
use tidegate_policy::{Band, KeyPart, Limit, MissingIdentity, OnFailure, Unit, WaitRules};

/// A limit written in code, with the terms of the configuration language.
///
/// A limit has a name, conditions that a request must match, a key that selects the bucket, and one or more
/// bands that the bucket counts by:
///
/// | part | methods | default |
/// |---|---|---|
/// | conditions | [`path`](Self::path), [`method`](Self::method), [`host`](Self::host), [`header`](Self::header) | every request |
/// | key | [`key`](Self::key), [`missing`](Self::missing) | one bucket for all requests |
/// | bands | [`band`](Self::band), [`unit`](Self::unit), [`algorithm`](Self::algorithm) | none: a limit needs at least one |
/// | in flight | [`concurrent`](Self::concurrent), in place of bands; [`hold`](Self::hold) | none |
/// | on refusal | [`wait`](Self::wait), [`block`](Self::block), [`shadow`](Self::shadow), [`refusal`](Self::refusal) | refuses with status 429 |
/// | store | [`on_failure`](Self::on_failure), [`on_change`](Self::on_change), [`refundable`](Self::refundable) | those of the limiter |
///
/// No method fails. Mistakes are reported when the limiter is built, as [`BuildError::Limit`] with the name
/// of the limit and the way to fix it.
///
/// ```
/// use tidegate::{Algorithm, KeyPart, LimitSpec, Limiter};
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("search").path("/search").key(KeyPart::User).band("10/s burst 50"))
///     .limit(LimitSpec::new("login").method("POST").path("/login$").key(KeyPart::Ip).band("5/min"))
///     .limit(LimitSpec::new("everyone").band("1000/h").algorithm(Algorithm::SlidingWindow))
///     .build()?;
/// # Ok::<(), tidegate::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LimitSpec {
    name: String,
    paths: Vec<String>,
    methods: Vec<String>,
    hosts: Vec<String>,
    headers: Vec<(String, String)>,
    key: Vec<KeyPart>,
    missing: MissingIdentity,
    bands: Vec<String>,
    unit: Option<String>,
    algorithm: Algorithm,
    concurrent: Option<u64>,
    hold: Option<Duration>,
    mode: LimitMode,
    waiting: Option<Duration>,
    max_waiting: Option<u32>,
    block: Duration,
    refundable: bool,
    on_failure: Option<OnFailure>,
    on_change: OnChange,
    refusal: Option<Arc<RefusalStyle>>,
}

impl LimitSpec {
    /// Creates a limit of this name, for every request, with one bucket for all. It still needs a
    /// [`band`](Self::band).
    ///
    /// The name appears in decisions, responses and metrics, and is part of the names of the buckets. A limit
    /// that keeps its name across a [reload](crate::Limiter::reload) keeps its buckets.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            paths: Vec::new(),
            methods: Vec::new(),
            hosts: Vec::new(),
            headers: Vec::new(),
            key: Vec::new(),
            missing: MissingIdentity::default(),
            bands: Vec::new(),
            unit: None,
            algorithm: Algorithm::default(),
            concurrent: None,
            hold: None,
            mode: LimitMode::default(),
            waiting: None,
            max_waiting: None,
            block: Duration::ZERO,
            refundable: false,
            on_failure: None,
            on_change: OnChange::Keep,
            refusal: None,
        }
    }

    /// Applies to paths that match `pattern`. Several calls: any of them may match.
    ///
    /// A pattern matches whole segments from the start of the path. `*` stands for one segment, and a final
    /// `$` ends the path.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("items").path("/api/*/items").band("1/h"))
    ///     .build()?;
    /// let is_limited = |path| limiter.check_now(&Request::new().path(path)).map(|it| !it.is_unlimited());
    /// assert!(is_limited("/api/v1/items")?);
    /// assert!(is_limited("/api/v2/items/7")?);
    /// assert!(!is_limited("/api/items")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.paths.push(pattern.into());
        self
    }

    /// Applies to this HTTP method, such as `POST`. Several calls: any of them may match.
    ///
    /// Of paths, methods, hosts and headers, all kinds that are set must match.
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.methods.push(method.into());
        self
    }

    /// Applies to hosts that match `pattern`, such as `api.example.com` or `*.example.com`. Several calls:
    /// any of them may match.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("tenants").host("*.example.com").band("1/h"))
    ///     .build()?;
    /// let is_limited = |host| limiter.check_now(&Request::new().host(host)).map(|it| !it.is_unlimited());
    /// assert!(is_limited("shop.example.com")?);
    /// assert!(!is_limited("example.org")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn host(mut self, pattern: impl Into<String>) -> Self {
        self.hosts.push(pattern.into());
        self
    }

    /// Applies if the header `name` has this value. Several calls: all of them must match. Names and values
    /// ignore case.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("beta").header("x-channel", "beta").band("1/h"))
    ///     .build()?;
    /// let beta = [("X-Channel", "Beta")];
    /// assert!(limiter.check_now(&Request::new())?.is_unlimited());
    /// assert!(!limiter.check_now(&Request::new().headers(&beta))?.is_unlimited());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Uses a separate bucket for each value of `part`. Several calls combine the parts: the limit below
    /// counts every user on every path separately. Without a key, all requests share one bucket.
    ///
    /// Keys with secrets, such as API keys, are hashed before they reach a store or a response.
    ///
    /// ```
    /// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("each").key(KeyPart::User).key(KeyPart::Path).band("1/h"))
    ///     .build()?;
    /// let decision = limiter.check_now(&Request::new().user("ann").path("/a"))?;
    /// assert_eq!(decision.binding().map(|band| band.key()), Some("user:ann,path:%2Fa"));
    /// assert!(limiter.check_now(&Request::new().user("ann").path("/b"))?.is_allowed());
    /// assert!(!limiter.check_now(&Request::new().user("ann").path("/a"))?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key(mut self, part: KeyPart) -> Self {
        self.key.push(part);
        self
    }

    /// Sets the behavior for requests that lack the identity of the [`key`](Self::key), such as anonymous
    /// requests at a limit by user. Default: [`MissingIdentity::default`].
    ///
    /// ```
    /// use tidegate::{KeyPart, LimitSpec, Limiter, MissingIdentity, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("users").key(KeyPart::User).missing(MissingIdentity::Refuse).band("10/s"))
    ///     .build()?;
    /// assert!(limiter.check_now(&Request::new().user("ann"))?.is_allowed());
    /// assert!(!limiter.check_now(&Request::new())?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn missing(mut self, missing: MissingIdentity) -> Self {
        self.missing = missing;
        self
    }

    /// Adds a band: an amount per period, and the number of units that may be used at once. It is a
    /// [`Rate`](crate::Rate), or its text, with the periods `s`, `min`, `h`, `d`, or a multiple such as `10s`.
    /// Several calls: the request must fit all bands, and their periods must differ.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Rate, Request};
    ///
    /// // Ten per second on average, fifty at once; and never more than a thousand in an hour.
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("api").band("10/s burst 50").band(Rate::per_hour(1_000)))
    ///     .build()?;
    /// assert!(limiter.check_now(&Request::new().cost(50))?.is_allowed());
    /// assert!(!limiter.check_now(&Request::new())?.is_allowed());
    ///
    /// let error = Limiter::builder().limit(LimitSpec::new("api").band("fast")).build().unwrap_err();
    /// assert!(error.to_string().starts_with("limit `api`:"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn band(mut self, band: impl Into<String>) -> Self {
        self.bands.push(band.into());
        self
    }

    /// Counts all bands of this limit by `algorithm`. Default: [`Algorithm::TokenBucket`].
    ///
    /// | algorithm | of 10 per minute, at most |
    /// |---|---|
    /// | [`Algorithm::TokenBucket`] | `burst` at once, then one every six seconds |
    /// | [`Algorithm::FixedWindow`] | 10 per window; up to 20 around its edge |
    /// | [`Algorithm::SlidingWindow`] | about 10 in any minute, estimated from two windows |
    /// | [`Algorithm::SlidingLog`] | exactly 10 in any minute, at the cost of a log per bucket |
    /// | [`Algorithm::BucketedWindow`] | 10 in any minute, counted in parts of it |
    ///
    /// ```
    /// use tidegate::{Algorithm, Align, LimitSpec, Limiter, Request};
    ///
    /// let window = Algorithm::FixedWindow(Align::FirstRequest);
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("all").band("10/min").algorithm(window))
    ///     .build()?;
    /// let decision = limiter.check_now(&Request::new().cost(10))?;
    /// let band = decision.binding().expect("a limit applied");
    /// // Nothing is refilled before the window ends.
    /// assert_eq!((band.remaining(), band.reset_after().as_secs()), (0, 60));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Puts the limit in shadow mode: it is decided and counted, but does not refuse. Use it to watch a new
    /// limit before it takes effect. See [`Decision::shadow_refusals`](crate::Decision::shadow_refusals) for
    /// the requests that it would have refused.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("new").band("1/h").shadow()).build()?;
    /// limiter.check_now(&Request::new())?;
    /// let decision = limiter.check_now(&Request::new())?;
    /// assert!(decision.is_allowed());
    /// assert_eq!(decision.shadow_refusals().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shadow(mut self) -> Self {
        self.mode = LimitMode::Shadow;
        self
    }

    /// Makes requests that do not fit wait, in order of arrival and up to `max_wait`, instead of refusing
    /// them. `max_wait` ranges from a millisecond to an hour. See [`Limiter::check`](crate::Limiter::check).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("everyone").band("100/s burst 1").wait(Duration::from_secs(1)))
    ///     .build()?;
    /// assert!(limiter.check(&Request::new()).await?.waited().is_zero());
    /// assert!(!limiter.check(&Request::new()).await?.waited().is_zero());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(mut self, max_wait: Duration) -> Self {
        self.waiting = Some(max_wait);
        self
    }

    /// Sets the number of requests that may [wait](Self::wait) at once, from 1 to 1,000,000. Further requests
    /// are refused at once. Default: 1,000.
    ///
    /// # Errors
    ///
    /// The limiter cannot be built if the limit does not let requests wait.
    ///
    /// # Example
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{BuildError, LimitSpec, Limiter};
    ///
    /// let jobs = LimitSpec::new("jobs").band("1/s").max_waiting(20);
    /// let error = Limiter::builder().limit(jobs.clone()).build().unwrap_err();
    /// assert!(matches!(error, BuildError::Limit { .. }), "no request may wait");
    /// let limiter = Limiter::builder().limit(jobs.wait(Duration::from_secs(5))).build()?;
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn max_waiting(mut self, max_waiting: u32) -> Self {
        self.max_waiting = Some(max_waiting);
        self
    }

    /// Blocks a client for `length` after a refusal: the limit refuses it until then, regardless of the
    /// bucket, and further requests do not prolong the block. From a millisecond to 365 days; zero means no
    /// block. See [`Decision::blocked_for`](crate::Decision::blocked_for).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("login").band("1/s").block(Duration::from_secs(600)))
    ///     .build()?;
    /// assert!(limiter.check_now(&Request::new())?.is_allowed());
    /// let refused = limiter.check_now(&Request::new())?;
    /// assert!(refused.blocked_for().is_some_and(|left| left.as_secs() >= 599));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn block(mut self, length: Duration) -> Self {
        self.block = length;
        self
    }

    /// Makes charges [refundable](crate::Limiter::refund_decision). A store keeps a little more state for such a
    /// bucket.
    pub fn refundable(mut self) -> Self {
        self.refundable = true;
        self
    }

    /// Sets the behavior of this limit if the store does not answer. Default: that of the limiter.
    ///
    /// A login limit may refuse while Redis is down, and the limits next to it continue with local buckets:
    ///
    /// ```
    /// use tidegate::{KeyPart, LimitSpec, Limiter, OnFailure};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("login").path("/login").key(KeyPart::Ip).band("5/min").on_failure(OnFailure::Deny))
    ///     .limit(LimitSpec::new("api").key(KeyPart::Ip).band("100/s"))
    ///     .on_failure(OnFailure::Local)
    ///     .build()?;
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = Some(on_failure);
        self
    }

    /// Sets how buckets change when the bands change, in a store that outlives this limiter or is shared with
    /// others. Default: [`OnChange::Keep`], used units stay used.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, OnChange};
    ///
    /// // A client that had used half of the earlier amount has half of this one left.
    /// let limit = LimitSpec::new("everyone").band("200/h").on_change(OnChange::Scale);
    /// let limiter = Limiter::builder().limit(limit).build()?;
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn on_change(mut self, on_change: OnChange) -> Self {
        self.on_change = on_change;
        self
    }

    /// Sets the style of refusals by this limit. Default: that of [`LimiterBuilder::respond`].
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let paid = tidegate::respond_from_yaml("{ status: 402 }")?;
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("trial").band("1/d").refusal(paid.refusal))
    ///     .build()?;
    /// assert_eq!(limiter.check_now(&Request::new())?.refusal().status, 402);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`LimiterBuilder::respond`]: crate::LimiterBuilder::respond
    pub fn refusal(mut self, refusal: impl Into<Arc<RefusalStyle>>) -> Self {
        self.refusal = Some(refusal.into());
        self
    }

    /// Sets the unit that the limit counts, such as `tokens`: it is charged that amount of a request's
    /// [cost](tidegate_policy::Request::cost). Default: `requests`.
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    /// Returns the rules for waiting, if requests wait.
    fn waiting(&self) -> Result<Option<WaitRules>, String> {
        let Some(max_wait) = self.waiting else {
            return match self.max_waiting {
                None => Ok(None),
                Some(_) => Err(
                    "`.max_waiting(..)` has no effect without `.wait(..)`; remove it, or add \
                        `.wait(..)`"
                        .into(),
                ),
            };
        };
        let max_waiting = self.max_waiting.unwrap_or(WaitRules::MAX_WAITING);
        if !(WaitRules::SHORTEST..=WaitRules::LONGEST).contains(&max_wait) {
            return Err(format!("a wait of {max_wait:?} is not from 1ms to 1h"));
        }
        if !(1..=WaitRules::MAX_WAITING_MAX).contains(&max_waiting) {
            return Err(format!(
                "{max_waiting} queued requests is not from 1 to 1000000"
            ));
        }
        if self.mode == LimitMode::Shadow {
            return Err("`.wait(..)` conflicts with `.shadow()`; remove one of them".into());
        }
        Ok(Some(WaitRules {
            max_wait,
            max_waiting,
        }))
    }

    /// Returns the band of the block, if there is one.
    fn blocking(&self) -> Result<Option<Band>, String> {
        if self.block.is_zero() {
            return Ok(None);
        }
        if self.waiting.is_some() {
            return Err("`.wait(..)` conflicts with `.block(..)`; remove one of them".into());
        }
        Band::blocking(self.block).map(Some)
    }

    /// Returns the bands of a limit that is not of requests in flight.
    fn compile_bands(&self, waiting: Option<WaitRules>) -> Result<Vec<Band>, String> {
        let mut bands: Vec<Band> = Vec::new();
        for text in &self.bands {
            let max_wait = waiting.map(|it| it.max_wait);
            let mut band = Band::parse_changing(text, self.algorithm, max_wait, self.on_change)?;
            if waiting.is_some() && band.quota.needs_starts() {
                return Err("requests cannot wait for a calendar window".into());
            }
            if self.refundable {
                band.quota = band.quota.with_refundable(true);
            }
            if bands
                .iter()
                .any(|other| other.quota.family() == band.quota.family())
            {
                return Err(format!("two bands have the period of `{text}`"));
            }
            bands.push(band);
        }
        Ok(bands)
    }

    pub(crate) fn compile(self) -> Result<Limit, BuildError> {
        let refuse = |reason: String| BuildError::Limit {
            name: self.name.clone(),
            reason,
        };
        if let Some(permits) = self.concurrent {
            return self.compile_concurrent(permits);
        }
        if self.algorithm.is_concurrent() {
            return Err(refuse(
                "use `.concurrent(20)` in place of this algorithm".into(),
            ));
        }
        if self.hold.is_some() {
            let why = "`.hold(..)` has no effect without `.concurrent(..)`; remove it";
            return Err(refuse(why.into()));
        }
        if self.bands.is_empty() {
            return Err(refuse(
                "it has no band; add one, for example `100/min`".into(),
            ));
        }
        let conditions = self.conditions().map_err(refuse)?;
        let waiting = self.waiting().map_err(refuse)?;
        let block = self.blocking().map_err(refuse)?;
        let unit = self
            .unit
            .as_deref()
            .map_or(Ok(Unit::default()), Unit::parse);
        let unit = unit.map_err(|fault| refuse(fault.into_sentence()))?;
        let bands = self.compile_bands(waiting).map_err(refuse)?;
        Ok(Limit {
            conditions,
            key: self.key_or_global(),
            missing: self.missing,
            bands,
            unit,
            algorithm: self.algorithm,
            mode: self.mode,
            waiting,
            block,
            refundable: self.refundable,
            on_failure: self.on_failure,
            refusal: self.refusal,
            ..Limit::new(self.name)
        })
    }
}
