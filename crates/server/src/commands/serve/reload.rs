//! What is served may change: by itself, and when somebody says so.

use crate::live::Composer;
use crate::signals::Reloads;
use std::convert::Infallible;
use std::future::pending;
use tracing::{info, warn};

/// Reads the files and sources again whenever told to by SIGHUP, and serves what they say. Whatever is
/// wrong with them goes to the log, and what is served goes on.
pub(super) async fn on_signal(mut reloads: Reloads, composer: Option<&Composer>) -> Infallible {
    loop {
        reloads.next().await;
        let Some(composer) = composer.filter(|it| it.can_reload()) else {
            warn!(
                signal = "SIGHUP",
                "there is nothing to read again: this was started without --config FILE"
            );
            continue;
        };
        info!(
            signal = "SIGHUP",
            configuration = composer.configuration(),
            "told to read the configuration again"
        );
        // What is wrong with it has been told.
        composer.reload().await.ok();
    }
}

/// Keeps what is served up to date with where it comes from, for as long as it is served.
pub(super) async fn keep(composer: Option<&Composer>) {
    match composer {
        Some(composer) => composer.clone().run().await,
        None => pending().await,
    }
}
