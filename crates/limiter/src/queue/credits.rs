//! Credits to each bucket while requests wait for it, and their effect on these requests.
//!
//! A place in a token bucket is debt, and its refund must not remove the debt under it. Credits made since
//! then for places *behind* it were not under it, but only the component that made them knows that. So
//! credits are recorded here, as long as any request of the same bucket is left that may leave as well.
//! Without this record, a request that leaves after others behind it would be refunded too little, and places
//! would stay empty.
//!
//! Requests behind a refunded place are recorded here too, and move up.

use super::bucket::{BucketCredits, BucketWaiter, ChargeOrder, WaiterKey};
use crate::charges::{BucketCharge, Charges};
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Ask, Quota, Receipt, Reply};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// The credits of each bucket, as long as requests wait for it.
#[derive(Default)]
pub(crate) struct CreditLedgers(Arc<Mutex<CreditTable>>);

/// The credits, locked against other changes.
pub(crate) struct Ledger<'a> {
    table: MutexGuard<'a, CreditTable>,
    credits: &'a CreditLedgers,
    /// True if all requests that wait for the same buckets are in this process.
    knows_all: bool,
}

#[derive(Default)]
struct CreditTable {
    buckets: HashMap<BandKey, BucketCredits, RandomState>,
    arrivals: u64,
}

/// A bucket and the id of its band.
type BandKey = (Box<[u8]>, u64);

/// A request that waits, until this is dropped.
pub(crate) struct CreditWatch {
    table: Arc<Mutex<CreditTable>>,
    spots: SmallVec<[WaiterRef; 2]>,
    bell: Arc<Notify>,
}

/// The position of a request before one bucket.
struct WaiterRef {
    name: BandKey,
    key: WaiterKey,
    /// The index of the ask that was charged.
    ask: usize,
    is_place: bool,
}

impl CreditLedgers {
    /// Locks the credits: until the result is dropped, only it can add credits or requests that wait.
    pub(crate) fn hold(&self) -> Ledger<'_> {
        Ledger {
            table: self.0.lock(),
            credits: self,
            knows_all: false,
        }
    }
}

impl Ledger<'_> {
    /// Marks that all requests that wait for the same buckets are in this process.
    pub(crate) fn of_all(self) -> Self {
        Self {
            knows_all: true,
            ..self
        }
    }

    /// Starts to wait for the buckets of `charges`; `waits` has the microseconds for each ask. If all
    /// requests that wait for them are in this process, none gets its turn before an earlier one.
    pub(crate) fn watch(mut self, charges: &Charges, waits: &[u64]) -> CreditWatch {
        let now = Instant::now();
        let bell = Arc::new(Notify::new());
        let mut spots = SmallVec::new();
        for charge in &charges.list {
            let Some(name) = name(charges, charge) else {
                continue;
            };
            let number = self.table.arrivals;
            self.table.arrivals = number.wrapping_add(1);
            let key = (charge_order(charges, charge), number);
            let given = self.table.buckets.entry(name.clone()).or_default();
            let wait_us = waits.get(charge.ask).copied().unwrap_or(0);
            let turn = now + Duration::from_micros(wait_us);
            let turn = match given.last_turn().filter(|_| self.knows_all && wait_us > 0) {
                Some(last) => turn.max(last),
                None => turn,
            };
            given.enter(key, BucketWaiter::new(turn, charge.receipt.cost, &bell));
            spots.push(WaiterRef {
                name,
                key,
                ask: charge.ask,
                is_place: charges.is_place(charge),
            });
        }
        CreditWatch {
            table: Arc::clone(&self.credits.0),
            spots,
            bell,
        }
    }

    /// Returns the receipts of `list`, including the known credits behind each.
    pub(crate) fn receipts(
        &self,
        charges: &Charges,
        list: &[&BucketCharge],
    ) -> SmallVec<[Receipt; 2]> {
        let with_behind = |charge: &&BucketCharge| {
            let given = name(charges, charge).and_then(|name| self.table.buckets.get(&name));
            let mut receipt = charge.receipt;
            receipt.behind = given.map_or(0, |given| given.behind(charge_order(charges, charge)));
            receipt
        };
        list.iter().map(with_behind).collect()
    }

    /// Records the outcomes of refunding `list`, and moves up the requests behind.
    pub(crate) fn note(&mut self, charges: &Charges, list: &[&BucketCharge], reply: &Reply) {
        let now = Instant::now();
        for (charge, outcome) in list.iter().zip(reply.outcomes.iter()) {
            let given = name(charges, charge).and_then(|name| self.table.buckets.get_mut(&name));
            if let (Some(given), Some(quota)) = (given, charges.quota(charge))
                && outcome.mark > 0
            {
                let standing = charge_order(charges, charge);
                given.add(standing, outcome.mark);
                let sooner = Duration::from_micros(quota.sooner_us(outcome.mark));
                given.move_up(standing, sooner, now);
            }
        }
    }

    /// Refunds all of `charges` through `decide`; `None` if that did nothing.
    pub(crate) fn refund_charges(
        mut self,
        charges: &Charges,
        decide: impl FnOnce(&[Ask<'_>]) -> Option<Reply>,
    ) -> Option<()> {
        let list: SmallVec<[&BucketCharge; 2]> = charges.list.iter().collect();
        let receipts = self.receipts(charges, &list);
        let reply = decide(&charges.asks(&list, &receipts))?;
        self.note(charges, &list, &reply);
        Some(())
    }
}

impl CreditWatch {
    /// Waits until the turn has come before every bucket.
    pub(crate) async fn turn(&self) {
        // Requests that leave may bring the turn forward, never back.
        while let Some(turn) = self.look() {
            if timeout_at(turn, self.bell.notified()).await.is_err() {
                return;
            }
        }
    }

    fn look(&self) -> Option<Instant> {
        let mut table = self.table.lock();
        let turns = self.spots.iter().filter_map(|spot| {
            let given = table.buckets.get_mut(&spot.name)?;
            given.look(spot.key)
        });
        turns.max()
    }

    /// Returns the number of microseconds by which credits make a bucket full sooner, per known ask.
    pub(crate) fn sooner_us(&self) -> SmallVec<[(usize, u64); 2]> {
        let table = self.table.lock();
        let sooner = |spot: &WaiterRef| {
            let sooner = table.buckets.get(&spot.name)?.sooner(spot.key);
            Some((spot.ask, u64::try_from(sooner.as_micros()).ok()?))
        };
        self.spots.iter().filter_map(sooner).collect()
    }

    /// Hands the places over to the requests behind them, because this request has left. Charges without a
    /// place are watched further.
    pub(crate) fn hand_over(&mut self) {
        let now = Instant::now();
        let mut table = self.table.lock();
        self.spots.retain(|spot| {
            if spot.is_place {
                table.change(&spot.name, |given| given.hand_over(spot.key, now));
            }
            !spot.is_place
        });
    }
}

impl Drop for CreditWatch {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        for WaiterRef { name, key, .. } in &self.spots {
            table.change(name, |given| drop(given.leave(*key)));
        }
    }
}

impl CreditTable {
    /// Changes the credits of a bucket, and drops them once no request waits for it.
    fn change(&mut self, name: &BandKey, change: impl FnOnce(&mut BucketCredits)) {
        if let Some(given) = self.buckets.get_mut(name) {
            change(given);
            if given.is_empty() {
                self.buckets.remove(name);
            }
        }
    }
}

/// Returns the key of the charged band; `None` if it has no places.
fn name(charges: &Charges, charge: &BucketCharge) -> Option<BandKey> {
    let quota = charges.quota(charge)?;
    let has_places = quota.algorithm().has_places();
    has_places.then(|| (charge.bucket.clone(), quota.id().as_u64()))
}

/// Returns the order of a charge. Every charge moves the time at which the bucket is full later, and every
/// credit moves it earlier by the amount it adds to the mark. So the sum of both only grows.
fn charge_order(charges: &Charges, charge: &BucketCharge) -> ChargeOrder {
    let tick_us = charges.quota(charge).map_or(1, Quota::tick_us);
    let Receipt {
        at, until, mark, ..
    } = charge.receipt;
    let reached = until.plus(mark.saturating_mul(tick_us));
    (at, reached.as_micros())
}

impl fmt::Debug for CreditLedgers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreditLedgers").finish_non_exhaustive()
    }
}
