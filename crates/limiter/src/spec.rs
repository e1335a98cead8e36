//! A limit written in code.

use crate::error::BuildError;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Algorithm, LimitMode, OnChange};
use tidegate_policy::respond::RefusalStyle;
use tidegate_policy::{Band, ChargeTime, Condition, KeyPart, Limit, Missing, OnFailure, WaitRules};

/// A limit written in code, with the terms of the configuration language.
///
/// Mistakes are reported when the limiter is built.
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
    missing: Missing,
    bands: Vec<String>,
    algorithm: Algorithm,
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
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            paths: Vec::new(),
            methods: Vec::new(),
            hosts: Vec::new(),
            headers: Vec::new(),
            key: Vec::new(),
            missing: Missing::default(),
            bands: Vec::new(),
            algorithm: Algorithm::default(),
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

    /// Applies to paths that match `pattern`, such as `/api/*/items` or `/login$`. Several calls: any of them
    /// may match.
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.paths.push(pattern.into());
        self
    }

    /// Applies to this method. Several calls: any of them may match.
    ///
    /// Of paths, methods, hosts and headers, all kinds that are set must match.
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.methods.push(method.into());
        self
    }

    /// Applies to hosts that match `pattern`, such as `api.example.com` or `*.example.com`. Several calls:
    /// any of them may match.
    pub fn host(mut self, pattern: impl Into<String>) -> Self {
        self.hosts.push(pattern.into());
        self
    }

    /// Applies if the header `name` has this value. Several calls: all of them must match. Names and values
    /// ignore case.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Uses a separate bucket for each value of `part`. Several calls combine the parts.
    pub fn key(mut self, part: KeyPart) -> Self {
        self.key.push(part);
        self
    }

    /// Sets the behavior if the identity is absent.
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// Adds a band, such as `100/min` or `10/s burst 50`.
    pub fn band(mut self, band: impl Into<String>) -> Self {
        self.bands.push(band.into());
        self
    }

    /// Counts by `algorithm`.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Puts the limit in shadow mode: it is decided and counted, but does not refuse.
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

    /// Sets the number of requests that may [wait](Self::wait) at once, from 1 to 1,000,000. Default: 1,000.
    pub fn max_waiting(mut self, max_waiting: u32) -> Self {
        self.max_waiting = Some(max_waiting);
        self
    }

    /// Blocks a client for `length` after a refusal: the limit refuses it until then, regardless of the
    /// bucket, and further requests do not prolong the block. From a millisecond to 365 days; zero means no
    /// block. See [`Decision::blocked_for`](crate::Decision::blocked_for).
    pub fn block(mut self, length: Duration) -> Self {
        self.block = length;
        self
    }

    /// Makes charges [refundable](crate::Limiter::give_back).
    pub fn refundable(mut self) -> Self {
        self.refundable = true;
        self
    }

    /// Sets the behavior of this limit if the store does not answer. Default: that of the limiter.
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
    /// // Whoever had used half of an earlier amount has half of this one left.
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
    /// use tidegate::{LimitSpec, Limiter, Request, Respond};
    ///
    /// let paid = Respond::from_yaml("{ status: 402 }")?;
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

    /// Returns one condition per path, each with all other conditions; none if nothing is set.
    fn conditions(&self) -> Result<Vec<Condition>, String> {
        if !self.paths.is_empty() {
            let paths = self.paths.iter();
            return paths.map(|path| self.rest()?.with_path(path)).collect();
        }
        if self.methods.is_empty() && self.hosts.is_empty() && self.headers.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![self.rest()?])
    }

    /// Returns all conditions except the path.
    fn rest(&self) -> Result<Condition, String> {
        let mut condition = Condition::default();
        for method in &self.methods {
            condition = condition.with_method(method)?;
        }
        for host in &self.hosts {
            condition = condition.with_host(host)?;
        }
        for (name, value) in &self.headers {
            condition = condition.with_header(name, value)?;
        }
        Ok(condition)
    }

    /// Returns the rules for waiting, if requests wait.
    fn waiting(&self) -> Result<Option<WaitRules>, String> {
        let Some(max_wait) = self.waiting else {
            return match self.max_waiting {
                None => Ok(None),
                Some(_) => {
                    Err("nobody waits; add `.wait(..)`, or remove `.max_waiting(..)`".into())
                }
            };
        };
        let max_waiting = self.max_waiting.unwrap_or(WaitRules::MAX_WAITING);
        if !(WaitRules::SHORTEST..=WaitRules::LONGEST).contains(&max_wait) {
            return Err(format!("{max_wait:?} to wait is not from 1ms to 1h"));
        }
        if !(1..=WaitRules::MAX_WAITING_MAX).contains(&max_waiting) {
            return Err(format!("{max_waiting} who wait is not from 1 to 1000000"));
        }
        if self.mode == LimitMode::Shadow {
            return Err(
                "it only watches, so nobody can wait; remove `.wait(..)` or `.shadow()`".into(),
            );
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
            return Err(
                "a request that waits cannot be blocked; remove `.wait(..)` or `.block(..)`".into(),
            );
        }
        Band::blocking(self.block).map(Some)
    }

    pub(crate) fn compile(self) -> Result<Limit, BuildError> {
        let refuse = |reason: String| BuildError::Limit {
            name: self.name.clone(),
            reason,
        };
        if self.bands.is_empty() {
            return Err(refuse(
                "it has no band; add one, for example `100/min`".into(),
            ));
        }
        let conditions = self.conditions().map_err(refuse)?;
        let waiting = self.waiting().map_err(refuse)?;
        let block = self.blocking().map_err(refuse)?;
        let mut bands: Vec<Band> = Vec::new();
        for text in &self.bands {
            let max_wait = waiting.map(|it| it.max_wait);
            let band = Band::parse_changing(text, self.algorithm, max_wait, self.on_change);
            let mut band = band.map_err(refuse)?;
            if self.refundable {
                band.quota = band.quota.with_refundable(true);
            }
            if bands
                .iter()
                .any(|other| other.quota.family() == band.quota.family())
            {
                return Err(refuse(format!("two bands have the period of `{text}`")));
            }
            bands.push(band);
        }
        Ok(Limit {
            name: self.name,
            enabled: true,
            conditions,
            key: if self.key.is_empty() {
                vec![KeyPart::Global]
            } else {
                self.key
            },
            missing: self.missing,
            bands,
            algorithm: self.algorithm,
            mode: self.mode,
            shadowed: false,
            quota_mode: false,
            replaces: Vec::new(),
            charge: ChargeTime::IfFits,
            waiting,
            block,
            refundable: self.refundable,
            on_failure: self.on_failure,
            refusal: self.refusal,
            template: None,
            plan: None,
            warn: None,
        })
    }
}
