//! Targets of recent redirections.
//!
//! A master that is about to get its first slots is in no list of slots yet. A call that is redirected
//! there has to connect first. Without this memory it would connect again after every refresh of the
//! list.

use crate::address::Address;
use std::time::Duration;
use tokio::time::Instant;

/// The time for which the target of a redirection is remembered.
const KEPT: Duration = Duration::from_secs(60);

/// The most targets remembered. More empty masters than this are not filled at the same time.
const COUNT_MAX: usize = 16;

/// Addresses, and when one was last redirected there.
#[derive(Debug, Default)]
pub(super) struct RecentRedirections {
    entries: Vec<(Address, Instant)>,
}

impl RecentRedirections {
    /// Records that a call is redirected to `address`.
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

    fn ports(followed: &mut RecentRedirections, now: Instant) -> Vec<u16> {
        followed.recent(now).map(|address| address.port).collect()
    }

    #[test]
    fn a_redirect_target_is_kept_for_a_minute() {
        let (mut followed, start) = (RecentRedirections::default(), Instant::now());
        followed.note(&Address::new("a", 1), start);
        followed.note(&Address::new("a", 2), start);
        followed.note(&Address::new("a", 1), start + KEPT / 2);
        assert_eq!(ports(&mut followed, start + KEPT / 2), [1, 2]);
        assert_eq!(ports(&mut followed, start + KEPT), [1]);
        assert_eq!(ports(&mut followed, start + KEPT * 2), [] as [u16; 0]);
    }

    #[test]
    fn the_oldest_redirect_target_is_evicted_first() {
        let (mut followed, mut now) = (RecentRedirections::default(), Instant::now());
        for port in 1..=100 {
            now += Duration::from_millis(1);
            followed.note(&Address::new("a", port), now);
        }
        let mut kept = ports(&mut followed, now);
        kept.sort_unstable();
        assert_eq!(kept, (85..=100).collect::<Vec<_>>());
    }
}
