//! The background loop that sends counts, closes periods and bans.

use crate::addresses::{AddressBan, AddressCounter, BanTerms, EVERY, SendUrgency};
use crate::lists::set_of_bans;
use crate::refresh::delay;
use crate::rules::Rules;
use crate::state::LimiterState;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::{SharedState, Store, StoreError};
use tidegate_policy::guard::GuardEffect;
use tidegate_policy::{Guard, KeyPart};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

/// The interval at which counters replaced by a reload are sent, until they are empty.
const LATER: Duration = Duration::from_secs(1);

/// Sends the counts that have not been sent yet. Counts that cannot be sent are lost.
pub(crate) async fn send_now<S: Store>(limiter: &LimiterState<S>) {
    let Some(state) = limiter.backend.shared_state() else {
        return;
    };
    limiter.retired.send(state, SendUrgency::Now).await;
    if let Some(counting) = &limiter.present().counting
        && let Err(error) = counting.send(state, SendUrgency::Now).await
    {
        warn!(event = "address_counts_lost", %error, "address counts lost at shutdown");
    }
}

/// The callback for bans.
type BanCallback = Box<dyn Fn(AddressBan) + Send + Sync>;

/// Sends counts, closes periods and bans, for as long as the limiter exists. Calls `tell` for every ban that
/// this instance makes.
pub(crate) async fn keep<S: Store>(
    limiter: Weak<LimiterState<S>>,
    mut reloads: watch::Receiver<()>,
    tell: BanCallback,
) {
    let mut turn: Option<CountCycle> = None;
    loop {
        let Some(limiter) = limiter.upgrade() else {
            return;
        };
        let rules = limiter.present();
        turn = follow(turn.take(), rules.counting.clone());
        let mut pause = Duration::MAX;
        if let Some(state) = limiter.backend.shared_state() {
            limiter.retired.send(state, SendUrgency::InTime).await;
            if let Some(turn) = &mut turn {
                pause = turn.take(state, &rules, &*tell).await;
            }
        }
        if !limiter.retired.are_none() {
            pause = pause.min(LATER);
        }
        // Do not hold the limiter while nothing happens: it may be dropped meanwhile.
        drop((limiter, rules));
        // Wakes on a reload, and ends once the limiter is dropped.
        if let Ok(Err(_)) = timeout(pause, reloads.changed()).await {
            return;
        }
    }
}

/// Returns the cycle for the counter `now`: `turn` if it already belongs to it, otherwise a new one. The
/// previous counter must not be kept alive.
fn follow(turn: Option<CountCycle>, now: Option<Arc<AddressCounter>>) -> Option<CountCycle> {
    let counting = now?;
    let same = turn.filter(|turn| Arc::ptr_eq(&turn.counting, &counting));
    Some(same.unwrap_or_else(|| CountCycle::new(counting)))
}

/// The cycle of counting under one configuration.
struct CountCycle {
    counting: Arc<AddressCounter>,
    /// The time of the next check if the period is over.
    close_at: Instant,
    /// The number of consecutive failures of that check.
    failed: u32,
}

impl CountCycle {
    fn new(counting: Arc<AddressCounter>) -> Self {
        Self {
            counting,
            close_at: Instant::now(),
            failed: 0,
        }
    }

    /// Performs the work that is due, if any, and returns the time until the next call. May be called at any
    /// time.
    async fn take(
        &mut self,
        state: &dyn SharedState,
        rules: &Rules,
        tell: &(dyn Fn(AddressBan) + Send + Sync),
    ) -> Duration {
        // A failure is logged by `send` and retried when due.
        self.counting.send(state, SendUrgency::InTime).await.ok();
        if Instant::now() >= self.close_at {
            let wait = match self.close(state, rules, tell).await {
                Ok(wait) => {
                    if self.failed > 0 {
                        info!(
                            event = "address_period_recovered",
                            "closing address count periods works again"
                        );
                    }
                    self.failed = 0;
                    wait
                }
                Err(error) => {
                    if self.failed == 0 {
                        warn!(event = "address_period_failed", %error, "cannot close an address count period; retrying");
                    }
                    let pause = delay(self.failed);
                    self.failed = self.failed.saturating_add(1);
                    pause
                }
            };
            self.close_at = Instant::now() + wait;
        }
        EVERY
    }

    /// Closes the period if it is over. Returns the time until the next check.
    async fn close(
        &self,
        state: &dyn SharedState,
        rules: &Rules,
        tell: &(dyn Fn(AddressBan) + Send + Sync),
    ) -> Result<Duration, StoreError> {
        let guard = self.counting.guard();
        let guard = guard.and_then(|name| rules.guards.iter().find(|guard| guard.name == name));
        // The list of a guard that is off is not read, so its bans would never end.
        let guard = guard.filter(|guard| guard.enabled);
        let is_exempt = |address| is_exempt(rules, address);
        let ban = BanTerms {
            set: guard.and_then(set_of_bans),
            is_exempt: &is_exempt,
            tell,
            is_shadow: rules.is_shadow(),
        };
        self.counting.close(state, &ban).await
    }
}

/// Returns true if a guard exempts an address from bans.
fn is_exempt(rules: &Rules, address: IpAddr) -> bool {
    // A guard that is off or in shadow mode exempts no client.
    let exempting = |guard: &Guard| {
        guard.effect == GuardEffect::Exempt && guard.subject == KeyPart::Ip && guard.is_enforced()
    };
    let mut guards = rules.guards.iter().enumerate();
    guards.any(|(number, guard)| {
        exempting(guard)
            && rules
                .lists
                .list(number)
                .is_some_and(|list| list.contains_address(address))
    })
}
