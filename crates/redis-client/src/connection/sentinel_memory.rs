//! Memory of earlier replies of sentinels: one that was cut off during a failover must not lead us back
//! to the old master.

use crate::address::Address;
use std::time::Duration;
use tokio::time::Instant;

/// The time for which most sentinels have to report a lower epoch before they are trusted. After a
/// failover only the sentinel that led it knows at first; the others learn of it within a few seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reply of one sentinel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentinelView {
    pub(super) master: Address,
    /// Rises with each failover.
    pub(super) epoch: u64,
}

/// The master that we trust, and the epoch of its failover.
#[derive(Debug, Default)]
pub(super) struct KnownMaster {
    believed: Option<SentinelView>,
    /// The reply of most sentinels with a lower epoch, and since when they give it. If they stay with it,
    /// the group was set up from scratch, and epochs start again.
    dissent: Option<(SentinelView, Instant)>,
}

impl KnownMaster {
    /// Returns true if the reply can be trusted without waiting for the others.
    pub(super) fn is_news(&self, opinion: &SentinelView) -> bool {
        let believed = self.believed.as_ref();
        believed.is_none_or(|believed| believed.epoch < opinion.epoch || *believed == *opinion)
    }

    /// Returns the master according to the sentinels that have replied at `now`, out of `asked`. `None`
    /// if none ever replied.
    pub(super) fn judge(
        &mut self,
        opinions: &[SentinelView],
        asked: usize,
        now: Instant,
    ) -> Option<Address> {
        if let Some(best) = best(opinions) {
            let votes = votes(opinions, best);
            if self.is_convinced(best, votes * 2 > asked, now) {
                self.believed = Some(best.clone());
                self.dissent = None;
            }
        }
        self.believed
            .as_ref()
            .map(|believed| believed.master.clone())
    }

    /// Returns true if `best` replaces the known master: it is news, or most sentinels report it, for
    /// long enough if its epoch is lower.
    fn is_convinced(&mut self, best: &SentinelView, is_majority: bool, now: Instant) -> bool {
        let Some(believed) = &self.believed else {
            return true;
        };
        if self.is_news(best) {
            return true;
        }
        if !is_majority {
            self.dissent = None;
            return false;
        }
        if best.epoch == believed.epoch {
            // Without a failover it was changed by an operator, or epochs are not reported to us.
            return true;
        }
        match &self.dissent {
            Some((said, since)) if said == best => now.duration_since(*since) >= PATIENCE,
            _ => {
                self.dissent = Some((best.clone(), now));
                false
            }
        }
    }
}

/// Returns the reply about the latest failover; if several differ, the most frequent one.
fn best(opinions: &[SentinelView]) -> Option<&SentinelView> {
    let latest = opinions.iter().map(|opinion| opinion.epoch).max()?;
    let latest = opinions.iter().filter(|opinion| opinion.epoch == latest);
    // Of equals the first, so that the answer does not depend on how they are counted.
    latest.rev().max_by_key(|opinion| votes(opinions, opinion))
}

/// Returns the number of sentinels that agree with `opinion`.
fn votes(opinions: &[SentinelView], opinion: &SentinelView) -> usize {
    opinions.iter().filter(|other| *other == opinion).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queries three sentinels at once; each replies with a port and an epoch.
    struct World {
        memory: KnownMaster,
        now: Instant,
    }

    impl World {
        fn new() -> Self {
            Self {
                memory: KnownMaster::default(),
                now: Instant::now(),
            }
        }

        fn ask(&mut self, said: &[(u16, u64)]) -> Option<u16> {
            let opinions: Vec<_> = said
                .iter()
                .map(|&(port, epoch)| SentinelView {
                    master: Address::new("m", port),
                    epoch,
                })
                .collect();
            let master = self.memory.judge(&opinions, 3, self.now);
            master.map(|master| master.port)
        }
    }

    #[test]
    fn the_latest_failover_wins() {
        let mut world = World::new();
        assert_eq!(world.ask(&[]), None);
        assert_eq!(world.ask(&[(1, 3), (2, 5), (3, 4)]), Some(2));
        assert_eq!(world.ask(&[(1, 6)]), Some(1));
    }

    #[test]
    fn a_stale_sentinel_is_ignored() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(1, 3), (2, 4), (1, 3)]), Some(2));
        assert_eq!(world.ask(&[(1, 3)]), Some(2));
        assert_eq!(world.ask(&[]), Some(2));
        world.now += PATIENCE * 10;
        assert_eq!(world.ask(&[(1, 3)]), Some(2));
        // Not even with an epoch that the current master had.
        assert_eq!(world.ask(&[(1, 4)]), Some(2));
    }

    #[test]
    fn most_sentinels_may_lag_briefly() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(2, 4)]), Some(2));
        assert_eq!(world.ask(&[(1, 3), (1, 3)]), Some(2));
        world.now += PATIENCE / 2;
        assert_eq!(world.ask(&[(1, 3), (1, 3)]), Some(2));
        // A newer epoch is accepted, and the timeout restarts.
        assert_eq!(world.ask(&[(1, 3), (2, 4)]), Some(2));
        world.now += PATIENCE / 2;
        assert_eq!(world.ask(&[(1, 3), (1, 3)]), Some(2));
    }

    #[test]
    fn a_recreated_sentinel_group_is_trusted_by_majority() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(2, 9)]), Some(2));
        assert_eq!(world.ask(&[(3, 0), (3, 0)]), Some(2));
        world.now += PATIENCE;
        assert_eq!(world.ask(&[(3, 0), (3, 0)]), Some(3));
        // Later epochs are compared with this one.
        assert_eq!(world.ask(&[(2, 1)]), Some(2));
    }

    #[test]
    fn a_lower_epoch_of_the_same_master_is_accepted() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(2, 9)]), Some(2));
        assert_eq!(world.ask(&[(2, 0), (2, 0), (2, 0)]), Some(2));
        world.now += PATIENCE;
        assert_eq!(world.ask(&[(2, 0), (2, 0), (2, 0)]), Some(2));
        assert_eq!(world.ask(&[(1, 1)]), Some(1));
    }

    #[test]
    fn without_a_failover_a_majority_is_required() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(1, 0), (2, 0), (2, 0)]), Some(2));
        assert_eq!(world.ask(&[(1, 0), (2, 0)]), Some(2));
        assert_eq!(world.ask(&[(1, 0), (1, 0)]), Some(1));
    }
}
