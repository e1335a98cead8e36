//! Counting requests by client address, and banning addresses over a threshold (`addresses`).
//!
//! | module | what it is |
//! |---|---|
//! | this one | the counter, and the choice of requests to count |
//! | `gather` | the buffer of counts until they are sent |
//! | `status` | totals for metrics |
//! | `keep` | sending counts, closing periods and banning |
//! | `post` | the outbox of each map, and its retries |
//! | `retired` | counters replaced by a reload, until their last counts are sent |
//! | `drive` | the background loop, off the path of any request |
//!
//! ```text
//! request ─▶ gather ─▶ (every half second) batch ─▶ Redis: period map, total map
//!                                                      │ once a period, by one instance
//!                                                      ▼
//!                                          at or over the threshold ─▶ the guard's set
//! ```
//!
//! A request is counted once, regardless of its decision. Counts leave this process within a second, and once
//! more at shutdown; a killed process loses the counts it has not sent.

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

/// The counter of requests by address.
#[derive(Debug)]
pub(crate) struct AddressCounter {
    settings: AddressLimits,
    rules: AddressRules,
    gathered: CountBuffer,
    /// The totals, including those from before a reload.
    tallies: Arc<Tallies>,
    /// The outboxes. Locked while sending.
    post: tokio::sync::Mutex<post::Post>,
    /// True once it has been logged that the store keeps no counts.
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

    /// Returns a counter for `settings`, if there are any: `earlier` if it has the same settings, otherwise a
    /// new one.
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

    /// Returns true if this counter has the same settings and rules, so that it can stay in use.
    fn is_as(&self, settings: &AddressLimits, rules: AddressRules) -> bool {
        self.settings == *settings && self.rules == rules
    }

    /// Returns true if `decision` refuses a banned client: by the guard whose set bans are added to, or, if
    /// this counter does not ban, by any list of addresses.
    pub(crate) fn keeps_out(&self, decision: &Decision) -> bool {
        match (&self.settings.ban, decision.guard()) {
            (Some(ban), Some(guard)) => decision.is_barred() && ban.guard == guard.name,
            _ => decision.reason() == AnswerReason::Blacklisted,
        }
    }

    /// Counts a request of `address`, if that is known. `is_kept_out` is true if a list of banned addresses
    /// refused it.
    #[inline]
    pub(crate) fn count(&self, address: Option<IpAddr>, is_kept_out: bool) {
        if let Some(address) = address
            && (self.settings.count_banned || !is_kept_out)
        {
            self.gathered.count(self.rules.subject(address));
        }
    }

    /// Returns the totals.
    pub(crate) fn status(&self) -> CountingStatus {
        self.tallies.status()
    }
}

impl Rules {
    /// Returns true if requests are counted by address.
    pub fn counts_addresses(&self) -> bool {
        self.counting.is_some()
    }
}

impl<S: Store> Limiter<S> {
    /// Returns the totals of counting by address, or `None` if addresses are not counted.
    pub fn counting(&self) -> Option<CountingStatus> {
        let status = self.present().counting.as_ref()?.status();
        Some(CountingStatus {
            lifted: self.sources().lifted(),
            ..status
        })
    }
}
