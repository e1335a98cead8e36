//! The subcommands: one file each.

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
use crate::peer::Peer;
use crate::telemetry::logs;

/// Runs the command of the command line.
pub fn run(cli: Cli) -> Result<(), Failure> {
    let peer = match &cli.command {
        None => cli.serve.peer()?,
        Some(Command::Serve(args)) => args.args.peer()?,
        Some(_) => Peer::default(),
    };
    let format = cli.log.format.or(peer.log_format);
    logs::start(level(&cli, &peer), format.unwrap_or_default())?;
    match cli.command {
        None => serve::run(&cli.serve, &peer),
        Some(Command::Serve(args)) => serve::run(&args.into_args()?, &peer),
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

/// Returns the log level. Commands that talk to Redis once print their results themselves.
fn level<'a>(cli: &'a Cli, peer: &Peer) -> &'a str {
    let talks_once = matches!(
        cli.command,
        Some(Command::Inspect(_) | Command::Reset(_) | Command::Doctor(_) | Command::Addresses(_))
    );
    let level = cli.log.level.as_deref().or(peer.log_level);
    match level.unwrap_or("info") {
        "info" if talks_once => "info,tidegate_redis=off",
        level => level,
    }
}
