//! What each subcommand does: one file each.

mod not_yet;
mod print;
pub mod schema;
pub mod serve;
pub mod simulate;
pub mod validate;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::telemetry::logs;
use not_yet::not_yet;

/// Does what the command line says.
pub fn run(cli: Cli) -> Result<(), Failure> {
    logs::start(&cli.log.level)?;
    match cli.command {
        None => serve::run(&cli.serve),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Validate(args)) => validate::run(&args),
        Some(Command::Simulate(args)) => simulate::run(args),
        Some(Command::Schema(args)) => schema::run(&args),
    }
}
