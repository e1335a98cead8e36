//! Sending counts, closing periods and banning, off the path of any request.

use super::AddressCounter;
use super::outbox::SendUrgency;
use super::status::add;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidegate_core::shared_state::{PeriodState, PeriodTerms};
use tidegate_core::{SharedState, StoreError};
use tidegate_policy::limit::AddressRules;
use tracing::warn;

/// The interval between sends. Together with the duration of a call it stays below a second.
pub(crate) const EVERY: Duration = Duration::from_millis(500);

/// The time an instance has to process a period before another takes over.
const LEASE: Duration = Duration::from_secs(30);

/// An address that has just been banned: passed to the callback of
/// [`Limiter::keep_counts`](crate::Limiter::keep_counts) by the instance that made the ban.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddressBan {
    /// The address; IPv6 with the prefix by which it is counted.
    pub address: String,
    /// The number of its requests in the period.
    pub count: u64,
    /// The duration of the ban; `None` means permanent.
    pub length: Option<Duration>,
}

/// The terms for banning addresses over the threshold.
pub(crate) struct BanTerms<'a> {
    /// The set that bans are added to.
    pub(crate) set: Option<&'a str>,
    /// Returns true for addresses that are never banned.
    pub(crate) is_exempt: &'a (dyn Fn(IpAddr) -> bool + Send + Sync),
    /// The callback for bans.
    pub(crate) tell: &'a (dyn Fn(AddressBan) + Send + Sync),
    /// True if everything is in shadow mode, so that no address is banned.
    pub(crate) is_shadow: bool,
}

impl AddressCounter {
    /// Sends the counts buffered since the last call. Counts that do not arrive are kept for the next call,
    /// and are counted once even if they are sent several times. Returns the reason of a failure.
    pub(crate) async fn send(
        &self,
        state: &dyn SharedState,
        haste: SendUrgency,
    ) -> Result<(), String> {
        let mut outboxes = self.outboxes.lock().await;
        if outboxes.open(state, &self.settings).is_none() {
            return Ok(());
        }
        let gathered = self.buffer.take(|address| self.rules.member(address));
        outboxes.send(gathered, haste, &self.tallies).await
    }

    /// Closes the period if it is over and no other instance does, and bans addresses over the threshold.
    /// Returns the time until the next check.
    pub(crate) async fn close(
        &self,
        state: &dyn SharedState,
        ban: &BanTerms<'_>,
    ) -> Result<Duration, StoreError> {
        let mut outboxes = self.outboxes.lock().await;
        let period = self.settings.period;
        let Some(counts) = outboxes.open(state, &self.settings) else {
            if !self.is_reported.swap(true, Relaxed) {
                warn!(
                    event = "address_counts_unsupported",
                    "the store has no address counts; addresses are neither counted nor banned"
                );
            }
            return Ok(period);
        };
        let terms = PeriodTerms {
            period,
            lease: LEASE,
            threshold: self.settings.threshold,
        };
        let mut many = match counts.close(terms).await? {
            PeriodState::Running { wait } => return Ok(wait.min(period)),
            PeriodState::Busy => return Ok(EVERY),
            PeriodState::Closing { over } => over,
        };
        many.sort_unstable();
        many.dedup_by(|a, b| a.0 == b.0);
        many.retain(|(address, _)| is_bannable(address, self.rules, ban));
        self.ban(state, ban, &many).await?;
        // Last: if this instance dies before, another takes over, and banning twice has no effect.
        if counts.finish().await? {
            add(&self.tallies.closed, 1);
        }
        Ok(EVERY)
    }

    async fn ban(
        &self,
        state: &dyn SharedState,
        ban: &BanTerms<'_>,
        many: &[(Vec<u8>, u64)],
    ) -> Result<(), StoreError> {
        let (Some(settings), Some(set)) = (&self.settings.ban, ban.set) else {
            return Ok(());
        };
        if many.is_empty() {
            return Ok(());
        }
        let Some(sets) = state.sets() else {
            let why = "the store has no sets, so that addresses over the threshold are not banned";
            return Err(StoreError::permanent(why));
        };
        if ban.is_shadow {
            let count = many.len();
            add(&self.tallies.would_ban, count);
            warn!(
                event = "address_ban_shadowed",
                count, "shadow mode: addresses over the threshold are not banned"
            );
            return Ok(());
        }
        let members: Vec<&[u8]> = many.iter().map(|(address, _)| address.as_slice()).collect();
        let new = sets.add(set, &members, settings.length).await?;
        add(&self.tallies.banned, new.len());
        for address in new {
            let known = many.binary_search_by(|(other, _)| other.cmp(&address));
            let known = known.ok().and_then(|nth| many.get(nth));
            let banned = AddressBan {
                count: known.map_or(0, |(_, count)| *count),
                address: String::from_utf8_lossy(&address).into_owned(),
                length: settings.length,
            };
            let AddressBan {
                address,
                count,
                length,
            } = &banned;
            warn!(
                event = "address_banned",
                address,
                count,
                ?length,
                "address banned: too many requests"
            );
            (ban.tell)(banned);
        }
        Ok(())
    }

    /// Returns the name of the guard that enforces the bans.
    pub(crate) fn guard(&self) -> Option<&str> {
        self.settings.ban.as_ref().map(|ban| ban.guard.as_str())
    }
}

/// Returns true if `member` of a map is an address in Tidegate's own form, and not exempt. Other programs may
/// write to the map: a network that Tidegate does not count by, such as `0.0.0.0/0`, would ban all clients.
fn is_bannable(member: &[u8], rules: AddressRules, ban: &BanTerms<'_>) -> bool {
    let member = std::str::from_utf8(member).unwrap_or_default();
    let address = member
        .split_once('/')
        .map_or(member, |(address, _)| address);
    let address: Result<IpAddr, _> = address.parse();
    address.is_ok_and(|address| rules.member(address) == member && !(ban.is_exempt)(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_in_the_count_map_was_banned_as_a_whole() {
        let ban = BanTerms {
            set: None,
            is_exempt: &|address| address.to_string() == "192.0.2.9",
            tell: &|_| {},
            is_shadow: false,
        };
        let is_bannable = |member: &str, ipv6_prefix| {
            is_bannable(member.as_bytes(), AddressRules { ipv6_prefix }, &ban)
        };
        for (member, prefix) in [
            ("192.0.2.1", 64),
            ("2001:db8::/64", 64),
            ("2001:db8::/48", 48),
            ("2001:db8::1", 128),
        ] {
            assert!(is_bannable(member, prefix), "{member}");
        }
        for member in [
            "0.0.0.0/0",
            "192.0.2.1/32",
            "192.0.2.1/",
            "::/0",
            "2001:db8::/32",
            "2001:db8::1",
            "2001:db8::1/64",
            "2001:DB8::/64",
            "::ffff:192.0.2.1",
            "192.0.2.9",
            "others",
            "",
        ] {
            assert!(!is_bannable(member, 64), "{member}");
        }
    }
}
