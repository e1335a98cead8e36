//! Rate limits for WebSocket messages: each message must pass a policy.

use super::lane::ActiveRoute;
use crate::decider::Decider;
use crate::proxy::websocket::{Admit, Gate};
use crate::telemetry::gateway::MessageOutcome;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Repeated, Store};
use tidegate_http::answer::retry_after_seconds;

/// Checks each message of a WebSocket like the request that opened it. The client and the limits are
/// those found then, so a token that expires meanwhile changes nothing.
pub(super) struct MessageLimiter<S> {
    decider: Decider<S>,
    lane: Arc<ActiveRoute>,
    message: Repeated,
}

impl<S: Store + 'static> MessageLimiter<S> {
    pub(super) fn new(decider: &Decider<S>, lane: &Arc<ActiveRoute>, message: Repeated) -> Self {
        Self {
            decider: decider.clone(),
            lane: Arc::clone(lane),
            message,
        }
    }
}

/// Without a policy for messages, every message passes.
impl<S: Store + 'static> Gate for Option<Box<MessageLimiter<S>>> {
    async fn admit(&mut self) -> Admit {
        match self {
            Some(messages) => messages.admit().await,
            None => Admit::Pass,
        }
    }
}

impl<S: Store + 'static> MessageLimiter<S> {
    async fn admit(&mut self) -> Admit {
        let (outcome, admit) = match self.decider.ask_again(&mut self.message).await {
            Ok(decision) if decision.is_allowed() => (MessageOutcome::Allowed, Admit::Pass),
            Ok(decision) => {
                let retry_after = retry_after_seconds(&decision).map(Duration::from_secs);
                (MessageOutcome::Refused, Admit::Refuse { retry_after })
            }
            Err(_) => {
                let retry_after = Some(Duration::from_secs(1));
                (MessageOutcome::Undecided, Admit::Refuse { retry_after })
            }
        };
        self.lane.metrics.count_message(outcome);
        admit
    }
}
