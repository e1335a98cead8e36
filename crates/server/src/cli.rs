//! The command line.

use crate::commands::{
    addresses, doctor, gateway, import, inspect, reset, schema, serve, simulate, token, validate,
};
use crate::telemetry::logs::LogFormat;
use clap::{Args, Parser, Subcommand};

/// Decides whether a request may pass: rate limiting over HTTP and as a reverse proxy, from one
/// configuration file.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tidegate                                      serve a small built-in policy, to try it out
  tidegate serve tidegate.yaml                  serve your own
  tidegate gateway --upstream http://127.0.0.1:9001 --limit 100/s
  tidegate validate tidegate.yaml               check it first: every error at once
  tidegate simulate --config tidegate.yaml --trace trace.jsonl
  tidegate serve --envoy-config ratelimit/config  what envoyproxy/ratelimit serves

Without a subcommand, tidegate serves."
)]
pub struct Cli {
    /// The subcommand. Default: `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The arguments of `serve`, for when no subcommand is given.
    #[command(flatten)]
    pub serve: serve::ServeArgs,
    /// The options for logging.
    #[command(flatten)]
    pub log: LogArgs,
}

/// The options for logging.
#[derive(Args, Debug)]
pub struct LogArgs {
    /// How much to log: error, warn, info, debug, trace, or a list such as `info,hyper=debug`.
    /// Default: info
    #[arg(
        long = "log",
        env = "TIDEGATE_LOG",
        value_name = "LEVEL",
        global = true
    )]
    pub level: Option<String>,
    /// How to write it: as lines of text, as JSON, or text on a terminal and JSON elsewhere. Default:
    /// auto
    #[arg(
        // `simulate` has its own format.
        id = "log-format",
        long = "log-format",
        env = "TIDEGATE_LOG_FORMAT",
        value_name = "FORMAT",
        global = true
    )]
    pub format: Option<LogFormat>,
}

/// A subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve decisions over HTTP (the default)
    Serve(serve::ServeFileArgs),
    /// Pass requests on to upstreams, each client within a limit, without a configuration
    Gateway(gateway::GatewayArgs),
    /// Check a configuration and explain it: every error at once, each with its line
    Validate(validate::ValidateArgs),
    /// Decide a trace in virtual time: a line of JSON in, a decision out
    Simulate(simulate::SimulateArgs),
    /// Translate the configuration of another limiter
    #[command(about = import::about())]
    Import(import::ImportArgs),
    /// Print the JSON Schema of the configuration, for editors
    Schema(schema::SchemaArgs),
    /// Look into a bucket that is kept in Redis
    Inspect(inspect::InspectArgs),
    /// Make buckets that are kept in Redis as good as new
    Reset(reset::ResetArgs),
    /// Show who asks most, by address; keep somebody out, or let somebody in again
    Addresses(addresses::AddressesArgs),
    /// Make a token for the admin API, and the hash by which the configuration knows it
    Token(token::TokenArgs),
    /// Examine the Redis that the configuration names: what would break a promise
    Doctor(doctor::DoctorArgs),
}
