//! SIGHUP: the configuration is read again.

use super::{ServeArgs, report};
use crate::config_source::{Source, Unusable};
use crate::environment::ProcessEnvironment;
use crate::serving::Serving;
use crate::signals::Reloads;
use std::convert::Infallible;
use tidegate_policy::{Config, ConfigErrors};
use tracing::{error, info, warn};

/// Where the configuration came from, and the flags that go before it.
#[derive(Debug)]
pub(super) struct Again<'a> {
    source: Source<'a>,
    args: &'a ServeArgs,
}

impl<'a> Again<'a> {
    /// The files that `args` name, if they do.
    pub(super) fn of(args: &'a ServeArgs) -> Option<Self> {
        let source = args.source();
        (!source.is_built_in()).then_some(Self { source, args })
    }
}

/// Reads the files again whenever told to, with the same flags and variables, and serves what they say.
/// Whatever is wrong with them goes to the log, and what is served goes on.
pub(super) async fn on_signal(
    mut reloads: Reloads,
    again: Option<&Again<'_>>,
    serving: &Serving,
) -> Infallible {
    loop {
        reloads.next().await;
        match again {
            Some(again) => reload(again.source, &again.args.environment(), serving),
            None => warn!(
                signal = "SIGHUP",
                "there is nothing to read again: this was started without --config FILE"
            ),
        }
    }
}

fn reload(source: Source<'_>, environment: &ProcessEnvironment, serving: &Serving) {
    let configuration = source.name();
    info!(
        signal = "SIGHUP",
        configuration, "told to read the configuration again"
    );
    let Some(config) = load(source, environment) else {
        serving.reload_refused();
        return refused(&configuration);
    };
    report::oddities(&config, environment);
    if let Err(failure) = serving.reload(config) {
        error!("{failure}");
        refused(&configuration);
    }
}

/// What `source` says now; `None` once the log has heard of everything that is wrong with it.
fn load(source: Source<'_>, environment: &ProcessEnvironment) -> Option<Config> {
    match source.load(environment) {
        Ok((config, notes)) => {
            report::notes(&notes);
            return Some(config);
        }
        Err(Unusable::Unread(failure)) => error!("{failure}"),
        Err(Unusable::Wrong(errors)) => complain(&errors),
    }
    None
}

fn complain(errors: &ConfigErrors) {
    for problem in errors.problems() {
        error!("{}", problem.to_string().trim_end());
    }
    let untold = errors.count().saturating_sub(errors.problems().len());
    if untold > 0 {
        error!("and {untold} more errors");
    }
}

fn refused(configuration: &str) {
    error!(
        configuration,
        "the configuration was refused: what was served before is served on"
    );
}
