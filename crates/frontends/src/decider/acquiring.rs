//! Permits of requests in flight, by their ids.

use super::{Decider, RefusalLogging};
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Acquisition, CheckError, Request, Rules, Store};
use tidegate_telemetry::decisions::Timing;
use tidegate_telemetry::traces::RequestTrace;
use tracing::debug;

impl<S: Store> Decider<S> {
    /// Decides a request whose permits are held by an id, for a time. It is counted, traced and logged like any other.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::acquire`](tidegate::Limiter::acquire).
    pub(crate) async fn acquire(
        &self,
        rules: &Arc<Rules>,
        (request, ttl): (&Request<'_>, Option<Duration>),
        trace: &RequestTrace,
        token_refused: Option<&'static str>,
    ) -> Result<Acquisition, CheckError> {
        self.count_token(token_refused);
        let (timing, leg) = (Timing::start(self.limiter.waits()), trace.leg());
        let acquired = self.limiter.acquire_by(rules, request, ttl).await;
        let decided = acquired.as_ref().map(Acquisition::decision);
        trace.decided(leg, decided);
        self.count((rules, request), decided, timing, RefusalLogging::Here);
        acquired
    }

    /// Prolongs permits. Returns false if they are not held any more.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::renew`](tidegate::Limiter::renew).
    pub(crate) async fn renew(&self, id: &str, ttl: Option<Duration>) -> Result<bool, CheckError> {
        noted(self.limiter.renew(id, ttl).await)
    }

    /// Releases permits. Returns false if they were not held any more.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::release`](tidegate::Limiter::release).
    pub(crate) async fn release(&self, id: &str) -> Result<bool, CheckError> {
        noted(self.limiter.release(id).await)
    }
}

/// Logs why permits could not be renewed or released.
fn noted(done: Result<bool, CheckError>) -> Result<bool, CheckError> {
    if let Err(error) = &done {
        debug!(event = "permit_failed", %error, "permits not renewed or released; they end with their time");
    }
    done
}
