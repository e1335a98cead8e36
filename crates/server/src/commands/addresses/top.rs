//! `tidegate top addresses`.

use super::{ban_set, counted, load, report, show, with_redis};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;

/// The arguments of `tidegate top`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads without changing anything.

Examples:
  tidegate top addresses --config tidegate.yaml -n 20
  tidegate top addresses --config tidegate.yaml --json")]
pub struct TopArgs {
    /// Table to show
    #[arg(value_enum)]
    pub table: TopTable,
    /// Configuration file
    #[arg(long, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub config: PathBuf,
    /// Rows to show, of this period and of all time
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub count: u16,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A table of `tidegate top`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TopTable {
    /// Client addresses with the most requests, and their bans
    Addresses,
}

/// Shows the busiest addresses.
///
/// # Errors
///
/// [`Failure::Input`] if the configuration does not count addresses, [`Failure::Runtime`] if Redis did not answer.
pub fn top(args: &TopArgs) -> Result<(), Failure> {
    let TopTable::Addresses = args.table;
    let config = load(&args.config, &FlagEnvironment::new())?;
    let counted = counted(&config)?;
    let banned = ban_set(&config, counted).map(|set| (set, config.client.address_rules()));
    with_redis(&config, async |connection| {
        let report = report::look(connection, counted, banned, args.count.into()).await?;
        if !args.json {
            return Ok(show::text(&report));
        }
        serde_json::to_string_pretty(&report).map_err(Failure::runtime)
    })
}
