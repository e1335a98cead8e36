//! Commit and refund: effective once, idempotent.

use super::keys::SealUse;
use super::mark::BucketMark;
use super::payload::{ChargeHome, Payload, SealedBand, SealedCharge};
use super::seal::{OnceToken, Seal, UnsealedId};
use super::settled::{SettleError, SettleState, SettledReservation};
use crate::limiter::Limiter;
use crate::rules::Rules;
use futures_util::future::join_all;
use smallvec::SmallVec;
use tidegate_core::{
    Ask, LimitMode, Op, Outcome, Reply, Store, StoreError, StoreErrorKind, Timestamp,
};

/// A reservation that is being settled.
struct Settling {
    payload: Payload,
    mark: OnceToken,
    actual: u64,
}

/// The asks for one bucket.
type Asks<'a> = SmallVec<[Ask<'a>; 4]>;

impl<S: Store> Limiter<S> {
    /// Settles a [reservation](Self::reserve) by its actual usage. Refunds unused units, and charges usage
    /// beyond the estimate, down to the overdraft of each limit.
    ///
    /// Settling happens once, at any instance: all further calls with the same id return
    /// [`SettleState::Already`] and change nothing. So a call whose result is unknown can simply be repeated.
    /// After the reservation has expired nothing is refunded, but usage beyond the estimate is still charged.
    ///
    /// A refund never leaves a bucket with more units than if it had never been charged. Units that were
    /// refilled meanwhile, while no other request used the bucket, are not refunded again.
    ///
    /// # Errors
    ///
    /// [`SettleError::Unknown`] if the id is invalid, [`SettleError::Store`] if the store did not answer,
    /// [`SettleError::Closed`] if the limiter is closed.
    pub async fn commit(&self, id: &str, actual: u64) -> Result<SettledReservation, SettleError> {
        let rules = self.rules().map_err(|_| SettleError::Closed)?;
        let UnsealedId { payload, mark } = self.open(&rules, id).await?;
        let payload = Payload::read(&payload).ok_or(SettleError::Unknown)?;
        let settling = Settling {
            payload,
            mark,
            actual,
        };
        let buckets = settling.payload.buckets.iter();
        let states = join_all(buckets.map(|bucket| self.settle(&settling, bucket))).await;
        let Payload {
            policy, estimate, ..
        } = settling.payload;
        let mut all = None::<SettleState>;
        for state in states {
            match state {
                Ok(state) => all = Some(all.map_or(state, |all| all.and(state))),
                Err(source) => {
                    let policy = policy.into();
                    return Err(SettleError::Store { policy, source });
                }
            }
        }
        Ok(SettledReservation {
            state: all.unwrap_or(SettleState::Settled),
            policy,
            estimate,
            actual,
        })
    }

    /// Settles a [reservation](Self::reserve) of which nothing was used: a [`commit`](Self::commit) of 0.
    ///
    /// # Errors
    ///
    /// Those of [`commit`](Self::commit).
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{Limiter, Request, SettleError};
    ///
    /// let limiter = Limiter::from_yaml(
    ///     "policies: [{ name: jobs, reserve: 60s, limits: [{ name: all, rate: 1/h }] }]",
    /// )?;
    /// let reservation = limiter.reserve(&Request::new(), None).await?;
    /// limiter.refund(reservation.id().expect("there is room")).await?;
    /// assert!(limiter.check(&Request::new()).await?.is_allowed());
    ///
    /// assert!(matches!(limiter.refund("r1nonsense").await, Err(SettleError::Unknown)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn refund(&self, id: &str) -> Result<SettledReservation, SettleError> {
        self.commit(id, 0).await
    }

    /// Returns the contents of an id, if this instance or one that shares the store made it.
    async fn open(&self, rules: &Rules, id: &str) -> Result<UnsealedId, SettleError> {
        let keys = &self.reserving().keys;
        let open = || {
            let mut seals = keys.opening(rules).into_iter();
            seals.find_map(|seal: Seal| seal.open(id))
        };
        if let Some(opened) = open() {
            return Ok(opened);
        }
        // The id may be closed by a seal that the other instances agreed on and that is not known here yet.
        if !self.waits() || rules.keys.secret.is_some() || !Seal::may_open(id) {
            return Err(SettleError::Unknown);
        }
        match keys.agree(self.store(), SealUse::Open).await {
            Ok(true) => open().ok_or(SettleError::Unknown),
            Ok(false) => Err(SettleError::Unknown),
            Err(source) => Err(SettleError::Store {
                policy: String::new(),
                source,
            }),
        }
    }

    /// Settles one bucket.
    async fn settle(
        &self,
        settling: &Settling,
        bucket: &SealedCharge,
    ) -> Result<SettleState, StoreError> {
        let Some(mark) = BucketMark::new(settling.mark, &bucket.name, settling.payload.ttl_us)
        else {
            return Ok(SettleState::Kept);
        };
        let asks = settling.asks(bucket, &mark);
        let reply = match bucket.home {
            ChargeHome::Store => match self.store().decide(&asks).await {
                Ok(reply) => {
                    if let Some(failover) = self.failover() {
                        failover.note_settled(&asks, &reply);
                    }
                    reply
                }
                // Permanent: the store keeps them in different groups.
                Err(error) if is_apart(&error, &asks) => return Ok(SettleState::Kept),
                Err(error) => {
                    self.note_store(Err(&error));
                    // Undo it: the same call again settles all of it.
                    self.refund_partial(&asks, &error);
                    return Err(error);
                }
            },
            ChargeHome::Here => {
                let is_ours = settling.payload.instance == self.reserving().instance;
                match self.failover().filter(|_| is_ours) {
                    Some(failover) => failover.settle_here(&asks),
                    None => return Ok(SettleState::Kept),
                }
            }
        };
        Ok(settling.state(bucket, &reply))
    }
}

/// Returns true if a store cannot refund because no single step reaches a bucket and its mark, or all bands
/// of a bucket.
fn is_apart(error: &StoreError, asks: &[Ask<'_>]) -> bool {
    let returns = |ask: &Ask<'_>| matches!(ask.op, Op::Return { .. });
    !error.is_transient() && error.kind() == StoreErrorKind::Other && asks.iter().any(returns)
}

impl Settling {
    /// Returns the asks for `bucket`: the mark, and the differences.
    fn asks<'a>(&self, bucket: &'a SealedCharge, mark: &'a BucketMark) -> Asks<'a> {
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
        let differences: Asks<'a> = differences.collect();
        let is_forced = differences.iter().any(|it| matches!(it.op, Op::Force(_)));
        mark.take(is_forced)
            .into_iter()
            .chain(differences)
            .collect()
    }

    /// Returns the operation that settles one band, if one is needed.
    fn difference(&self, lent: &SealedBand) -> Option<Op> {
        let charged = lent.receipt.cost;
        match charged.checked_sub(self.actual) {
            Some(0) => None,
            Some(unused) => Some(Op::Return {
                receipt: lent.receipt.with_cost(unused),
                by: self.expires(lent),
            }),
            None => Some(Op::Force(self.actual.saturating_sub(charged))),
        }
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
