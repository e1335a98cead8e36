//! Asking whether a request would pass, and telling what it has used.

use super::{Decider, Logged};
use crate::telemetry::decisions::Timing;
use std::sync::Arc;
use tidegate::{CheckError, Decision, Request, Rules, Store};

impl<S: Store> Decider<S> {
    /// Tells whether a request would pass; nothing is charged.
    pub async fn test_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Result<Decision, CheckError> {
        let timing = Timing::start(self.limiter.waits());
        let outcome = self.limiter.test_by(rules, request).await;
        self.observe((rules, request), outcome.as_ref(), timing, Logged::Here);
        outcome
    }

    /// Charges what a request has used already, whether it fits or not.
    pub async fn report_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Result<Decision, CheckError> {
        let timing = Timing::start(self.limiter.waits());
        let outcome = self.limiter.report_by(rules, request).await;
        self.observe((rules, request), outcome.as_ref(), timing, Logged::Here);
        outcome
    }
}
