//! The outboxes of counts for two maps, neither of which waits for the other.

use super::buffer::{GATHERED_MAX, OTHER};
use super::status::{Tallies, add};
use crate::refresh::delay;
use foldhash::fast::RandomState;
use futures_util::future::join;
use hashbrown::HashMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use tidegate_core::SharedState;
use tidegate_core::shared_state::{AddedCounts, CountMap, SharedCounts};
use tidegate_policy::addresses::AddressLimits;
use tokio::time::Instant;
use tracing::{info, warn};

/// The outboxes of counts.
#[derive(Debug)]
pub(super) struct Outboxes {
    period: MapOutbox,
    total: MapOutbox,
}

/// The urgency of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendUrgency {
    /// When due: after a failure, later.
    InTime,
    /// Immediately, because the process ends.
    Now,
}

/// The outbox for one map.
#[derive(Debug)]
struct MapOutbox {
    /// The name of the map in the configuration.
    map: &'static str,
    /// Present once the first counts are sent.
    counts: Option<Box<dyn SharedCounts>>,
    /// The batch in flight, whose result is unknown until it is confirmed. Nothing else is sent before it.
    pending: Option<Vec<(Vec<u8>, u64)>>,
    /// The counts to send after it.
    behind: WaitingCounts,
    /// Consecutive failures.
    failed: u32,
    retry_at: Option<Instant>,
    /// The reason of the last failure.
    error: Option<String>,
}

/// Counts that wait behind a batch. Bounded like the buffer, regardless of how long the batch takes.
type WaitingCounts = HashMap<Vec<u8>, u64, RandomState>;

// === impl Outboxes ===

impl Default for Outboxes {
    fn default() -> Self {
        Self {
            period: MapOutbox::to("period"),
            total: MapOutbox::to("total"),
        }
    }
}

impl Outboxes {
    /// Opens both maps if necessary, and returns that of the period. Returns `None` if the store has no
    /// counts.
    pub(super) fn open(
        &mut self,
        state: &dyn SharedState,
        settings: &AddressLimits,
    ) -> Option<&mut dyn SharedCounts> {
        let map = |name: &str, lasts| CountMap {
            name: name.to_owned(),
            names_max: settings.max_addresses,
            lasts,
        };
        let total = map(&settings.total_map, settings.total_lasts);
        self.total.open(state, &total)?;
        self.period.open(state, &map(&settings.period_map, None))
    }

    /// Sends these counts and all that are left from before. Counts that do not arrive are kept for the next
    /// call, and are counted once even if they are sent several times. Returns the error of a map that has
    /// counts left.
    pub(super) async fn send(
        &mut self,
        counts: Vec<(Vec<u8>, u64)>,
        haste: SendUrgency,
        tallies: &Tallies,
    ) -> Result<(), String> {
        let Self { period, total } = self;
        period.put_behind(counts.iter().cloned());
        total.put_behind(counts);
        // Concurrently: an instance that is killed meanwhile has most likely sent both, or neither.
        let sending = join(period.send(haste, tallies), total.send(haste, tallies));
        let (added, _) = sending.await;
        tallies.sent.fetch_add(added.counted, Relaxed);
        tallies.doubtful.fetch_add(added.doubtful, Relaxed);
        period.left().and(total.left())
    }
}

// === impl MapOutbox ===

impl MapOutbox {
    fn to(map: &'static str) -> Self {
        Self {
            map,
            counts: None,
            pending: None,
            behind: WaitingCounts::default(),
            failed: 0,
            retry_at: None,
            error: None,
        }
    }

    fn open(&mut self, state: &dyn SharedState, map: &CountMap) -> Option<&mut dyn SharedCounts> {
        if self.counts.is_none() {
            self.counts = state.counts(map);
        }
        Some(&mut **self.counts.as_mut()?)
    }

    /// Sends the pending batch, and then the counts behind it.
    async fn send(&mut self, haste: SendUrgency, tallies: &Tallies) -> AddedCounts {
        let mut sum = AddedCounts::default();
        if !self.is_due(haste) {
            return sum;
        }
        for _ in 0..2 {
            self.put_on_its_way();
            let (Some(counts), Some(pending)) = (&mut self.counts, &self.pending) else {
                break;
            };
            let added = counts.add(pending).await;
            if let Ok(added) = &added {
                sum.counted = sum.counted.saturating_add(added.counted);
                sum.doubtful = sum.doubtful.saturating_add(added.doubtful);
            }
            if !self.note(added, tallies) {
                break;
            }
        }
        sum
    }

    fn put_behind(&mut self, counts: impl IntoIterator<Item = (Vec<u8>, u64)>) {
        for (name, count) in counts {
            let has_room = self.behind.len() < GATHERED_MAX;
            let place = match self.behind.get_mut(&name) {
                Some(place) => place,
                None if has_room => self.behind.entry(name).or_default(),
                None => self.behind.entry(OTHER.into()).or_default(),
            };
            *place = place.saturating_add(count);
        }
    }

    /// Returns true if a send is due.
    fn is_due(&self, haste: SendUrgency) -> bool {
        haste == SendUrgency::Now || self.retry_at.is_none_or(|at| Instant::now() >= at)
    }

    /// Makes the waiting counts the pending batch, if there is no other.
    fn put_on_its_way(&mut self) {
        if self.pending.is_none() && !self.behind.is_empty() {
            let behind = std::mem::take(&mut self.behind);
            self.pending = Some(behind.into_iter().collect());
        }
    }

    /// Records the result of a send. Returns true if it succeeded.
    fn note<E: fmt::Display>(&mut self, added: Result<AddedCounts, E>, tallies: &Tallies) -> bool {
        let map = self.map;
        match added {
            Ok(_) => {
                if self.failed > 0 {
                    info!(
                        event = "address_counts_recovered",
                        map, "writing address counts works again"
                    );
                }
                *self = Self {
                    counts: self.counts.take(),
                    behind: std::mem::take(&mut self.behind),
                    ..Self::to(map)
                };
                true
            }
            Err(error) => {
                if self.failed == 0 {
                    warn!(
                        event = "address_counts_failed",
                        map,
                        %error, "cannot write address counts; buffering"
                    );
                }
                add(&tallies.failures, 1);
                self.retry_at = Some(Instant::now() + delay(self.failed));
                self.failed = self.failed.saturating_add(1);
                self.error = Some(error.to_string());
                false
            }
        }
    }

    /// Returns the last error if counts are left.
    fn left(&self) -> Result<(), String> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_failing_redis_was_called_every_second_during_retirement() {
        let (mut way, tallies) = (MapOutbox::to("total"), Tallies::default());
        way.put_behind([(b"192.0.2.1".to_vec(), 3)]);
        for (nth, least_ms) in [(0, 500), (1, 1_000), (2, 2_000), (3, 4_000)] {
            assert!(way.is_due(SendUrgency::InTime), "{nth}");
            way.put_on_its_way();
            assert!(way.pending.is_some());
            assert!(!way.note(Err("away"), &tallies));
            tokio::time::advance(Duration::from_millis(least_ms - 1)).await;
            assert!(!way.is_due(SendUrgency::InTime), "{nth}");
            assert!(
                way.is_due(SendUrgency::Now),
                "the last flush keeps nothing for later"
            );
            tokio::time::advance(Duration::from_millis(least_ms + 1)).await;
        }
        assert!(way.left().is_err());
        assert!(way.note(Ok::<_, String>(AddedCounts::default()), &tallies));
        assert!(way.is_due(SendUrgency::InTime) && way.left().is_ok());
        assert_eq!(tallies.status().failures, 4);
    }

    #[test]
    fn counts_queued_behind_a_batch_are_bounded() {
        let mut way = MapOutbox::to("total");
        let strangers = 2 * GATHERED_MAX;
        for number in 0..strangers {
            way.put_behind([(number.to_string().into_bytes(), 1)]);
        }
        assert_eq!(way.behind.len(), GATHERED_MAX + 1);
        let sum: u64 = way.behind.values().sum();
        assert_eq!(sum, u64::try_from(strangers).expect("a small number"));
    }
}
