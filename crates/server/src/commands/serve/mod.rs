//! `tidegate serve`.

mod greeting;
mod reload;
mod report;

pub(super) use report::configuration as report_start;

use crate::bounds::Bounds;
use crate::config_file;
use crate::environment::ProcessEnvironment;
use crate::failure::Failure;
use crate::server::{self, End, Listeners};
use crate::serving::Serving;
use crate::signals::{Reloads, Signals};
use clap::Args;
use reload::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_policy::Config;
use tokio::sync::oneshot;
use tracing::info;

/// What to serve.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The configuration; without one, a small built-in policy
    #[arg(long, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the HTTP API listens, whatever the configuration says; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
    /// Where the gateway listens, whatever the configuration says; it needs routes
    #[arg(long, value_name = "ADDRESS")]
    pub gateway: Option<SocketAddr>,
    /// Where health and metrics listen, whatever the configuration says
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<SocketAddr>,
    /// How many seconds requests may take to finish after SIGTERM or Ctrl-C; a second one ends at
    /// once
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub drain: u32,
}

impl ServeArgs {
    /// Where a configuration looks things up.
    fn environment(&self) -> ProcessEnvironment {
        let mut environment = ProcessEnvironment::new();
        environment.set("TIDEGATE_LISTEN_HTTP", self.http);
        environment.set("TIDEGATE_LISTEN_GATEWAY", self.gateway);
        environment.set("TIDEGATE_LISTEN_ADMIN", self.admin);
        environment
    }
}

/// Serves until told to stop.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let environment = args.environment();
    let config = match &args.config {
        Some(path) => config_file::load(path, &environment)?,
        None => {
            Config::parse(Config::BUILT_IN, "built-in", &environment).map_err(Failure::input)?
        }
    };
    report_start(&config, args.config.as_deref(), &environment);
    let is_built_in = args.config.is_none();
    let greeting = |listeners: &Listeners| {
        let http = listeners.http.as_ref().filter(|_| is_built_in)?;
        Some(greeting::text(http.address, listeners.admin.address))
    };
    let file = File::of(args);
    start_from(file.as_ref(), config, args.drain, greeting)
}

/// Serves `config` until told to stop, and then for `drain` seconds at most. What `greeting` says is
/// for the person who tries it out.
pub(super) fn start(
    config: Config,
    drain: u32,
    greeting: impl FnOnce(&Listeners) -> Option<String>,
) -> Result<(), Failure> {
    start_from(None, config, drain, greeting)
}

/// The same for a `config` that came from a file, which can be read again.
fn start_from(
    file: Option<&File<'_>>,
    config: Config,
    drain: u32,
    greeting: impl FnOnce(&Listeners) -> Option<String>,
) -> Result<(), Failure> {
    let bounds = Bounds {
        drain_time: Duration::from_secs(drain.into()),
        ..Bounds::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start threads: {error}")))?;
    let served = runtime.block_on(serve(file, config, greeting, bounds));
    // A page of metrics that is still being written is no reason to stay.
    runtime.shutdown_background();
    served
}

async fn serve(
    file: Option<&File<'_>>,
    config: Config,
    greeting: impl FnOnce(&Listeners) -> Option<String>,
    bounds: Bounds,
) -> Result<(), Failure> {
    // Before anything can fail slowly, so that a signal during the start is not lost.
    let deaf = |error| Failure::runtime(format!("cannot listen to signals: {error}"));
    let mut signals = Signals::listen().map_err(deaf)?;
    let reloads = Reloads::listen().map_err(deaf)?;
    let listen = config.listen.clone();
    let serving = Serving::start(config).await?;
    let listeners = server::bind(&listen).await?;
    report::listening(&listeners);
    if let Some(text) = greeting(&listeners) {
        // If nobody reads it, that is no reason not to serve.
        writeln!(io::stdout(), "{text}").ok();
    }
    let (stop, stopped) = oneshot::channel();
    let stopping = async {
        // The sender is dropped only together with all of this.
        stopped.await.ok();
    };
    let signalled = async {
        let signal = signals.next().await;
        info!(signal, "told to stop");
        stop.send(()).ok();
        signals.next().await
    };
    let served = async {
        let end = server::run(listeners, serving.clone(), bounds, stopping).await;
        serving.decider().leave().await;
        end
    };
    tokio::select! {
        end = served => match end {
            End::Drained => Ok(()),
            End::Cut(connections) => Err(Failure::runtime(format!(
                "{connections} connections had not finished after {:?}, and were cut",
                bounds.drain_time
            ))),
        },
        signal = signalled => {
            Err(Failure::runtime(format!("stopped at once by a second signal, {signal}")))
        }
        never = reload::on_signal(reloads, file, &serving) => match never {},
    }
}
