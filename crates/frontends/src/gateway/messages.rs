//! Rate limits for WebSocket messages: each message must pass a policy.

use super::active_route::ActiveRoute;
use crate::decider::Decider;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{RepeatedRequest, Store};
use tidegate_http::answer::retry_after_seconds;
use tidegate_proxy::websocket::{Gate, MessageAdmission};
use tidegate_telemetry::gateway::MessageOutcome;

/// Checks each message of a WebSocket like the request that opened it. The client and the limits are
/// those found then, so a token that expires meanwhile changes nothing.
pub(super) struct MessageLimiter<S> {
    decider: Decider<S>,
    lane: Arc<ActiveRoute>,
    message: RepeatedRequest,
}

impl<S: Store + 'static> MessageLimiter<S> {
    pub(super) fn new(
        decider: &Decider<S>,
        lane: &Arc<ActiveRoute>,
        message: RepeatedRequest,
    ) -> Self {
        Self {
            decider: decider.clone(),
            lane: Arc::clone(lane),
            message,
        }
    }
}

impl<S: Store + 'static> Gate for MessageLimiter<S> {
    async fn admit(&mut self) -> MessageAdmission {
        let (outcome, admit) = match self.decider.ask_again(&mut self.message).await {
            Ok(decision) if decision.is_allowed() => {
                (MessageOutcome::Allowed, MessageAdmission::Pass)
            }
            Ok(decision) => {
                let retry_after = retry_after_seconds(&decision).map(Duration::from_secs);
                (
                    MessageOutcome::Refused,
                    MessageAdmission::Refuse { retry_after },
                )
            }
            Err(_) => {
                let retry_after = Some(Duration::from_secs(1));
                (
                    MessageOutcome::Undecided,
                    MessageAdmission::Refuse { retry_after },
                )
            }
        };
        self.lane.metrics.count_message(outcome);
        admit
    }
}
