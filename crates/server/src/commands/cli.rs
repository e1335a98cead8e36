//! The command line.

use super::{
    addresses, budget, check, completions, doctor, gateway, healthcheck, import, init, inspect,
    man, reset, schema, serve, simulate, token, validate,
};
use crate::logs::LogFormat;
use clap::{Args, ColorChoice, Parser, Subcommand};

/// A rate limiter: next to your proxy, as the proxy, or as a service
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    max_term_width = 80,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tidegate                          serve a small built-in policy, to try it out
  tidegate init                     write a configuration of your own
  tidegate validate tidegate.yaml   check it
  tidegate serve tidegate.yaml      serve it
  tidegate check --ip 192.0.2.1     ask the server
  tidegate gateway --upstream http://127.0.0.1:9001 --limit 100/s

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
    /// Data of time zones: `bundled`, `system`, or a directory such as `/usr/share/zoneinfo`.
    /// Default: bundled
    #[arg(long, env = "TIDEGATE_ZONE_DATA", value_name = "DATA", global = true)]
    pub zone_data: Option<String>,
    /// Colours of output and logs. `auto`: on a terminal, unless the variable `NO_COLOR` is set
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto, global = true)]
    pub color: ColorChoice,
}

/// The options for logging.
#[derive(Args, Debug)]
pub struct LogArgs {
    /// Log level: error, warn, info, debug, trace, or a list such as `info,hyper=debug`.
    /// Default: info
    #[arg(
        long = "log",
        env = "TIDEGATE_LOG",
        value_name = "LEVEL",
        global = true
    )]
    pub level: Option<String>,
    /// Log format: text, json, or auto (text on a terminal, else JSON). Default: auto
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
    /// Run a rate-limiting reverse proxy without a configuration file
    Gateway(gateway::GatewayArgs),
    /// Write a configuration from a few choices, and show the next commands
    Init(init::InitArgs),
    /// Check a configuration and explain it; reports all errors with line numbers
    Validate(validate::ValidateArgs),
    /// Ask a running server to check a request
    Check(check::CheckArgs),
    /// Replay a trace or access log against a configuration
    Simulate(simulate::SimulateArgs),
    /// Import the configuration of another rate limiter
    #[command(about = import::about())]
    Import(import::ImportArgs),
    /// Print the JSON Schema of the configuration, for editors
    Schema(schema::SchemaArgs),
    /// Show a bucket stored in Redis
    Inspect(inspect::InspectArgs),
    /// Show what a subject has used and has left, of every limit
    Budget(budget::BudgetArgs),
    /// Reset buckets stored in Redis
    Reset(reset::ResetArgs),
    /// List the busiest client addresses
    Top(addresses::TopArgs),
    /// Ban a client address
    Ban(addresses::BanArgs),
    /// Unban a client address
    Unban(addresses::UnbanArgs),
    /// The old name of `top`, `ban` and `unban`
    #[command(hide = true)]
    Addresses(addresses::OldArgs),
    /// Create a token for the admin API and its hash for the configuration
    Token(token::TokenArgs),
    /// Check that Redis is set up safely
    Doctor(doctor::DoctorArgs),
    /// Ask a running server whether it is ready, for containers and supervisors
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write all pages into a folder
    Man(man::ManArgs),
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::{Command, CommandFactory};

    /// The width of a typical terminal.
    const WIDTH: usize = 80;

    /// Collects the lines that are too wide, and those that would be wrapped: wrapping breaks
    /// examples.
    fn wide_lines(command: &mut Command, found: &mut Vec<String>) {
        let mut texts = vec![command.render_help(), command.render_long_help()];
        texts.extend(command.get_after_help().cloned());
        for text in texts {
            for line in text.to_string().lines() {
                if line.chars().count() > WIDTH {
                    found.push(format!("{}: {line}", command.get_name()));
                }
            }
        }
        for subcommand in command.get_subcommands_mut() {
            wide_lines(subcommand, found);
        }
    }

    #[test]
    fn help_fits_a_terminal() {
        let mut command = Cli::command();
        command.build();
        let mut found = Vec::new();
        wide_lines(&mut command, &mut found);
        assert!(
            found.is_empty(),
            "wider than {WIDTH}:\n{}",
            found.join("\n")
        );
    }
}
