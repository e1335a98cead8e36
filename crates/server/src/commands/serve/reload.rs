//! Configuration changes while it is served: automatically, and on request.

use crate::signals::Reloads;
use std::convert::Infallible;
use std::future::pending;
use tidegate_control::live::Composer;
use tracing::{info, warn};

/// Reloads the files and sources on SIGHUP. Errors are logged, and the previous configuration stays.
pub(super) async fn on_signal(mut reloads: Reloads, composer: Option<&Composer>) -> Infallible {
    loop {
        reloads.next().await;
        let Some(composer) = composer.filter(|it| it.can_reload()) else {
            warn!(
                event = "reload_ignored",
                signal = "SIGHUP",
                "nothing to reload: started without --config FILE"
            );
            continue;
        };
        info!(
            event = "reload_requested",
            signal = "SIGHUP",
            configuration = composer.configuration(),
            "reloading the config"
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
