//! `tidegate top addresses`, `tidegate ban` and `tidegate unban`.

mod bans;
mod report;
mod show;
mod top;

pub use bans::{BanArgs, UnbanArgs, ban, unban};
pub use top::{TopArgs, TopTable, top};

use super::print;
use clap::Args;
use std::path::Path;
use tidegate_config::Config;
use tidegate_control::buckets::redis_store;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_control::live::config_file;
use tidegate_policy::addresses::AddressLimits;
use tidegate_policy::guard::ListOrigin;
use tidegate_redis_client::Connection;

/// The arguments of `tidegate addresses`, which became three commands.
#[derive(Args, Debug)]
pub struct OldArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<String>,
}

/// Names the commands that replaced `tidegate addresses`.
pub fn renamed() -> Failure {
    Failure::input(
        "there is no command `addresses`\n   help: use `tidegate top addresses`, `tidegate ban \
         ADDRESS` or `tidegate unban ADDRESS`",
    )
}

/// Loads the configuration, which must count addresses in Redis.
fn load(file: &Path, environment: &FlagEnvironment) -> Result<Config, Failure> {
    let config = config_file::load(file, environment)?;
    redis_store::redis(&config)?;
    counted(&config)?;
    Ok(config)
}

/// Runs `command` with a connection to the store's Redis, and prints its result.
fn with_redis(
    config: &Config,
    command: impl AsyncFnOnce(&Connection) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let settings = redis_store::settings(config)?;
    let result = redis_store::wait_for(async {
        let store = redis_store::connect(settings, "tidegate-addresses").await?;
        let connection = store.connection();
        let result = command(connection).await;
        connection.close().await;
        result
    })?;
    print::line(result.trim_end())
}

/// Returns the settings for counting addresses. Fails if they are not counted.
fn counted(config: &Config) -> Result<&AddressLimits, Failure> {
    config.addresses.as_ref().ok_or_else(|| {
        Failure::input(
            "this configuration counts no addresses\n   help: add `addresses: { threshold: 10000 }`",
        )
    })
}

/// Returns the set of banned addresses.
fn ban_set<'a>(config: &'a Config, counted: &AddressLimits) -> Option<&'a str> {
    let ban = counted.ban.as_ref()?;
    let guard = config.guards.iter().find(|guard| guard.name == ban.guard)?;
    match &guard.origin {
        ListOrigin::Redis { set, .. } => Some(set),
        _ => None,
    }
}
