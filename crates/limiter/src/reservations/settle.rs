//! Commit and refund: effective once, idempotent.

use super::ReservationState;
use super::keys::SealUse;
use super::once::BucketMark;
use super::payload::{Payload, SealedBand, SealedCharge};
use super::seal::{OnceToken, Seal, UnsealedId};
use super::settled::{SettleError, SettleState, SettledReservation};
use super::usage::{settled_units, used_units};
use super::warned::{ShareWarning, WarnedCharge};
use crate::backend::Backend;
use crate::decision::ChargeHome;
use crate::rules::Rules;
use futures_util::future::join_all;
use smallvec::SmallVec;
use tidegate_core::{Ask, LimitMode, Op, Outcome, Reply, Store, StoreError, Timestamp};
use tidegate_policy::Cost;
use tidegate_policy::unit::REQUESTS;

/// A reservation that is being settled.
struct PendingSettlement {
    payload: Payload,
    mark: OnceToken,
    /// The amount used, by unit; `None` if it is the estimate.
    actual: Vec<Option<u64>>,
}

/// The asks for one bucket.
type BucketAsks<'a> = SmallVec<[Ask<'a>; 4]>;

impl ReservationState {
    /// Settles a reservation by its actual usage; `None` if nothing was used.
    pub(crate) async fn commit<S: Store>(
        &self,
        backend: &Backend<S>,
        rules: &Rules,
        id: &str,
        actual: Option<Cost<'_>>,
    ) -> Result<SettledReservation, SettleError> {
        let UnsealedId { payload, mark } = self.open(backend, (rules, id), |seal| seal).await?;
        let payload = Payload::read(&payload).ok_or(SettleError::Unknown)?;
        let actual = match actual {
            Some(actual) => used_units(&payload.units, actual)?,
            None => vec![Some(0); payload.units.len()],
        };
        let settling = PendingSettlement {
            payload,
            mark,
            actual,
        };
        let buckets = settling.payload.buckets.iter();
        let states = join_all(buckets.map(|bucket| self.settle(backend, &settling, bucket))).await;
        let PendingSettlement {
            payload: Payload { policy, units, .. },
            actual,
            ..
        } = settling;
        let mut all = None::<SettleState>;
        let mut warnings = Vec::new();
        for state in states {
            match state {
                Ok((state, reached)) => {
                    all = Some(all.map_or(state, |all| all.and(state)));
                    warnings.extend(reached);
                }
                Err(source) => {
                    let policy = policy.into();
                    return Err(SettleError::Store { policy, source });
                }
            }
        }
        Ok(SettledReservation {
            state: all.unwrap_or(SettleState::Settled),
            policy,
            units: settled_units(units, &actual),
            warnings,
        })
    }

    /// Returns the contents of an id, if this instance or one that shares the store made it. `of` returns the seal
    /// for ids of its kind.
    pub(super) async fn open<S: Store>(
        &self,
        backend: &Backend<S>,
        (rules, id): (&Rules, &str),
        of: fn(Seal) -> Seal,
    ) -> Result<UnsealedId, SettleError> {
        let keys = &self.keys;
        let open = || {
            let mut seals = keys.opening(rules).into_iter();
            seals.find_map(|seal: Seal| of(seal).open(id))
        };
        if let Some(opened) = open() {
            return Ok(opened);
        }
        // The id may be closed by a seal that the other instances agreed on and that is not known here yet.
        if !backend.waits() || rules.keys.secret.is_some() || !Seal::may_open(id) {
            return Err(SettleError::Unknown);
        }
        match keys.agree(&backend.store, SealUse::Open).await {
            Ok(true) => open().ok_or(SettleError::Unknown),
            Ok(false) => Err(SettleError::Unknown),
            Err(source) => Err(SettleError::Store {
                policy: String::new(),
                source,
            }),
        }
    }

    /// Settles one bucket. Returns the `warn` shares that it reached, too.
    async fn settle<S: Store>(
        &self,
        backend: &Backend<S>,
        settling: &PendingSettlement,
        bucket: &SealedCharge,
    ) -> Result<(SettleState, Vec<ShareWarning>), StoreError> {
        let kept = (SettleState::Kept, Vec::new());
        let Some(mark) = BucketMark::new(settling.mark, &bucket.name, settling.payload.ttl_us)
        else {
            return Ok(kept);
        };
        let mut asks = settling.asks(bucket, &mark);
        let reply = match bucket.home {
            ChargeHome::Store => match backend.settle(&mut asks).await? {
                Some(reply) => reply,
                None => return Ok(kept),
            },
            ChargeHome::Here => {
                let is_ours = settling.payload.instance == self.instance;
                match backend.failover().filter(|_| is_ours) {
                    Some(failover) => failover.settle_here(&asks),
                    None => return Ok(kept),
                }
            }
        };
        let warnings = settling.warnings(bucket, &asks, &reply);
        Ok((settling.state(bucket, &reply), warnings))
    }
}

impl PendingSettlement {
    /// Returns the asks for `bucket`: the mark, and the differences.
    fn asks<'a>(&self, bucket: &'a SealedCharge, mark: &'a BucketMark) -> BucketAsks<'a> {
        let difference = |lent: &'a SealedBand| {
            Some(Ask {
                bucket: &bucket.name,
                scope: bucket.scope,
                quota: &lent.quota,
                op: self.difference(lent)?,
                limit: 0,
                mode: LimitMode::Enforce,
            })
        };
        let differences = bucket.bands.iter().filter_map(difference);
        let differences: BucketAsks<'a> = differences.collect();
        let is_forced = differences.iter().any(|it| matches!(it.op, Op::Force(_)));
        mark.take(is_forced)
            .into_iter()
            .chain(differences)
            .collect()
    }

    /// Returns the operation that settles one band, if one is needed.
    fn difference(&self, lent: &SealedBand) -> Option<Op> {
        let charged = lent.receipt.cost;
        let actual = *self.actual.get(lent.unit)?;
        let actual = actual?;
        match charged.checked_sub(actual) {
            Some(0) => None,
            Some(unused) => Some(Op::Return {
                receipt: lent.receipt.with_cost(unused),
                by: self.expires(lent),
            }),
            None => Some(Op::Force(actual.saturating_sub(charged))),
        }
    }

    /// Returns the `warn` shares that charges beyond the estimates reached, of which `reply` has the outcomes.
    fn warnings(
        &self,
        bucket: &SealedCharge,
        asks: &[Ask<'_>],
        reply: &Reply,
    ) -> Vec<ShareWarning> {
        let raised = asks.iter().enumerate().filter_map(|(nth, ask)| {
            let Op::Force(_) = ask.op else {
                return None;
            };
            let mut bands = bucket.bands.iter();
            let lent = bands.find(|lent| lent.quota == *ask.quota)?;
            let warning = lent.warning.as_ref()?;
            let unit = self.payload.units.get(lent.unit)?;
            let charge = WarnedCharge {
                at: reply.at,
                subject: bucket.name.get(bucket.scope..).unwrap_or_default(),
                unit: (&*unit.name != REQUESTS).then_some(&*unit.name),
                capacity: lent.quota.capacity(),
                has_window: lent.quota.algorithm().ends_at_once(),
            };
            let outcome = reply.outcomes.get(nth)?;
            warning.raised((reply.applied.units(nth, ask.op), outcome), charge)
        });
        raised.collect()
    }

    /// Returns the last time at which a charge is refunded, by the clock that made it.
    fn expires(&self, lent: &SealedBand) -> Timestamp {
        lent.receipt.at.plus(self.payload.ttl_us)
    }

    fn state(&self, bucket: &SealedCharge, reply: &Reply) -> SettleState {
        let is_free = reply.outcomes.first().is_some_and(Outcome::is_allowed);
        // Even without a difference: the mark of an earlier commit may have expired by now, and this commit
        // must not be taken for the first.
        let is_late = |lent: &SealedBand| reply.at > self.expires(lent);
        if !is_free {
            SettleState::Already
        } else if bucket.bands.iter().any(is_late) {
            SettleState::Expired
        } else {
            SettleState::Settled
        }
    }
}
