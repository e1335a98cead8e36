//! Where counts are sent: to two maps, neither of which waits for the other.

use super::gather::{GATHERED_MAX, OTHER};
use super::status::{Tallies, add};
use crate::fresh::delay;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use tidegate_redis::{Batch, Census, Landed};
use tokio::time::Instant;
use tracing::{info, warn};

/// Where counts are sent.
#[derive(Debug)]
pub(super) struct Post {
    /// There once the first are sent.
    pub(super) census: Option<Census>,
    period: Way,
    total: Way,
}

/// When to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// When it is time: after a failure, later.
    InTime,
    /// At once, for there is no later.
    Now,
}

/// The way to one map.
#[derive(Debug)]
struct Way {
    /// What the map is called in the configuration.
    map: &'static str,
    /// On its way: nobody knows yet whether it has arrived. Nothing else is sent before it.
    pending: Option<Batch>,
    /// What is to follow.
    behind: Behind,
    /// In a row.
    failed: u32,
    retry_at: Option<Instant>,
    /// Why, the last time.
    error: Option<String>,
}

/// What waits behind a batch. Bounded, as what is gathered is, however long that takes.
type Behind = HashMap<Vec<u8>, u64, RandomState>;

// === impl Post ===

impl Default for Post {
    fn default() -> Self {
        Self {
            census: None,
            period: Way::to("period"),
            total: Way::to("total"),
        }
    }
}

impl Post {
    /// Sends these and all that is left from before. What does not arrive stays for the next time, and
    /// counts once however often it is sent. An error is that of a map for which something is left.
    pub(super) async fn send(
        &mut self,
        counts: Vec<(Vec<u8>, u64)>,
        haste: Haste,
        tallies: &Tallies,
    ) -> Result<(), String> {
        let Self {
            census,
            period,
            total,
        } = self;
        period.put_behind(counts.iter().cloned());
        total.put_behind(counts);
        let Some(census) = census else {
            return Ok(());
        };
        let mut goes = [period.is_due(haste), total.is_due(haste)];
        // What was left, and then what came behind it.
        for _ in 0..2 {
            let [to_period, to_total] = goes;
            let of_period = to_period.then(|| period.next()).flatten();
            let of_total = to_total.then(|| total.next()).flatten();
            if of_period.is_none() && of_total.is_none() {
                break;
            }
            let [landed, other] = census.add_apart(of_period, of_total).await;
            if let Ok(landed) = &landed {
                let sent = landed.own.saturating_add(landed.other);
                tallies.sent.fetch_add(sent, Relaxed);
                tallies.doubtful.fetch_add(landed.doubtful, Relaxed);
            }
            goes = [
                to_period && period.note(landed, tallies),
                to_total && total.note(other, tallies),
            ];
        }
        period.left().and(total.left())
    }
}

// === impl Way ===

impl Way {
    fn to(map: &'static str) -> Self {
        Self {
            map,
            pending: None,
            behind: Behind::default(),
            failed: 0,
            retry_at: None,
            error: None,
        }
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

    /// Whether it may be tried.
    fn is_due(&self, haste: Haste) -> bool {
        haste == Haste::Now || self.retry_at.is_none_or(|at| Instant::now() >= at)
    }

    /// What is to be sent next.
    fn next(&mut self) -> Option<&mut Batch> {
        if self.pending.is_none() && !self.behind.is_empty() {
            let behind = std::mem::take(&mut self.behind);
            self.pending = Some(Batch::new(behind.into_iter().collect()));
        }
        self.pending.as_mut()
    }

    /// Takes note of what came of it; tells whether to go on.
    fn note<E: fmt::Display>(&mut self, landed: Result<Landed, E>, tallies: &Tallies) -> bool {
        let map = self.map;
        match landed {
            Ok(_) => {
                if self.failed > 0 {
                    info!(map, "addresses are counted again");
                }
                *self = Self {
                    behind: std::mem::take(&mut self.behind),
                    ..Self::to(map)
                };
                true
            }
            Err(error) => {
                if self.failed == 0 {
                    warn!(
                        map,
                        %error, "counts by address cannot be sent; they are gathered, up to a bound"
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

    /// An error where something is left.
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
    async fn a_redis_that_fails_was_asked_every_second_while_something_was_retired() {
        let (mut way, tallies) = (Way::to("total"), Tallies::default());
        way.put_behind([(b"192.0.2.1".to_vec(), 3)]);
        for (nth, least_ms) in [(0, 500), (1, 1_000), (2, 2_000), (3, 4_000)] {
            assert!(way.is_due(Haste::InTime), "{nth}");
            assert!(way.next().is_some());
            assert!(!way.note(Err("away"), &tallies));
            tokio::time::advance(Duration::from_millis(least_ms - 1)).await;
            assert!(!way.is_due(Haste::InTime), "{nth}");
            assert!(way.is_due(Haste::Now), "at the end there is no later");
            tokio::time::advance(Duration::from_millis(least_ms + 1)).await;
        }
        assert!(way.left().is_err());
        assert!(way.note(Ok::<_, String>(Landed::default()), &tallies));
        assert!(way.is_due(Haste::InTime) && way.left().is_ok());
        assert_eq!(tallies.status().failures, 4);
    }

    #[test]
    fn what_waits_behind_a_batch_has_a_bound() {
        let mut way = Way::to("total");
        let strangers = 2 * GATHERED_MAX;
        for number in 0..strangers {
            way.put_behind([(number.to_string().into_bytes(), 1)]);
        }
        assert_eq!(way.behind.len(), GATHERED_MAX + 1);
        let sum: u64 = way.behind.values().sum();
        assert_eq!(sum, u64::try_from(strangers).expect("a small number"));
    }
}
