//! Where redirections led to of late.
//!
//! A master that is to get its first slots is in nobody's list of slots yet. Whoever is sent there
//! has to connect first; without this it would do so again after every look at that list.

use crate::settings::Address;
use std::time::Duration;
use tokio::time::Instant;

/// How long after a redirection its aim is kept.
const KEPT: Duration = Duration::from_mins(1);

/// How many are kept. More than so many empty masters are not filled at the same time.
const COUNT_MAX: usize = 16;

/// Addresses, and when one was last redirected there.
#[derive(Debug, Default)]
pub(super) struct Followed {
    entries: Vec<(Address, Instant)>,
}

impl Followed {
    /// Somebody is redirected to `address`.
    pub(super) fn note(&mut self, address: &Address, now: Instant) {
        if let Some((_, last)) = self.entries.iter_mut().find(|(at, _)| at == address) {
            *last = now;
            return;
        }
        if self.entries.len() >= COUNT_MAX {
            let oldest = self.entries.iter().enumerate();
            let oldest = oldest.min_by_key(|(_, (_, last))| *last);
            if let Some((index, _)) = oldest {
                self.entries.swap_remove(index);
            }
        }
        self.entries.push((address.clone(), now));
    }

    /// Those that are kept.
    pub(super) fn recent(&mut self, now: Instant) -> impl Iterator<Item = &Address> {
        self.entries
            .retain(|(_, last)| now.duration_since(*last) < KEPT);
        self.entries.iter().map(|(address, _)| address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(followed: &mut Followed, now: Instant) -> Vec<u16> {
        followed.recent(now).map(|address| address.port).collect()
    }

    #[test]
    fn an_aim_is_kept_for_a_minute_after_the_last_redirection() {
        let (mut followed, start) = (Followed::default(), Instant::now());
        followed.note(&Address::new("a", 1), start);
        followed.note(&Address::new("a", 2), start);
        followed.note(&Address::new("a", 1), start + KEPT / 2);
        assert_eq!(ports(&mut followed, start + KEPT / 2), [1, 2]);
        assert_eq!(ports(&mut followed, start + KEPT), [1]);
        assert_eq!(ports(&mut followed, start + KEPT * 2), [] as [u16; 0]);
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let (mut followed, mut now) = (Followed::default(), Instant::now());
        for port in 1..=100 {
            now += Duration::from_millis(1);
            followed.note(&Address::new("a", port), now);
        }
        let mut kept = ports(&mut followed, now);
        kept.sort_unstable();
        assert_eq!(kept, (85..=100).collect::<Vec<_>>());
    }
}
