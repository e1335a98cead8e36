//! The program, an upstream, a collector, and third-party programs.

pub(crate) mod collector;
pub(crate) mod gate;
pub(crate) mod page;
pub(crate) mod programs;
pub(crate) mod upstream;

#[path = "../../it/kit/client.rs"]
#[expect(dead_code, reason = "shared with others, who use all of it")]
pub(crate) mod client;
#[path = "../../it/kit/folder.rs"]
pub(crate) mod folder;
#[path = "../../it/kit/process.rs"]
#[expect(dead_code, reason = "shared with others, who use all of it")]
pub(crate) mod process;

pub(crate) use client::{Client, Reply, get, in_time};
pub(crate) use collector::Collector;
pub(crate) use folder::Folder;
pub(crate) use gate::Gate;
pub(crate) use page::{Samples, page};
pub(crate) use upstream::Upstream;

use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The time after which an event counts as missing.
const PATIENCE: Duration = Duration::from_mins(1);

/// Polls until there is a result.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looked = timeout(PATIENCE, async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    looked
        .await
        .unwrap_or_else(|_| panic!("did not happen within {PATIENCE:?}: {what}"))
}
