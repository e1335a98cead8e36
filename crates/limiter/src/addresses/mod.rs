//! Counting requests by client address, and banning addresses over a threshold (`addresses`).
//!
//! | module | what it is |
//! |---|---|
//! | this one | the counter, and the choice of requests to count |
//! | `buffer` | the counts until they are sent |
//! | `status` | totals for metrics |
//! | `periods` | sending counts, closing periods and banning |
//! | `outbox` | the outbox of each map, and its retries |
//! | `retired` | counters replaced by a reload, until their last counts are sent |
//!
//! [`upkeep`](crate::upkeep) does all of this in the background, off the path of any request.
//!
//! ```text
//! request ─▶ buffer ─▶ (every half second) batch ─▶ Redis: period map, total map
//!                                                      │ once a period, by one instance
//!                                                      ▼
//!                                          at or over the threshold ─▶ the guard's set
//! ```
//!
//! A request is counted once, regardless of its decision. Counts leave this process within a second, and once
//! more at shutdown; a killed process loses the counts it has not sent.

mod buffer;
mod outbox;
mod periods;
mod retired;
mod status;

pub(crate) use outbox::SendUrgency;
pub use periods::AddressBan;
pub(crate) use periods::{BanTerms, EVERY};
pub(crate) use retired::RetiredCounters;
pub use status::CountingStatus;

use buffer::CountBuffer;
use status::Tallies;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tidegate_policy::addresses::AddressLimits;
use tidegate_policy::limit::AddressRules;

/// The counter of requests by address.
#[derive(Debug)]
pub(crate) struct AddressCounter {
    settings: AddressLimits,
    rules: AddressRules,
    buffer: CountBuffer,
    /// The totals, including those from before a reload.
    tallies: Arc<Tallies>,
    /// The outboxes. Locked while sending.
    outboxes: tokio::sync::Mutex<outbox::Outboxes>,
    /// True once it has been logged that the store keeps no counts.
    is_reported: AtomicBool,
}

impl AddressCounter {
    fn new(settings: AddressLimits, rules: AddressRules, tallies: Arc<Tallies>) -> Self {
        Self {
            settings,
            rules,
            buffer: CountBuffer::default(),
            tallies,
            outboxes: tokio::sync::Mutex::default(),
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

    /// Counts a request of `address`, if that is known. `is_banned` is true if a list of banned addresses
    /// refused it.
    #[inline]
    pub(crate) fn count(&self, address: Option<IpAddr>, is_banned: bool) {
        if let Some(address) = address
            && (self.settings.count_banned || !is_banned)
        {
            self.buffer.count(self.rules.subject(address));
        }
    }

    /// Returns the totals.
    pub(crate) fn status(&self) -> CountingStatus {
        self.tallies.status()
    }
}
