//! Permits that end by themselves, and their ids: for callers that no guard can follow.
//!
//! Like that of a reservation, the id carries all that is needed: no process keeps anything. It is closed by
//! another seal, so that neither can be taken for the other.

use super::ReservationState;
use super::bytes::{PayloadReader, push_bytes, push_number};
use super::payload::{BUCKETS_MAX, push_quota, read_quota};
use super::seal::{PAYLOAD_BYTES_MAX, Seal, random};
use super::settled::SettleError;
use crate::backend::Backend;
use crate::decision::Decision;
use crate::error::CheckError;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::fmt;
use std::time::Duration;
use tidegate_core::ask::{PermitId, PermitTerms};
use tidegate_core::{Ask, LimitMode, Op, Quota, Store};
use tidegate_policy::Policy;

/// A decision and, if the request passes and is in flight, the id by which its permits are
/// [renewed](crate::Limiter::renew) and [released](crate::Limiter::release).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use std::time::Duration;
/// use tidegate::{LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder().limit(LimitSpec::new("jobs").concurrent(1)).build()?;
/// let acquired = limiter.acquire(&Request::new(), Duration::from_secs(10)).await?;
/// let id = acquired.id().expect("there is room");
/// assert_eq!(acquired.expires_after(), Some(Duration::from_secs(10)));
/// assert!(limiter.renew(id, Duration::from_secs(10)).await?);
/// assert!(limiter.release(id).await?);
/// assert!(!limiter.renew(id, None).await?, "it was released");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Acquisition {
    decision: Decision,
    held: Option<(String, Duration)>,
}

/// The permits of an id.
pub(crate) struct PermitPayload(Vec<SealedPermits>);

/// The permits of one bucket.
struct SealedPermits {
    id: PermitId,
    ttl_us: u64,
    mode: LimitMode,
    name: Box<[u8]>,
    scope: usize,
    quota: Quota,
}

impl Acquisition {
    /// Returns the result for a request that passes without an id, or is refused.
    pub(crate) fn without_id(decision: Decision) -> Self {
        Self {
            decision,
            held: None,
        }
    }

    /// Returns true if the request may pass.
    pub fn is_allowed(&self) -> bool {
        self.decision.is_allowed()
    }

    /// Returns the decision: the reported limit, the remaining units, when to retry.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Returns the id of the permits; `None` if the request holds none. Any holder of the id can release them.
    pub fn id(&self) -> Option<&str> {
        self.held.as_ref().map(|(id, _)| id.as_str())
    }

    /// Returns the time after which the first permits end, if the request holds any.
    pub fn expires_after(&self) -> Option<Duration> {
        self.held.as_ref().map(|(_, ttl)| *ttl)
    }
}

// Implemented by hand: any holder of the id can release the permits.
impl fmt::Debug for Acquisition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquisition")
            .field("decision", &self.decision)
            .field("expires_after", &self.expires_after())
            .finish_non_exhaustive()
    }
}

/// Returns a random name for new permits.
pub(crate) fn new_permit_id() -> PermitId {
    let bytes: [[u8; 8]; 2] = [random(), random()];
    PermitId(bytes.map(u64::from_le_bytes))
}

impl PermitPayload {
    /// Returns the permits that these asks acquire.
    ///
    /// # Errors
    ///
    /// There are more than an id can hold.
    pub(crate) fn of(asks: &[Ask<'_>], policy: &Policy) -> Result<Self, CheckError> {
        let acquired = asks.iter().filter_map(SealedPermits::of);
        let payload = Self(acquired.collect());
        let fits = payload.0.len() <= BUCKETS_MAX && payload.write().len() <= PAYLOAD_BYTES_MAX;
        if fits {
            return Ok(payload);
        }
        let why = "this request matches more limits than the id of its permits can hold";
        Err(CheckError::cannot_reserve(policy, why))
    }

    /// Returns the result for a request that passed.
    pub(crate) fn conclude(&self, decision: Decision, seal: Seal) -> Acquisition {
        let first = self.0.iter().map(|permits| permits.ttl_us).min();
        let held = first.and_then(|ttl_us| {
            let id = seal.close(&self.write())?;
            Some((id, Duration::from_micros(ttl_us)))
        });
        Acquisition { decision, held }
    }

    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        push_number(&mut out, self.0.len() as u64);
        for permits in &self.0 {
            let PermitId([high, low]) = permits.id;
            for number in [high, low, permits.ttl_us, permits.scope as u64] {
                push_number(&mut out, number);
            }
            out.push(u8::from(permits.mode == LimitMode::Shadow));
            push_bytes(&mut out, &permits.name);
            push_quota(&mut out, permits.quota);
        }
        out
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut bytes = PayloadReader(bytes);
        let count = bytes.count().filter(|count| *count <= BUCKETS_MAX)?;
        let permits = (0..count).map(|_| SealedPermits::read(&mut bytes));
        let permits = Self(permits.collect::<Option<_>>()?);
        bytes.is_at_end().then_some(permits)
    }

    /// Returns an ask for the permits of each bucket.
    fn asks(&self, op: impl Fn(&SealedPermits) -> Op) -> SmallVec<[Ask<'_>; 4]> {
        let permits = self.0.iter();
        permits.map(|permits| permits.ask(op(permits))).collect()
    }
}

impl SealedPermits {
    fn of(ask: &Ask<'_>) -> Option<Self> {
        let Op::Acquire(PermitTerms { id, ttl_us, .. }) = ask.op else {
            return None;
        };
        Some(Self {
            id,
            ttl_us,
            mode: ask.mode,
            name: ask.bucket.into(),
            scope: ask.scope,
            quota: *ask.quota,
        })
    }

    fn ask(&self, op: Op) -> Ask<'_> {
        Ask {
            bucket: &self.name,
            scope: self.scope,
            quota: &self.quota,
            op,
            limit: 0,
            mode: self.mode,
        }
    }

    fn read(bytes: &mut PayloadReader<'_>) -> Option<Self> {
        let id = PermitId([bytes.number()?, bytes.number()?]);
        let (ttl_us, scope) = (bytes.number()?, bytes.count()?);
        let mode = match bytes.byte()? {
            0 => LimitMode::Enforce,
            1 => LimitMode::Shadow,
            _ => return None,
        };
        let name: Box<[u8]> = bytes.bytes()?.into();
        let quota = read_quota(bytes)?;
        (scope <= name.len()).then_some(Self {
            id,
            ttl_us,
            mode,
            name,
            scope,
            quota,
        })
    }
}

impl ReservationState {
    /// Returns the seal for ids of permits.
    pub(crate) async fn permit_seal<S: Store>(&self, rules: &Rules, backend: &Backend<S>) -> Seal {
        self.keys.closing(rules, backend).await.of_permits()
    }

    /// Prolongs the permits of an id, all or none, by `ttl_us` from now or by the time that they were acquired for.
    /// Returns true if all are held.
    pub(crate) async fn renew<S: Store>(
        &self,
        backend: &Backend<S>,
        (rules, id): (&Rules, &str),
        ttl_us: Option<u64>,
    ) -> Result<bool, CheckError> {
        let Some(permits) = self.open_permits(backend, rules, id).await? else {
            return Ok(false);
        };
        let mut asks = permits.asks(|permits| Op::Renew {
            id: permits.id,
            ttl_us: ttl_us.unwrap_or(permits.ttl_us),
        });
        let settled = backend.settle(&mut asks).await.map_err(CheckError::Store)?;
        Ok(settled.is_some_and(|reply| reply.passed))
    }

    /// Releases the permits of an id, and calls `released` with their buckets. Returns true if any were held.
    pub(crate) async fn release<S: Store>(
        &self,
        backend: &Backend<S>,
        (rules, id): (&Rules, &str),
        released: impl FnOnce(&[Ask<'_>]),
    ) -> Result<bool, CheckError> {
        let Some(permits) = self.open_permits(backend, rules, id).await? else {
            return Ok(false);
        };
        let mut asks = permits.asks(|permits| Op::Release(permits.id));
        let settled = backend.settle(&mut asks).await.map_err(CheckError::Store)?;
        released(&asks);
        Ok(settled.is_some_and(|reply| !reply.applied.is_empty()))
    }

    /// Returns the permits of an id; `None` if the id is unknown.
    async fn open_permits<S: Store>(
        &self,
        backend: &Backend<S>,
        rules: &Rules,
        id: &str,
    ) -> Result<Option<PermitPayload>, CheckError> {
        match self.open(backend, (rules, id), Seal::of_permits).await {
            Ok(opened) => Ok(PermitPayload::read(&opened.payload)),
            Err(SettleError::Store { source, .. }) => Err(CheckError::Store(source)),
            Err(SettleError::Closed) => Err(CheckError::Closed),
            Err(SettleError::Unknown | SettleError::BadCost(_)) => Ok(None),
        }
    }
}
