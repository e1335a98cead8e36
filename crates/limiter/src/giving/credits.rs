//! What was given back of each bucket while somebody waits for it.
//!
//! A place in a token bucket is debt, and giving it back must not take away what lies under it. What
//! was credited since of places *behind* one's own did not lie under it; but only whoever gave those
//! back knows that. So it is kept here who went, as long as anybody of the same bucket is left who
//! may go as well. Without it, whoever goes after others behind it would give back too little, and
//! places would stay empty.

use super::charges::{Charge, Charges};
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tidegate_core::{Algorithm, Ask, Quota, Receipt, Reply, Timestamp};

/// What was given back of each bucket, as long as somebody watches it.
#[derive(Default)]
pub(crate) struct Credits(Arc<Mutex<Table>>);

type Table = HashMap<Name, Given, RandomState>;

/// A bucket and the number of the band.
type Name = (Box<[u8]>, u64);

/// Where a charge stands among all that its bucket was charged: when it was made, and of those of one
/// instant, what all charges before it and itself amounted to.
type Standing = (Timestamp, u64);

/// What was given back of one bucket. No more is told apart than those who are left need: what was
/// credited between two of them is one sum.
#[derive(Default)]
struct Given {
    /// Who is left, and how many of them at one place.
    watching: BTreeMap<Standing, usize>,
    /// Ticks that were credited right behind somebody who is left, up to the next one; where there
    /// were any.
    gaps: BTreeMap<Standing, u64>,
}

/// Keeps what is given back of some buckets known until it is dropped.
pub(crate) struct Watch {
    table: Arc<Mutex<Table>>,
    standings: SmallVec<[(Name, Standing); 2]>,
}

impl Credits {
    /// Watches the buckets of `charges`.
    pub(crate) fn watch(&self, charges: &Charges) -> Watch {
        let standing = |charge| Some((name(charges, charge)?, standing(charges, charge)));
        let standings: SmallVec<[_; 2]> = charges.list.iter().filter_map(standing).collect();
        let mut table = self.0.lock();
        for (name, standing) in &standings {
            table.entry(name.clone()).or_default().enter(*standing);
        }
        drop(table);
        Watch {
            table: Arc::clone(&self.0),
            standings,
        }
    }

    /// Gives `charges` back by `decide`, and lets nobody else do so meanwhile.
    pub(crate) fn give_back(
        &self,
        charges: &Charges,
        decide: impl FnOnce(&[Ask<'_>]) -> Option<Reply>,
    ) -> Option<()> {
        let mut table = self.0.lock();
        let receipts = receipts(&table, charges);
        let reply = decide(&charges.asks(&receipts))?;
        note(&mut table, charges, &reply);
        drop::<MutexGuard<'_, _>>(table);
        Some(())
    }

    /// The receipts of `charges`, with all that is known of those behind them.
    pub(crate) fn receipts(&self, charges: &Charges) -> SmallVec<[Receipt; 2]> {
        receipts(&self.0.lock(), charges)
    }

    /// Remembers what giving `charges` back was answered.
    pub(crate) fn note(&self, charges: &Charges, reply: &Reply) {
        note(&mut self.0.lock(), charges, reply);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        for (name, standing) in &self.standings {
            let Some(given) = table.get_mut(name) else {
                continue;
            };
            given.leave(*standing);
            if given.watching.is_empty() {
                table.remove(name);
            }
        }
    }
}

impl Given {
    fn enter(&mut self, standing: Standing) {
        let count = self.watching.entry(standing).or_default();
        *count = count.saturating_add(1);
    }

    /// What was credited behind whoever leaves was behind the one before it as well.
    fn leave(&mut self, standing: Standing) {
        if let Some(count) = self.watching.get_mut(&standing) {
            *count = count.saturating_sub(1);
            if *count > 0 {
                return;
            }
        }
        self.watching.remove(&standing);
        if let Some(ticks) = self.gaps.remove(&standing) {
            self.add(standing, ticks);
        }
    }

    /// Adds what was credited of the place at `standing`. Whoever came after it need not know.
    fn add(&mut self, standing: Standing, ticks: u64) {
        if let Some((before, _)) = self.watching.range(..standing).next_back() {
            let gap = self.gaps.entry(*before).or_default();
            *gap = gap.saturating_add(ticks);
        }
    }

    /// What is known to have been credited of places behind `standing`.
    fn behind(&self, standing: Standing) -> u64 {
        let behind = self.gaps.range(standing..);
        behind.fold(0, |sum: u64, (_, ticks)| sum.saturating_add(*ticks))
    }
}

fn receipts(table: &Table, charges: &Charges) -> SmallVec<[Receipt; 2]> {
    let with_behind = |charge: &Charge| {
        let given = name(charges, charge).and_then(|name| table.get(&name));
        let behind = given.map_or(0, |given| given.behind(standing(charges, charge)));
        Receipt {
            behind,
            ..charge.receipt
        }
    };
    charges.list.iter().map(with_behind).collect()
}

fn note(table: &mut Table, charges: &Charges, reply: &Reply) {
    for (charge, outcome) in charges.list.iter().zip(reply.outcomes.iter()) {
        let given = name(charges, charge).and_then(|name| table.get_mut(&name));
        if let Some(given) = given
            && outcome.mark > 0
        {
            given.add(standing(charges, charge), outcome.mark);
        }
    }
}

/// Only token buckets have places.
fn name(charges: &Charges, charge: &Charge) -> Option<Name> {
    let quota = charges.quota(charge)?;
    let has_places = quota.algorithm() == Algorithm::TokenBucket;
    has_places.then(|| (charge.bucket.clone(), quota.id().as_u64()))
}

/// With every charge the bucket is as good as new later, and with every credit earlier by what it
/// adds to the mark; so both together only ever grow.
fn standing(charges: &Charges, charge: &Charge) -> Standing {
    let tick_us = charges.quota(charge).map_or(1, Quota::tick_us);
    let Receipt {
        at, until, mark, ..
    } = charge.receipt;
    let reached = until.plus(mark.saturating_mul(tick_us));
    (at, reached.as_micros())
}

impl fmt::Debug for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credits").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(place: u64) -> Standing {
        (Timestamp::from_micros(1), place)
    }

    proptest! {
        #[test]
        fn those_who_are_left_know_of_all_behind_them_who_went(
            order in Just((0..40_u64).collect::<Vec<_>>()).prop_shuffle(),
            passes in prop::collection::vec(any::<bool>(), 40),
        ) {
            let mut given = Given::default();
            (0..40).for_each(|place| given.enter(at(place)));
            let mut gone: Vec<u64> = Vec::new();
            for (nth, place) in order.iter().enumerate() {
                let behind = gone.iter().filter(|other| *other > place);
                prop_assert_eq!(given.behind(at(*place)), behind.count() as u64);
                // Some pass, and are credited nothing.
                if passes[nth] {
                    given.add(at(*place), 1);
                    gone.push(*place);
                }
                given.leave(at(*place));
                prop_assert!(given.gaps.len() <= given.watching.len());
            }
            prop_assert!(given.watching.is_empty() && given.gaps.is_empty());
        }
    }

    #[test]
    fn whoever_does_not_watch_knows_of_those_behind_others_only() {
        let mut given = Given::default();
        given.enter(at(10));
        given.enter(at(20));
        given.enter(at(20));
        for place in [5, 15, 25, 26] {
            given.add(at(place), 1);
        }
        assert_eq!(
            given.behind(at(1)),
            3,
            "not of the one before all who watch"
        );
        assert_eq!(given.behind(at(12)), 2, "it may stand behind the one at 15");
        assert_eq!(given.behind(at(30)), 0);
        given.leave(at(20));
        assert_eq!(given.behind(at(20)), 2);
        given.leave(at(20));
        assert_eq!((given.behind(at(20)), given.behind(at(10))), (0, 3));
    }
}
