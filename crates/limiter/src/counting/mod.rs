//! Counting who asks, and keeping out who asks too often (`addresses`).
//!
//! | module | what it is |
//! |---|---|
//! | this one | what is counted, and whom |
//! | `gather` | counts until they are sent |
//! | `status` | what came of it, for metrics |
//! | `keep` | sending counts, closing periods and banning |
//! | `post` | what is on its way to each map, and when it is tried again |
//! | `retired` | what a reload has replaced, until its last counts are sent |
//! | `drive` | what has that done, off the path of any request |
//!
//! ```text
//! request ─▶ gather ─▶ (every half second) batch ─▶ Redis: period map, total map
//!                                                      │ once a period, by one instance
//!                                                      ▼
//!                                          at or over the threshold ─▶ the guard's set
//! ```
//!
//! A request is counted once, whatever is decided of it. Counts leave this process within a second and
//! once at its end; one that is killed loses what it had not sent.

mod drive;
mod gather;
mod keep;
mod post;
mod retired;
mod status;

pub use keep::Banned;
pub(crate) use retired::Retired;
pub use status::CountingStatus;

use crate::decision::Decision;
use crate::limiter::Limiter;
use crate::rules::Rules;
use gather::CountBuffer;
use status::Tallies;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tidegate_core::Store;
use tidegate_policy::AnswerReason;
use tidegate_policy::addresses::AddressLimits;
use tidegate_policy::limit::AddressRules;

/// What is counted, and how.
#[derive(Debug)]
pub(crate) struct AddressCounter {
    settings: AddressLimits,
    rules: AddressRules,
    gathered: CountBuffer,
    /// What came of it, before a reload as well.
    tallies: Arc<Tallies>,
    /// Where they are sent. Locked by whoever sends, for as long as that takes.
    post: tokio::sync::Mutex<post::Post>,
    /// Whether it has been logged that the store keeps no counts.
    is_reported: AtomicBool,
}

impl AddressCounter {
    fn new(settings: AddressLimits, rules: AddressRules, tallies: Arc<Tallies>) -> Self {
        Self {
            settings,
            rules,
            gathered: CountBuffer::default(),
            tallies,
            post: tokio::sync::Mutex::default(),
            is_reported: AtomicBool::new(false),
        }
    }

    /// Counting as `settings` say, if they do: `earlier` goes on if it does so already.
    pub(crate) fn of(
        settings: Option<AddressLimits>,
        rules: AddressRules,
        earlier: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let settings = settings?;
        match earlier.filter(|earlier| earlier.is_as(&settings, rules)) {
            Some(earlier) => Some(Arc::clone(earlier)),
            None => {
                let tallies = earlier.map(|earlier| Arc::clone(&earlier.tallies));
                let tallies = tallies.unwrap_or_default();
                Some(Arc::new(Self::new(settings, rules, tallies)))
            }
        }
    }

    /// Whether it counts as `settings` say, so that it may go on with what it has.
    fn is_as(&self, settings: &AddressLimits, rules: AddressRules) -> bool {
        self.settings == *settings && self.rules == rules
    }

    /// Whether `decision` is the refusal of somebody who is banned: by the guard whose set bans are put
    /// into, or, where nobody is banned here, by any list of addresses.
    pub(crate) fn keeps_out(&self, decision: &Decision) -> bool {
        match (&self.settings.ban, decision.guard()) {
            (Some(ban), Some(guard)) => decision.is_barred() && ban.guard == guard.name,
            _ => decision.reason() == AnswerReason::Blacklisted,
        }
    }

    /// Counts a request of `address`, if anybody knows that. `is_kept_out` is whether a list of banned
    /// addresses has refused it.
    #[inline]
    pub(crate) fn count(&self, address: Option<IpAddr>, is_kept_out: bool) {
        if let Some(address) = address
            && (self.settings.count_banned || !is_kept_out)
        {
            self.gathered.count(self.rules.subject(address));
        }
    }

    /// What came of it.
    pub(crate) fn status(&self) -> CountingStatus {
        self.tallies.status()
    }
}

impl Rules {
    /// Whether requests are counted by address.
    pub fn counts_addresses(&self) -> bool {
        self.counting.is_some()
    }
}

impl<S: Store> Limiter<S> {
    /// What came of counting addresses, if they are counted.
    pub fn counting(&self) -> Option<CountingStatus> {
        let status = self.present().counting.as_ref()?.status();
        Some(CountingStatus {
            lifted: self.sources().lifted(),
            ..status
        })
    }
}
