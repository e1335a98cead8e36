//! `tidegate serve`.

mod greeting;
mod reload;
mod report;

pub(super) use report::configuration as report_start;

use crate::commands::import::EnvoyArgs;
use crate::open_files;
use crate::peer::Peer;
use crate::program::{self, ServeEnd};
use crate::signals::{Reloads, Signals};
use clap::Args;
use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate::LimitMode;
use tidegate_config::Config;
use tidegate_config::Setting;
use tidegate_control::failure::Failure;
use tidegate_control::live::{self, Composer, ConfigFiles, InitialConfig};
use tidegate_control::running::ServerState;
use tidegate_net::Listeners;
use tidegate_net::bounds::Bounds;
use tidegate_policy::listen::ListenAddress;
use tidegate_policy::text::counted;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tracing::info;

/// The variable that names the configuration.
const CONFIG: &str = "TIDEGATE_CONFIG";

/// Arguments of `tidegate serve`.
#[derive(Args, Debug)]
pub struct ServeFileArgs {
    /// Configuration file, as with --config
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// All other arguments, which `tidegate` without a subcommand takes as well.
    #[command(flatten)]
    pub args: ServeArgs,
}

impl ServeFileArgs {
    /// Returns the arguments with the file as `config`. A file overrides the variable; with `--config` it
    /// is an error.
    ///
    /// # Errors
    ///
    /// [`Failure::Input`] if the file is set in both ways.
    pub fn into_args(self) -> Result<ServeArgs, Failure> {
        let Self { file, mut args } = self;
        let Some(file) = file else {
            return Ok(args);
        };
        let config = args.config.replace(file);
        let is_flag = |config: &PathBuf| env::var_os(CONFIG).as_deref() != Some(config.as_os_str());
        if config.is_some_and(|config| is_flag(&config)) {
            return Err(Failure::input(
                "the configuration file is set twice: as FILE and with --config",
            ));
        }
        Ok(args)
    }
}

/// The arguments of `tidegate serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Configuration file. Default: a small built-in policy
    #[arg(long, env = CONFIG, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Files of envoyproxy/ratelimit.
    #[command(flatten)]
    pub envoy: EnvoyArgs,
    /// Address and port of the HTTP API, or unix:PATH for a unix socket; overrides the configuration.
    /// :8080 is every address, localhost:8080 this machine only, and port 0 a free port
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<ListenAddress>,
    /// Address and port of Envoy's rate limit service, or unix:PATH; overrides the configuration
    #[arg(long, value_name = "ADDRESS")]
    pub grpc: Option<ListenAddress>,
    /// Address and port of the Redis protocol, or unix:PATH; overrides the configuration
    #[arg(long, value_name = "ADDRESS")]
    pub resp: Option<ListenAddress>,
    /// Address and port of the gateway, or unix:PATH; overrides the configuration. It needs routes
    #[arg(long, value_name = "ADDRESS")]
    pub gateway: Option<ListenAddress>,
    /// Address and port of health and metrics, or unix:PATH; overrides the configuration
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<ListenAddress>,
    /// Shadow mode: evaluate and count limits, guards, blocks and bans, but refuse no request; overrides
    /// the configuration
    #[arg(long)]
    pub shadow: bool,
    /// Seconds to keep serving after SIGTERM or Ctrl-C with /readyz failing, so that load balancers
    /// stop sending requests
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub shutdown_delay: u32,
    /// The old name of `--shutdown-delay`.
    #[arg(long, hide = true, value_parser = renamed_notice)]
    pub notice: Option<std::convert::Infallible>,
    /// Seconds for requests in flight and admin changes to finish after SIGTERM or Ctrl-C. A second
    /// signal stops immediately
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub drain: u32,
    /// Reload files only on SIGHUP, not when they change
    #[arg(long)]
    pub no_watch: bool,
}

impl ServeArgs {
    /// Returns the location of the configuration, the flags that override it, and the settings of `peer`,
    /// which are defaults.
    fn ground(&self, peer: &Peer) -> Result<ConfigFiles, Failure> {
        let flags = [
            ("TIDEGATE_LISTEN_HTTP", &self.http),
            ("TIDEGATE_LISTEN_GRPC", &self.grpc),
            ("TIDEGATE_LISTEN_RESP", &self.resp),
            ("TIDEGATE_LISTEN_GATEWAY", &self.gateway),
            ("TIDEGATE_LISTEN_ADMIN", &self.admin),
        ];
        let flags = flags.into_iter().filter_map(|(name, address)| {
            let address = address.as_ref()?;
            Some((name, address.to_string()))
        });
        let shadow = self.shadow.then(|| ("TIDEGATE_MODE", "shadow".to_owned()));
        let options = self.envoy.options(peer);
        let folder = self.envoy.files().map(Path::to_path_buf);
        let defaults = peer.settings.iter().map(|setting| Setting {
            replaces_text: self.config.is_none(),
            ..setting.clone()
        });
        Ok(ConfigFiles {
            file: self.config.clone(),
            envoy: folder.map(|folder| (folder, options)),
            source: self.envoy.source(peer, true)?,
            flags: flags.chain(shadow).collect(),
            defaults: defaults.collect(),
            is_watched: !self.no_watch,
        })
    }
}

/// Serves until it is stopped.
pub(super) fn run(args: &ServeArgs, peer: &Peer) -> Result<(), Failure> {
    peer.warn();
    let ground = args.ground(peer)?;
    let (name, is_built_in) = (ground.name(), ground.is_built_in());
    let runtime = runtime()?;
    let (config, begun) = runtime.block_on(live::begin(ground))?;
    report::started(&config, &name);
    report::variables(begun.variables());
    peer.warn_of_overridden(begun.variables());
    report::key_names(&config);
    report::warnings(&config);
    // The greeting shows how a request is refused.
    let greets = is_built_in && config.mode == LimitMode::Enforce;
    let greeting = |listeners: &Listeners| {
        let http = listeners.http.as_ref().filter(|_| greets)?;
        Some(greeting::text(http.tcp()?, listeners.admin.tcp()?))
    };
    let stop = StopTimes::of(args.shutdown_delay, args.drain);
    start_in(runtime, Some(begun), config, stop, greeting)
}

/// Rejects `--notice` and names its successor.
pub(super) fn renamed_notice(_: &str) -> Result<std::convert::Infallible, &'static str> {
    Err("use `--shutdown-delay SECONDS`")
}

/// The times of a shutdown.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopTimes {
    delay: Duration,
    drain: Duration,
}

impl StopTimes {
    /// Creates them from the seconds of the shutdown delay, and the seconds in which requests may finish.
    pub(super) fn of(delay: u32, drain: u32) -> Self {
        Self {
            delay: Duration::from_secs(delay.into()),
            drain: Duration::from_secs(drain.into()),
        }
    }
}

/// Serves `config` until it is stopped, and then shuts down with the times of `stop`. `greeting` returns
/// a text for a person who tries it out.
pub(super) fn start(
    config: Config,
    stop: StopTimes,
    greeting: impl FnOnce(&Listeners) -> Option<String>,
) -> Result<(), Failure> {
    start_in(runtime()?, None, config, stop, greeting)
}

fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start threads: {error}")))
}

/// Serves like [`start`], for a `config` that may change.
fn start_in(
    runtime: Runtime,
    begun: Option<InitialConfig>,
    config: Config,
    stop: StopTimes,
    greeting: impl FnOnce(&Listeners) -> Option<String>,
) -> Result<(), Failure> {
    let usual = Bounds {
        shutdown_delay: stop.delay,
        drain_time: stop.drain,
        ..Bounds::default()
    };
    let descriptors = open_files::raise();
    let bounds = usual.within(descriptors.unwrap_or(u64::MAX), &config.listen);
    report::bounds(descriptors, &bounds, &config.listen);
    let served = runtime.block_on(serve(begun, config, greeting, bounds));
    // A metrics page that is still being written does not delay the exit.
    runtime.shutdown_background();
    served
}

async fn serve(
    begun: Option<InitialConfig>,
    config: Config,
    greeting: impl FnOnce(&Listeners) -> Option<String>,
    bounds: Bounds,
) -> Result<(), Failure> {
    // Before anything can fail slowly, so that a signal during the start is not lost.
    let deaf = |error| Failure::runtime(format!("cannot listen to signals: {error}"));
    let mut signals = Signals::listen().map_err(deaf)?;
    let reloads = Reloads::listen().map_err(deaf)?;
    let listen = config.listen.clone();
    let serving = ServerState::start(config).await?;
    let composer = begun.map(|begun| Composer::new(begun, serving.clone()));
    let listeners = tidegate_net::bind(&listen).await?;
    report::listening(&listeners);
    if let Some(text) = greeting(&listeners) {
        // A failure to write the greeting does not matter.
        writeln!(io::stdout(), "{text}").ok();
    }
    let (stop, stopped) = oneshot::channel();
    let stopping = async {
        // The sender is dropped only together with all of this.
        stopped.await.ok();
    };
    let signalled = async {
        let signal = signals.next().await;
        info!(event = "shutdown_started", signal, "shutting down");
        stop.send(()).ok();
        signals.next().await
    };
    let served = async {
        let live = composer.clone();
        let end = program::run(listeners, serving.clone(), live, bounds, stopping).await;
        serving.decider().leave().await;
        end
    };
    tokio::select! {
        end = served => match end {
            ServeEnd::Drained => Ok(()),
            ServeEnd::Cut(count) => Err(Failure::runtime(format!(
                "{} not finish within {:?} and were aborted",
                counted(count, "connection or change did", "connections or changes did"),
                bounds.drain_time
            ))),
        },
        signal = signalled => {
            Err(Failure::runtime(format!("stopped immediately by a second signal, {signal}")))
        }
        never = reload::on_signal(reloads, composer.as_ref()) => match never {},
        () = reload::keep(composer.as_ref()) => Ok(()),
    }
}
