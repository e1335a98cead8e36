//! The subcommands: one file each.

pub mod addresses;
mod bucket_args;
pub mod budget;
pub mod check;
pub mod cli;
pub mod completions;
pub mod doctor;
pub mod gateway;
pub mod healthcheck;
pub mod import;
pub mod init;
pub mod inspect;
pub mod man;
mod operator;
mod print;
pub mod reset;
pub mod schema;
pub mod serve;
mod server_call;
pub mod simulate;
pub mod token;
pub mod validate;

use self::cli::{Cli, Command};
use crate::logs;
use crate::peer::Peer;
use crate::styles;
use tidegate_control::failure::Failure;
use tidegate_policy::calendar::ZoneData;

/// Makes the process use other data of time zones than the bundled one.
fn use_zone_data(named: Option<&str>) -> Result<(), Failure> {
    let Some(named) = named else {
        return Ok(());
    };
    let data = ZoneData::named(named).and_then(ZoneData::install);
    data.map_err(|fault| Failure::input(format!("--zone-data: {}", fault.into_sentence())))
}

/// Runs the command of the command line.
///
/// # Errors
///
/// The failure of the command; its kind decides the exit code. The caller prints it.
pub fn run(cli: Cli) -> Result<(), Failure> {
    styles::choose(cli.color);
    use_zone_data(cli.zone_data.as_deref())?;
    let peer = match &cli.command {
        None => cli.serve.envoy.peer()?,
        Some(Command::Serve(args)) => args.args.envoy.peer()?,
        Some(_) => Peer::default(),
    };
    let format = cli.log.format.or(peer.log_format);
    // Until the end of the command: then the rest of the log is written, before the failure is printed.
    let _log = logs::start(level(&cli, &peer), format.unwrap_or_default())?;
    match cli.command {
        None => serve::run(&cli.serve, &peer),
        Some(Command::Serve(args)) => serve::run(&args.into_args()?, &peer),
        Some(Command::Gateway(args)) => gateway::run(&args),
        Some(Command::Init(args)) => init::run(&args),
        Some(Command::Validate(args)) => validate::run(&args),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Simulate(args)) => simulate::run(args),
        Some(Command::Import(args)) => import::run(&args),
        Some(Command::Schema(args)) => schema::run(&args),
        Some(Command::Inspect(args)) => inspect::run(&args),
        Some(Command::Budget(args)) => budget::run(&args),
        Some(Command::Reset(args)) => reset::run(&args),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Healthcheck(args)) => healthcheck::run(&args),
        Some(Command::Top(args)) => addresses::top(&args),
        Some(Command::Ban(args)) => addresses::ban(&args),
        Some(Command::Unban(args)) => addresses::unban(&args),
        Some(Command::Addresses(_)) => Err(addresses::renamed()),
        Some(Command::Token(args)) => token::run(&args),
        Some(Command::Completions(args)) => completions::run(&args),
        Some(Command::Man(args)) => man::run(&args),
    }
}

/// Returns the log level. Commands that talk to Redis once print their results themselves.
fn level<'a>(cli: &'a Cli, peer: &Peer) -> &'a str {
    let talks_once = matches!(
        cli.command,
        Some(
            Command::Inspect(_)
                | Command::Budget(_)
                | Command::Reset(_)
                | Command::Doctor(_)
                | Command::Top(_)
                | Command::Ban(_)
                | Command::Unban(_)
        )
    );
    let level = cli.log.level.as_deref().or(peer.log_level);
    match level.unwrap_or("info") {
        "info" if talks_once => "info,tidegate_redis=off",
        level => level,
    }
}
