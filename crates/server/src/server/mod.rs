//! The server: bound sockets and a future that ends it.
//!
//! | module | what it is |
//! |---|---|
//! | `bind`, `socket` | opening the listeners: TCP and unix sockets |
//! | `tls`, `token` | access control of a listener |
//! | `renewal`, `expiry` | replacement of certificates, and their expiry |
//! | `accept`, `room`, `trouble` | accepting connections, bounded, and the log of problems |
//! | `reception` | the interface between accepting and the protocols |
//! | `connection`, `http2`, `streams` | one connection, from its first byte to its last |
//! | `frames` | a budget of HTTP/2 control frames |
//! | `session` | the view that a frontend has of a connection |
//! | `pulse`, `idle`, `paced` | activity of a connection |
//! | `age` | the maximum age of a connection |
//! | `watched`, `linger` | the socket of a connection, and its closing |
//! | `screen`, `strict` | rejection of ambiguous requests of untrusted clients |
//! | [`phase`] | the lifecycle of the server |

mod accept;
mod age;
mod bind;
mod connection;
mod expiry;
mod frames;
mod http2;
mod idle;
pub(crate) mod interim;
mod linger;
pub(crate) mod paced;
pub mod phase;
pub(crate) mod pulse;
pub(crate) mod reception;
mod renewal;
mod room;
mod screen;
pub(crate) mod session;
mod socket;
mod streams;
mod strict;
#[cfg(test)]
mod tests;
mod tls;
pub(crate) mod token;
mod trouble;
mod watched;

pub use bind::{BoundDoor, Listeners, bind};

use crate::bounds::Bounds;
use crate::changes::{self, PendingChanges};
use crate::doors::admin::AdminDoor;
use crate::doors::admin::api::Api;
use crate::doors::gateway::GatewayDoor;
use crate::doors::grpc::GrpcDoor;
use crate::doors::http::HttpDoor;
use crate::doors::resp::RespDoor;
use crate::serving::Serving;
use crate::tasks::Tasks;
use crate::upkeep::Upkeep;
use accept::open;
use connection::DoorContext;
use phase::Phase;
use reception::DoorConfig;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tidegate::Store;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

/// The result of serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ServeEnd {
    /// Everything that had begun was finished.
    Drained,
    /// This many connections, and changes of administrators, were cut, because they took too long to finish.
    Cut(usize),
}

/// Serves until `shutdown` is ready, then drains.
///
/// With a shutdown delay, `/readyz` and gRPC health fail for that time before anything else happens, so that
/// load balancers have stopped sending by then. Draining stops accepting, makes `/readyz` fail, finishes
/// everything that has begun, and ends. The admin listener closes last, so that draining can be observed.
pub async fn run<S: Store + 'static>(
    listeners: Listeners,
    serving: Serving<S>,
    bounds: Bounds,
    shutdown: impl Future<Output = ()>,
) -> ServeEnd {
    let (lead, watch) = phase::channel();
    let decider = serving.decider();
    let threshold = |name, bound: &BoundDoor, bounds, closes_in| DoorConfig {
        name,
        bounds,
        metrics: decider.metrics().door(name),
        closes_in,
        age: bound.age,
    };

    // Aborted when this is dropped.
    let renewals = Tasks::new();
    let files = renewal::of(&listeners, decider.metrics());
    renewals.spawn(renewal::keep(files, serving.live().cloned()));

    let admin_tasks = Arc::new(Tasks::new());
    let api = serving.live().cloned();
    let changes = Arc::new(PendingChanges::default());
    let api = api.map(|composer| Arc::new(Api::new(composer, bounds, Arc::clone(&changes))));
    let admin = DoorContext {
        threshold: threshold("admin", &listeners.admin, bounds.of_admin(), Phase::Closing),
        door: AdminDoor::new(watch.clone(), decider.clone(), api),
        token: listeners.admin.token.clone(),
    };
    open(listeners.admin, admin, watch.clone(), &admin_tasks, decider);

    let upkeep = Upkeep::start(decider, serving.messenger());

    let tasks = Arc::new(Tasks::new());
    if let Some(bound) = listeners.http {
        let http = DoorContext {
            threshold: threshold("http", &bound, bounds, Phase::Draining),
            door: HttpDoor::new(decider.clone(), bounds),
            token: bound.token.clone(),
        };
        open(bound, http, watch.clone(), &tasks, decider);
    }
    if let Some(bound) = listeners.grpc {
        let grpc = DoorContext {
            threshold: threshold("grpc", &bound, bounds, Phase::Draining),
            door: GrpcDoor::new(decider.clone(), bounds, watch.clone()),
            token: bound.token.clone(),
        };
        open(bound, grpc, watch.clone(), &tasks, decider);
    }
    if let Some(bound) = listeners.resp {
        let threshold = threshold("resp", &bound, bounds, Phase::Draining);
        let resp = RespDoor::new(threshold, decider.clone(), bound.token.clone());
        open(bound, resp, watch.clone(), &tasks, decider);
    }
    if let (Some(bound), Some(gateway)) = (listeners.gateway, serving.gateway()) {
        let gateway = DoorContext {
            threshold: threshold("gateway", &bound, bounds.of_gateway(), Phase::Draining),
            door: GatewayDoor::new(decider.clone(), Arc::clone(gateway)),
            token: bound.token.clone(),
        };
        open(bound, gateway, watch, &tasks, decider);
    }

    lead.enter(Phase::Serving);
    shutdown.await;

    if !bounds.notice_time.is_zero() {
        lead.enter(Phase::Leaving);
        info!(notice = ?bounds.notice_time, "about to drain: not ready any more, and still serving");
        sleep(bounds.notice_time).await;
    }
    lead.enter(Phase::Draining);
    info!(within = ?bounds.drain_time, "draining");
    let by = Instant::now() + bounds.drain_time;
    let end = finish(&tasks, bounds.drain_time).await;
    upkeep.end().await;
    lead.enter(Phase::Closing);
    let cut = changes::close(&changes, &admin_tasks, by).await;
    all_in_all(end, cut)
}

/// Combines the result of serving with the number of changes that were cut.
fn all_in_all(end: ServeEnd, changes: usize) -> ServeEnd {
    match end {
        ServeEnd::Drained if changes == 0 => info!("drained"),
        ServeEnd::Drained => return ServeEnd::Cut(changes),
        ServeEnd::Cut(connections) => {
            warn!(connections, "cut connections that did not finish");
            return ServeEnd::Cut(connections.saturating_add(changes));
        }
    }
    end
}

/// Waits for `tasks` to finish, and aborts those that do not.
async fn finish(tasks: &Tasks, time_max: Duration) -> ServeEnd {
    if timeout(time_max, tasks.finished()).await.is_ok() {
        return ServeEnd::Drained;
    }
    let left = tasks.count();
    tasks.abort();
    tasks.finished().await;
    ServeEnd::Cut(left)
}
