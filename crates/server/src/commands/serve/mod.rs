//! `tidegate serve`.

mod greeting;
mod reload;
mod report;

pub(super) use report::configuration as report_start;

use crate::bounds::Bounds;
use crate::commands::import::EnvoyArgs;
use crate::config_source::Source;
use crate::environment::ProcessEnvironment;
use crate::failure::Failure;
use crate::server::{self, End, Listeners};
use crate::serving::Serving;
use crate::signals::{Reloads, Signals};
use clap::Args;
use reload::Again;
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
    /// What envoyproxy/ratelimit serves.
    #[command(flatten)]
    pub envoy: EnvoyArgs,
    /// Where the HTTP API listens, whatever the configuration says; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
    /// Where Envoy's rate limit service listens, whatever the configuration says
    #[arg(long, value_name = "ADDRESS")]
    pub grpc: Option<SocketAddr>,
    /// Where the Redis protocol listens, whatever the configuration says
    #[arg(long, value_name = "ADDRESS")]
    pub resp: Option<SocketAddr>,
    /// Where the gateway listens, whatever the configuration says; it needs routes
    #[arg(long, value_name = "ADDRESS")]
    pub gateway: Option<SocketAddr>,
    /// Where health and metrics listen, whatever the configuration says
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<SocketAddr>,
    /// How many seconds to go on serving after SIGTERM or Ctrl-C, while health checks are told that it is
    /// about to stop: as long as balancers take to notice
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub notice: u32,
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
        environment.set("TIDEGATE_LISTEN_GRPC", self.grpc);
        environment.set("TIDEGATE_LISTEN_RESP", self.resp);
        environment.set("TIDEGATE_LISTEN_GATEWAY", self.gateway);
        environment.set("TIDEGATE_LISTEN_ADMIN", self.admin);
        environment
    }

    /// Where the configuration comes from.
    fn source(&self) -> Source<'_> {
        self.envoy.source(self.config.as_deref())
    }
}

/// Serves until told to stop.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let environment = args.environment();
    let source = args.source();
    let (config, notes) = source.load(&environment).map_err(Failure::from)?;
    report_start(&config, &source.name(), &environment);
    report::notes(&notes);
    let greeting = |listeners: &Listeners| {
        let http = listeners.http.as_ref().filter(|_| source.is_built_in())?;
        Some(greeting::text(http.address, listeners.admin.address))
    };
    let again = Again::of(args);
    start_from(
        again.as_ref(),
        config,
        Stop::of(args.notice, args.drain),
        greeting,
    )
}

/// How to stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    notice: Duration,
    drain: Duration,
}

impl Stop {
    /// With so many seconds of notice, and so many in which requests may finish.
    pub(super) fn of(notice: u32, drain: u32) -> Self {
        Self {
            notice: Duration::from_secs(notice.into()),
            drain: Duration::from_secs(drain.into()),
        }
    }
}

/// Serves `config` until told to stop, and then as `stop` says. What `greeting` says is
/// for the person who tries it out.
pub(super) fn start(
    config: Config,
    stop: Stop,
    greeting: impl FnOnce(&Listeners) -> Option<String>,
) -> Result<(), Failure> {
    start_from(None, config, stop, greeting)
}

/// The same for a `config` that came from files, which can be read again.
fn start_from(
    again: Option<&Again<'_>>,
    config: Config,
    stop: Stop,
    greeting: impl FnOnce(&Listeners) -> Option<String>,
) -> Result<(), Failure> {
    let bounds = Bounds {
        notice_time: stop.notice,
        drain_time: stop.drain,
        ..Bounds::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start threads: {error}")))?;
    let served = runtime.block_on(serve(again, config, greeting, bounds));
    // A page of metrics that is still being written is no reason to stay.
    runtime.shutdown_background();
    served
}

async fn serve(
    again: Option<&Again<'_>>,
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
        never = reload::on_signal(reloads, again, &serving) => match never {},
    }
}
