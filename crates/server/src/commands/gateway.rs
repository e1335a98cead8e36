//! `tidegate gateway`: a gateway for a first try, without a file.

use super::{print, serve};
use clap::Args;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tidegate::LimitMode;
use tidegate_config::Config;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_policy::listen::ListenAddress;

/// The first line of a printed configuration.
const HEADING: &str = "# As a file: tidegate serve --config tidegate.yaml\n";

/// The line in which [`Config::gateway_text`] has the listen address of the gateway.
const LISTEN: &str = "  gateway: 127.0.0.1:8000\n";

/// The maximum number of requests that the greeting suggests.
const TRIES_MAX: u64 = 10_000;

/// The arguments of `tidegate gateway`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tidegate gateway --upstream http://127.0.0.1:9001
  tidegate gateway --upstream http://127.0.0.1:9001 --limit '10/s burst 50'
  tidegate gateway --upstream http://127.0.0.1:9001 --print > tidegate.yaml
  tidegate serve --config tidegate.yaml")]
pub struct GatewayArgs {
    /// Upstream URL: http://…, https://…, or h2c://… for HTTP/2 without TLS. Repeat it to balance
    /// the load
    #[arg(long = "upstream", value_name = "URL", required = true)]
    pub upstreams: Vec<String>,
    /// Limit for each client address, such as `10/s burst 50`
    #[arg(long, value_name = "RATE", default_value = "100/s")]
    pub limit: String,
    /// Address and port of the gateway, or unix:PATH. Port 0 takes a free port. Default: 127.0.0.1:8000
    #[arg(long, alias = "gateway", value_name = "ADDRESS")]
    pub listen: Option<ListenAddress>,
    /// Address and port of health and metrics. Default: 127.0.0.1:8090, or a free port if that one is taken
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<ListenAddress>,
    /// Shadow mode: evaluate and count limits, but refuse no request
    #[arg(long)]
    pub shadow: bool,
    /// Seconds to keep serving after SIGTERM or Ctrl-C with /readyz failing, so that load balancers
    /// stop sending requests
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub shutdown_delay: u32,
    /// The old name of `--shutdown-delay`.
    #[arg(long, hide = true, value_parser = serve::renamed_notice)]
    pub notice: Option<std::convert::Infallible>,
    /// Seconds for requests in flight to finish after SIGTERM or Ctrl-C. A second signal stops
    /// immediately
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub drain: u32,
    /// Print the equivalent configuration file and exit
    #[arg(long)]
    pub print: bool,
}

/// Serves until it is stopped, or prints the configuration that it would serve.
///
/// # Errors
///
/// [`Failure::Input`] if a flag is invalid, [`Failure::Runtime`] if a listener cannot be opened.
pub fn run(args: &GatewayArgs) -> Result<(), Failure> {
    let text = text(args)?;
    if args.print {
        return print::line(text.trim_end());
    }
    let mut environment = FlagEnvironment::new();
    environment.set("TIDEGATE_LISTEN_GATEWAY", args.listen.as_ref());
    environment.set("TIDEGATE_LISTEN_ADMIN", args.admin.as_ref());
    environment.set("TIDEGATE_MODE", args.shadow.then_some("shadow"));
    let config = Config::parse(&text, "command line", &environment).map_err(Failure::input)?;
    serve::report_start(&config, "command line", &environment);
    let tries = tries(&config);
    let is_shadow = config.mode == LimitMode::Shadow;
    serve::start(
        config,
        serve::StopTimes::of(args.shutdown_delay, args.drain),
        |listeners| {
            let gateway = listeners.gateway.as_ref()?.tcp()?;
            let addresses = (gateway, listeners.admin.tcp()?);
            Some(greeting(args, addresses, tries, is_shadow))
        },
    )
}

/// Returns the configuration that the flags describe.
fn text(args: &GatewayArgs) -> Result<String, Failure> {
    let text = Config::gateway_text(&args.upstreams, Some(&args.limit)).map_err(Failure::input)?;
    let mut listeners = match &args.listen {
        // In quotes: an IPv6 address begins with a bracket, which YAML reads as a list.
        Some(address) => format!("  gateway: \"{address}\"\n"),
        None => LISTEN.to_owned(),
    };
    if let Some(address) = &args.admin {
        let _ = writeln!(listeners, "  admin: \"{address}\"");
    }
    let mode = if args.shadow { "mode: shadow\n" } else { "" };
    let text = text.replacen(LISTEN, &listeners, 1);
    Ok(format!("{HEADING}{mode}{text}"))
}

/// Returns a number of requests of which some are refused if they are sent at once.
fn tries(config: &Config) -> u64 {
    let limits = config.policies.iter().flat_map(|policy| &policy.limits);
    let mut bands = limits.flat_map(|limit| &limit.bands);
    let room = bands.next().map_or(1, |band| band.quota.capacity());
    room.saturating_mul(2).clamp(2, TRIES_MAX)
}

fn greeting(
    args: &GatewayArgs,
    (gateway, admin): (SocketAddr, SocketAddr),
    tries: u64,
    is_shadow: bool,
) -> String {
    let (gateway, admin) = (reachable(gateway), reachable(admin));
    let mut text = format!("Tidegate forwards http://{gateway} to\n");
    for upstream in &args.upstreams {
        let _ = writeln!(text, "  {upstream}");
    }
    let _ = write!(
        text,
        "\
Each client address may send {limit}; further requests {refused}. Try it:

  curl -i http://{gateway}/
  curl -s -o /dev/null -w '%{{http_code}}\\n' 'http://{gateway}/?[1-{tries}]' | sort | uniq -c

Health and metrics are at http://{admin}/readyz and http://{admin}/metrics.
To use a file:  the same command with --print > tidegate.yaml,
                then tidegate serve --config tidegate.yaml
To stop:        Ctrl-C
",
        limit = args.limit.trim(),
        refused = if is_shadow {
            "pass and are counted (shadow mode)"
        } else {
            "get 429 with Retry-After"
        },
    );
    text
}

/// Returns the address at which a listener is reachable from this machine.
pub(super) fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cli::{Cli, Command};
    use clap::Parser;
    use tidegate_config::NoEnvironment;

    fn arguments(flags: &[&str]) -> GatewayArgs {
        let all = ["tidegate", "gateway"].iter().chain(flags);
        match Cli::parse_from(all).command {
            Some(Command::Gateway(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    fn config(args: &GatewayArgs) -> Config {
        Config::parse(&text(args).unwrap(), "printed", &NoEnvironment).unwrap()
    }

    #[test]
    fn the_printed_config_contains_all_flags() {
        let args = arguments(&[
            "--upstream=http://127.0.0.1:9001",
            "--upstream=https://b.example",
            "--limit=10/s burst 50",
            "--listen=[::1]:8001",
            "--admin=127.0.0.1:8091",
        ]);
        let config = config(&args);
        let gateway = config.listen.gateway.as_ref().unwrap();
        assert_eq!(gateway.address, "[::1]:8001".parse().unwrap());
        assert_eq!(
            config.listen.admin.address,
            "127.0.0.1:8091".parse().unwrap()
        );
        let found = config.routes.find("GET", None, "/").unwrap();
        let upstreams = found.route.upstreams.iter().map(ToString::to_string);
        let expected = ["http://127.0.0.1:9001", "https://b.example:443"];
        assert_eq!(upstreams.collect::<Vec<_>>(), expected);
        assert_eq!(tries(&config), 100);
        assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    }

    #[test]
    fn without_a_limit_each_client_has_a_hundred_a_second() {
        let config = config(&arguments(&["--upstream", "http://127.0.0.1:9001"]));
        let limit = &config.policies[0].limits[0];
        assert_eq!(limit.bands[0].quota.capacity(), 100);
        let gateway = config.listen.gateway.as_ref().unwrap();
        assert_eq!(gateway.address, "127.0.0.1:8000".parse().unwrap());
    }

    #[test]
    fn a_wildcard_listener_is_shown_with_a_reachable_address() {
        let shown = |address: &str| reachable(address.parse().unwrap()).to_string();
        assert_eq!(shown("0.0.0.0:8000"), "127.0.0.1:8000");
        assert_eq!(shown("[::]:8000"), "127.0.0.1:8000");
        assert_eq!(shown("192.0.2.1:8000"), "192.0.2.1:8000");
    }
}
