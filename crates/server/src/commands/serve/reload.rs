//! Configuration changes while it is served: automatically, and on request.

use crate::live::Composer;
use crate::signals::Reloads;
use std::convert::Infallible;
use std::future::pending;
use tracing::{info, warn};

/// Reloads the files and sources on SIGHUP. Errors are logged, and the previous configuration stays.
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
        // Errors have been logged.
        composer.reload().await.ok();
    }
}

/// Keeps the configuration up to date with its sources, as long as it is served.
pub(super) async fn keep(composer: Option<&Composer>) {
    match composer {
        Some(composer) => composer.clone().run().await,
        None => pending().await,
    }
}
