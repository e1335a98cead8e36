//! What each subcommand does: one file each.

pub mod addresses;
pub(crate) mod bucket;
pub mod doctor;
pub mod gateway;
pub mod import;
pub mod inspect;
pub(crate) mod plans;
mod print;
mod redis_store;
pub mod reset;
pub mod schema;
pub mod serve;
pub mod simulate;
pub mod token;
pub mod validate;
mod who;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::telemetry::logs;

/// Does what the command line says.
pub fn run(cli: Cli) -> Result<(), Failure> {
    logs::start(level(&cli), cli.log.format)?;
    match cli.command {
        None => serve::run(&cli.serve),
        Some(Command::Serve(args)) => serve::run(&args.into_args()?),
        Some(Command::Gateway(args)) => gateway::run(&args),
        Some(Command::Validate(args)) => validate::run(&args),
        Some(Command::Simulate(args)) => simulate::run(args),
        Some(Command::Import(args)) => import::run(&args),
        Some(Command::Schema(args)) => schema::run(&args),
        Some(Command::Inspect(args)) => inspect::run(&args),
        Some(Command::Reset(args)) => reset::run(&args),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Addresses(args)) => addresses::run(&args),
        Some(Command::Token(args)) => token::run(&args),
    }
}

/// How much to log. Commands that talk to Redis once say themselves what came of it.
fn level(cli: &Cli) -> &str {
    let talks_once = matches!(
        cli.command,
        Some(Command::Inspect(_) | Command::Reset(_) | Command::Doctor(_) | Command::Addresses(_))
    );
    match cli.log.level.as_str() {
        "info" if talks_once => "info,tidegate_redis=off",
        level => level,
    }
}
