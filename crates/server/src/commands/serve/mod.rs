//! `tidegate serve`.

mod greeting;
mod report;

use crate::bounds::Bounds;
use crate::config_file;
use crate::decider::Decider;
use crate::environment::ProcessEnvironment;
use crate::failure::Failure;
use crate::server::{self, End, Listeners};
use crate::signals::Signals;
use clap::Args;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate::BuildError;
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
    /// Where health and metrics listen, whatever the configuration says
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<SocketAddr>,
    /// How many seconds requests may take to finish after SIGTERM or Ctrl-C; a second one ends at
    /// once
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub drain: u32,
}

/// Serves until told to stop.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut environment = ProcessEnvironment::new();
    environment.set("TIDEGATE_LISTEN_HTTP", args.http);
    environment.set("TIDEGATE_LISTEN_ADMIN", args.admin);
    let config = match &args.config {
        Some(path) => config_file::load(path, &environment)?,
        None => {
            Config::parse(Config::BUILT_IN, "built-in", &environment).map_err(Failure::input)?
        }
    };
    report::configuration(&config, args.config.as_deref(), &environment);
    let bounds = Bounds {
        drain_time: Duration::from_secs(args.drain.into()),
        ..Bounds::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start threads: {error}")))?;
    let served = runtime.block_on(serve(config, args.config.is_none(), bounds));
    // A page of metrics that is still being written is no reason to stay.
    runtime.shutdown_background();
    served
}

async fn serve(config: Config, is_built_in: bool, bounds: Bounds) -> Result<(), Failure> {
    // Before anything can fail slowly, so that a signal during the start is not lost.
    let mut signals = Signals::listen()
        .map_err(|error| Failure::runtime(format!("cannot listen to signals: {error}")))?;
    let listen = config.listen.clone();
    let decider = Decider::start(config).await.map_err(not_started)?;
    let listeners = server::bind(&listen).await?;
    report::listening(&listeners);
    if is_built_in {
        greet(&listeners);
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
        let end = server::run(listeners, decider.clone(), bounds, stopping).await;
        decider.leave().await;
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
    }
}

/// A store that is not there is nobody's spelling mistake.
fn not_started(error: BuildError) -> Failure {
    match error {
        BuildError::Unreachable { .. } => Failure::runtime(error),
        error => Failure::input(error),
    }
}

/// For the person who tries it out; if nobody reads it, that is no reason not to serve.
fn greet(listeners: &Listeners) {
    if let Some(http) = &listeners.http {
        let text = greeting::text(http.address, listeners.admin.address);
        writeln!(io::stdout(), "{text}").ok();
    }
}
