//! `grpc.health.v1`: reports whether this server accepts calls, by the same condition as `/readyz`.

use super::body::{GrpcBody, MessageSource};
use super::status::{GrpcCode, GrpcStatus};
use super::{GrpcFrontend, frame, limiting};
use crate::decider::{Decider, DeciderHealth};
use crate::wire::protobuf::read::{ProtobufError, WireFields};
use crate::wire::protobuf::write;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use std::task::{Context, Poll};
use std::time::Duration;
use tidegate::Store;
use tidegate_net::phase::{Phase, PhaseWatch};
use tidegate_net::session::RequestContext;
use tokio::time::sleep;

pub(super) const CHECK: &str = "/grpc.health.v1.Health/Check";
pub(super) const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// The interval at which watchers learn of a store that became unreachable or reachable.
const LOOK_TIME: Duration = Duration::from_secs(1);

/// The serving status, as the protocol numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServingStatus {
    Serving = 1,
    NotServing = 2,
    /// Sent to watchers only: for `Check`, an unknown service is an error.
    ServiceUnknown = 3,
}

impl<S: Store + 'static> GrpcFrontend<S> {
    pub(super) async fn check_health(&self, body: Incoming) -> Result<GrpcBody, GrpcStatus> {
        if !is_known(&self.message(body).await?)? {
            return Err(GrpcStatus::new(GrpcCode::NotFound, "unknown service"));
        }
        let health = look(&self.decider, &self.phase).await;
        Ok(GrpcBody::Message(health.message()))
    }

    pub(super) async fn watch_health(
        &self,
        body: Incoming,
        visit: RequestContext<'_>,
    ) -> Result<GrpcBody, GrpcStatus> {
        let is_known = is_known(&self.message(body).await?)?;
        let watcher = Watcher {
            decider: self.decider.clone(),
            phase: self.phase.clone(),
            is_known,
            last_sent: None,
            looking: None,
        };
        Ok(GrpcBody::stream(watcher, visit.alive()))
    }
}

/// Returns true if the service named in the request exists. An empty name stands for all of them.
fn is_known(body: &[u8]) -> Result<bool, GrpcStatus> {
    let service = service(frame::only(body)?)?;
    Ok(service.is_empty() || limiting::SERVICES.contains(&service))
}

fn service(message: &[u8]) -> Result<&str, ProtobufError> {
    let mut service = "";
    let mut fields = WireFields::of(message);
    while let Some((number, value)) = fields.next_field()? {
        if number == 1 {
            service = value.text()?;
        }
    }
    Ok(service)
}

async fn look<S: Store>(decider: &Decider<S>, phase: &PhaseWatch) -> ServingStatus {
    match phase.now() {
        Phase::Serving if decider.status().await != DeciderHealth::Stuck => ServingStatus::Serving,
        _ => ServingStatus::NotServing,
    }
}

/// Sends the status at first and after each change, until the listener closes.
struct Watcher<S> {
    decider: Decider<S>,
    phase: PhaseWatch,
    is_known: bool,
    last_sent: Option<ServingStatus>,
    looking: Option<BoxFuture<'static, ServingStatus>>,
}

impl<S: Store + 'static> Watcher<S> {
    /// Returns the current status: immediately the first time, then after an interval or a change of
    /// phase.
    fn look(&self) -> BoxFuture<'static, ServingStatus> {
        let (decider, mut phase) = (self.decider.clone(), self.phase.clone());
        let (is_first, is_known) = (self.last_sent.is_none(), self.is_known);
        async move {
            if !is_first {
                // Wait for the next phase: waiting for one that is already reached would return at once,
                // again and again.
                let next = if phase.now() < Phase::Leaving {
                    Phase::Leaving
                } else {
                    Phase::Draining
                };
                tokio::select! {
                    biased;
                    () = phase.reaches(next) => {}
                    () = sleep(LOOK_TIME) => {}
                }
            }
            if is_known {
                look(&decider, &phase).await
            } else {
                ServingStatus::ServiceUnknown
            }
        }
        .boxed()
    }
}

impl<S: Store + 'static> MessageSource for Watcher<S> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Option<GrpcStatus>>> {
        loop {
            // A watcher that was sent this needs no further status; the connection is about to close.
            let is_over = self.phase.now() >= Phase::Draining;
            if is_over
                && self
                    .last_sent
                    .is_some_and(|last_sent| last_sent != ServingStatus::Serving)
            {
                return Poll::Ready(Err(None));
            }
            let mut looking = self.looking.take().unwrap_or_else(|| self.look());
            let Poll::Ready(health) = looking.poll_unpin(context) else {
                self.looking = Some(looking);
                return Poll::Pending;
            };
            if self.last_sent != Some(health) {
                self.last_sent = Some(health);
                return Poll::Ready(Ok(health.message()));
            }
        }
    }
}

impl ServingStatus {
    fn message(self) -> Bytes {
        frame::frame(2, |out| write::number(out, 1, u64::from(self as u8)))
    }
}
