//! What sentinels said before: one that was cut off during a failover must not lead us back.

use crate::settings::Address;
use std::time::Duration;
use tokio::time::Instant;

/// How long most sentinels have to name a lower epoch before they are believed. After a failover,
/// only the one that led it knows for a moment; the others hear of it within a few seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one sentinel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opinion {
    pub(super) master: Address,
    /// Rises with each failover.
    pub(super) epoch: u64,
}

/// Whom we believe to be the master, and since which failover.
#[derive(Debug, Default)]
pub(super) struct KnownMaster {
    believed: Option<Opinion>,
    /// What most sentinels say of a lower epoch, and since when. The group was set up anew, if they
    /// stay with it: then epochs begin again.
    dissent: Option<(Opinion, Instant)>,
}

impl KnownMaster {
    /// Whether what it says can be taken for true without hearing the others first.
    pub(super) fn is_news(&self, opinion: &Opinion) -> bool {
        let believed = self.believed.as_ref();
        believed.is_none_or(|believed| believed.epoch < opinion.epoch || *believed == *opinion)
    }

    /// The master, by what the sentinels that answered say `now`, of so many `asked`. `None` if
    /// nobody ever said anything.
    pub(super) fn judge(
        &mut self,
        opinions: &[Opinion],
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

    fn is_convinced(&mut self, best: &Opinion, is_majority: bool, now: Instant) -> bool {
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
            // Without a failover it was changed by hand, or epochs are not told to us.
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

/// What is said of the latest failover; if they disagree about that, what most say.
fn best(opinions: &[Opinion]) -> Option<&Opinion> {
    let latest = opinions.iter().map(|opinion| opinion.epoch).max()?;
    let latest = opinions.iter().filter(|opinion| opinion.epoch == latest);
    // Of equals the first, so that the answer does not depend on how they are counted.
    latest.rev().max_by_key(|opinion| votes(opinions, opinion))
}

fn votes(opinions: &[Opinion], opinion: &Opinion) -> usize {
    opinions.iter().filter(|other| *other == opinion).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks three sentinels at once; each says a port and an epoch.
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
                .map(|&(port, epoch)| Opinion {
                    master: Address::new("m", port),
                    epoch,
                })
                .collect();
            let master = self.memory.judge(&opinions, 3, self.now);
            master.map(|master| master.port)
        }
    }

    #[test]
    fn the_latest_failover_is_believed() {
        let mut world = World::new();
        assert_eq!(world.ask(&[]), None);
        assert_eq!(world.ask(&[(1, 3), (2, 5), (3, 4)]), Some(2));
        assert_eq!(world.ask(&[(1, 6)]), Some(1));
    }

    #[test]
    fn a_stale_sentinel_does_not_lead_back() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(1, 3), (2, 4), (1, 3)]), Some(2));
        assert_eq!(world.ask(&[(1, 3)]), Some(2));
        assert_eq!(world.ask(&[]), Some(2));
        world.now += PATIENCE * 10;
        assert_eq!(world.ask(&[(1, 3)]), Some(2));
        // Not even with an epoch that the right one had.
        assert_eq!(world.ask(&[(1, 4)]), Some(2));
    }

    #[test]
    fn most_of_them_may_lag_behind_for_a_moment() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(2, 4)]), Some(2));
        assert_eq!(world.ask(&[(1, 3), (1, 3)]), Some(2));
        world.now += PATIENCE / 2;
        assert_eq!(world.ask(&[(1, 3), (1, 3)]), Some(2));
        // They hear of it, and the clock starts again.
        assert_eq!(world.ask(&[(1, 3), (2, 4)]), Some(2));
        world.now += PATIENCE / 2;
        assert_eq!(world.ask(&[(1, 3), (1, 3)]), Some(2));
    }

    #[test]
    fn a_group_that_was_set_up_anew_is_believed_when_most_stay_with_it() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(2, 9)]), Some(2));
        assert_eq!(world.ask(&[(3, 0), (3, 0)]), Some(2));
        world.now += PATIENCE;
        assert_eq!(world.ask(&[(3, 0), (3, 0)]), Some(3));
        // From here on epochs count from there.
        assert_eq!(world.ask(&[(2, 1)]), Some(2));
    }

    #[test]
    fn a_lower_epoch_of_the_same_master_is_learnt_too() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(2, 9)]), Some(2));
        assert_eq!(world.ask(&[(2, 0), (2, 0), (2, 0)]), Some(2));
        world.now += PATIENCE;
        assert_eq!(world.ask(&[(2, 0), (2, 0), (2, 0)]), Some(2));
        assert_eq!(world.ask(&[(1, 1)]), Some(1));
    }

    #[test]
    fn without_a_failover_most_have_to_say_so() {
        let mut world = World::new();
        assert_eq!(world.ask(&[(1, 0), (2, 0), (2, 0)]), Some(2));
        assert_eq!(world.ask(&[(1, 0), (2, 0)]), Some(2));
        assert_eq!(world.ask(&[(1, 0), (1, 0)]), Some(1));
    }
}
