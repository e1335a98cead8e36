//! SIGHUP: the configuration is read again.

use super::{ServeArgs, report};
use crate::config_file;
use crate::environment::ProcessEnvironment;
use crate::failure::Failure;
use crate::serving::Serving;
use crate::signals::Reloads;
use std::convert::Infallible;
use std::path::Path;
use tidegate_policy::Config;
use tracing::{error, info, warn};

/// Where the configuration came from, and the flags that go before it.
#[derive(Debug)]
pub(super) struct File<'a> {
    path: &'a Path,
    args: &'a ServeArgs,
}

impl<'a> File<'a> {
    /// The file that `args` name, if they do.
    pub(super) fn of(args: &'a ServeArgs) -> Option<Self> {
        let path = args.config.as_deref()?;
        Some(Self { path, args })
    }
}

/// Reads the file again whenever told to, with the same flags and variables, and serves what it says.
/// Whatever is wrong with it goes to the log, and what is served goes on.
pub(super) async fn on_signal(
    mut reloads: Reloads,
    file: Option<&File<'_>>,
    serving: &Serving,
) -> Infallible {
    loop {
        reloads.next().await;
        match file {
            Some(file) => reload(file.path, &file.args.environment(), serving),
            None => warn!(
                signal = "SIGHUP",
                "there is nothing to read again: this was started without --config FILE"
            ),
        }
    }
}

fn reload(file: &Path, environment: &ProcessEnvironment, serving: &Serving) {
    let configuration = file.display().to_string();
    info!(
        signal = "SIGHUP",
        configuration, "told to read the configuration again"
    );
    let Some(config) = load(file, environment) else {
        serving.reload_refused();
        return refused(&configuration);
    };
    report::oddities(&config, environment);
    if let Err(failure) = serving.reload(config) {
        error!("{failure}");
        refused(&configuration);
    }
}

/// The configuration in `file`; `None` once the log has heard of everything that is wrong with it.
fn load(file: &Path, environment: &ProcessEnvironment) -> Option<Config> {
    let text = config_file::read(file).inspect_err(|failure: &Failure| error!("{failure}"));
    let parsed = Config::parse(&text.ok()?, &file.display().to_string(), environment);
    let parsed = parsed.inspect_err(|errors| {
        for problem in errors.problems() {
            error!("{}", problem.to_string().trim_end());
        }
        let untold = errors.count().saturating_sub(errors.problems().len());
        if untold > 0 {
            error!("and {untold} more errors");
        }
    });
    parsed.ok()
}

fn refused(configuration: &str) {
    error!(
        configuration,
        "the configuration was refused: what was served before is served on"
    );
}
