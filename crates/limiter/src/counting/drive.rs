//! What drives counting, beside the requests.

use super::AddressCounter;
use super::keep::{Banned, Banning, EVERY};
use super::post::Haste;
use crate::fresh::delay;
use crate::known::set_of_bans;
use crate::limiter::{Limiter, LimiterInner};
use crate::rules::Rules;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::{SharedState, Store, StoreError};
use tidegate_policy::guard::GuardEffect;
use tidegate_policy::{Guard, KeyPart};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

/// How often what a reload has replaced is looked at, until it is over.
const LATER: Duration = Duration::from_secs(1);

impl<S: Store> Limiter<S> {
    /// Sends what was counted by address, closes periods when they are over, and bans who asked too
    /// often, for as long as there is a limiter; a reload is followed. `tell` hears of every ban that
    /// this instance makes. Somebody has to drive it, once for all clones: a task of its own, most often.
    /// `tidegate serve` does so by itself.
    ///
    /// Requests never wait for it. What cannot be sent is tried again after a second, then twice as long
    /// each time up to half a minute; meanwhile counts are gathered, up to a bound. A map that cannot be
    /// counted in, because its key holds something else, keeps the other from nothing.
    ///
    /// Bans end with the lists that they are read with: see [`keep_lists`](Self::keep_lists).
    ///
    /// It needs a runtime of `tokio` with its timers.
    pub fn keep_counts<F>(&self, tell: F) -> impl Future<Output = ()> + Send + use<S, F>
    where
        F: Fn(Banned) + Send + Sync + 'static,
    {
        keep(self.downgrade(), self.reloads(), Box::new(tell))
    }

    /// Sends what was counted and not yet sent: for the end of a program. What cannot be sent is lost.
    pub async fn send_counts(&self) {
        let Some(state) = self.shared_state() else {
            return;
        };
        self.retired().send(state, Haste::Now).await;
        if let Some(counting) = &self.present().counting
            && let Err(error) = counting.send(state, Haste::Now).await
        {
            warn!(%error, "the last counts by address are lost");
        }
    }
}

/// Who hears of bans.
type Tell = Box<dyn Fn(Banned) + Send + Sync>;

async fn keep<S: Store>(
    limiter: Weak<LimiterInner<S>>,
    mut reloads: watch::Receiver<()>,
    tell: Tell,
) {
    let mut turn: Option<CountCycle> = None;
    loop {
        let Some(shared) = limiter.upgrade() else {
            return;
        };
        let limiter = Limiter::of_shared(shared);
        let rules = limiter.present();
        turn = follow(turn.take(), rules.counting.clone());
        let mut pause = Duration::MAX;
        if let Some(state) = limiter.shared_state() {
            limiter.retired().send(state, Haste::InTime).await;
            if let Some(turn) = &mut turn {
                pause = turn.take(state, &rules, &*tell).await;
            }
        }
        if !limiter.retired().are_none() {
            pause = pause.min(LATER);
        }
        // Not kept while nothing happens, for the limiter may go meanwhile.
        drop((limiter, rules));
        // Whoever has replaced the rules has told so; whoever has dropped them all, too.
        if let Ok(Err(_)) = timeout(pause, reloads.changed()).await {
            return;
        }
    }
}

/// Goes on with `turn`, if it is `now` that counts; what did before is not to be held.
fn follow(turn: Option<CountCycle>, now: Option<Arc<AddressCounter>>) -> Option<CountCycle> {
    let counting = now?;
    let same = turn.filter(|turn| Arc::ptr_eq(&turn.counting, &counting));
    Some(same.unwrap_or_else(|| CountCycle::new(counting)))
}

/// Counting under one configuration, turn by turn.
struct CountCycle {
    counting: Arc<AddressCounter>,
    /// When to ask whether the period is over.
    close_at: Instant,
    /// How often that has failed in a row.
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

    /// Does what is due, however often it is asked to, and tells how long nothing is.
    async fn take(
        &mut self,
        state: &dyn SharedState,
        rules: &Rules,
        tell: &(dyn Fn(Banned) + Send + Sync),
    ) -> Duration {
        // What fails is said aloud, and tried again when it is time.
        self.counting.send(state, Haste::InTime).await.ok();
        if Instant::now() >= self.close_at {
            let wait = match self.close(state, rules, tell).await {
                Ok(wait) => {
                    if self.failed > 0 {
                        info!("periods of counts by address are closed again");
                    }
                    self.failed = 0;
                    wait
                }
                Err(error) => {
                    if self.failed == 0 {
                        warn!(%error, "a period of counts by address cannot be closed");
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

    /// Closes the period if it is over; tells when to ask again.
    async fn close(
        &self,
        state: &dyn SharedState,
        rules: &Rules,
        tell: &(dyn Fn(Banned) + Send + Sync),
    ) -> Result<Duration, StoreError> {
        let guard = self.counting.guard();
        let guard = guard.and_then(|name| rules.guards.iter().find(|guard| guard.name == name));
        // Nobody reads the list of one that is off, and so nobody would let go whom it has.
        let guard = guard.filter(|guard| guard.enabled);
        let is_exempt = |address| is_exempt(rules, address);
        let ban = Banning {
            set: guard.and_then(set_of_bans),
            is_exempt: &is_exempt,
            tell,
            is_shadow: rules.is_shadow(),
        };
        self.counting.close(state, &ban).await
    }
}

/// Whether any guard lets an address pass whatever it does.
fn is_exempt(rules: &Rules, address: IpAddr) -> bool {
    // One that only watches exempts nobody, nor does one that is off.
    let exempting = |guard: &Guard| {
        guard.effect == GuardEffect::Exempt && guard.subject == KeyPart::Ip && guard.is_enforced()
    };
    let mut guards = rules.guards.iter().enumerate();
    guards.any(|(number, guard)| {
        exempting(guard)
            && rules
                .known
                .list(number)
                .is_some_and(|list| list.contains_address(address))
    })
}
