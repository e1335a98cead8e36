//! Decides requests of the past, in virtual time.
//!
//! Like the [listeners](crate::listeners), the limiter is compiled where its store is named: here, for speed.

use std::sync::Arc;
use tidegate::plan::PlanTable;
use tidegate::{
    BuildError, CheckError, Config, Decision, Limiter, ManualClock, MemoryStore, PlansError,
    Request, Timestamp,
};

/// A limiter in memory whose clock is set by each request.
#[derive(Debug)]
pub struct PastLimiter {
    limiter: Limiter<MemoryStore<ManualClock>>,
    clock: ManualClock,
}

impl PastLimiter {
    /// Creates a limiter with the policies of `config`.
    ///
    /// # Errors
    ///
    /// Those of [`LimiterBuilder::build`](tidegate::LimiterBuilder::build).
    pub fn new(config: Config) -> Result<Self, BuildError> {
        let clock = ManualClock::default();
        let builder = Limiter::builder().config(config).clock(clock.clone());
        Ok(Self {
            limiter: builder.build()?,
            clock,
        })
    }

    /// Uses these plans of the source `name`.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::use_plans`].
    pub fn use_plans(&self, name: &str, table: Arc<PlanTable>) -> Result<(), PlansError> {
        self.limiter.use_plans(name, table, None)
    }

    /// Decides a request of the instant `at`. One that is earlier than its predecessor gets that one's time.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::check_now`].
    pub fn decide(&self, at: Timestamp, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.clock.set(at);
        self.limiter.check_now(request)
    }
}
