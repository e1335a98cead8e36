//! Messages of a WebSocket, each of which must pass a policy of its own.

use super::lane::Lane;
use super::table::Table;
use crate::decider::Decider;
use crate::proxy::websocket::{Admit, Gate};
use crate::telemetry::gateway::MessageOutcome;
use http::Request;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{CheckError, Decision, Store};
use tidegate_http::answer::retry_after_seconds;

/// Asks for each message of a WebSocket: as for a request with the head that it began with.
pub(super) struct Messages<S> {
    decider: Decider<S>,
    table: Arc<Table>,
    lane: Arc<Lane>,
    head: Request<()>,
    peer: IpAddr,
}

impl<S: Store + 'static> Messages<S> {
    /// Those of the connection that `request` asks for, if the route limits them.
    pub(super) fn of<B>(
        decider: &Decider<S>,
        table: &Arc<Table>,
        lane: &Arc<Lane>,
        request: &Request<B>,
        peer: IpAddr,
    ) -> Option<Self> {
        lane.route.messages.as_ref()?;
        let mut head = Request::new(());
        *head.method_mut() = request.method().clone();
        *head.uri_mut() = request.uri().clone();
        *head.headers_mut() = request.headers().clone();
        Some(Self {
            decider: decider.clone(),
            table: Arc::clone(table),
            lane: Arc::clone(lane),
            head,
            peer,
        })
    }

    async fn decide(&self) -> Result<Decision, CheckError> {
        let rules = &self.table.rules;
        let policy = self.lane.route.messages.as_ref();
        let policy = policy.map_or("", |it| it.name.as_str());
        let question = self.lane.question(rules, policy, &self.head, self.peer);
        let pairs = question.pairs();
        let request = question.request(&pairs);
        self.decider.decide_by(rules, &request).await
    }
}

/// Where there are none, every message may pass.
impl<S: Store + 'static> Gate for Option<Messages<S>> {
    async fn admit(&mut self) -> Admit {
        match self {
            Some(messages) => messages.admit().await,
            None => Admit::Pass,
        }
    }
}

impl<S: Store + 'static> Messages<S> {
    async fn admit(&self) -> Admit {
        let (outcome, admit) = match self.decide().await {
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
