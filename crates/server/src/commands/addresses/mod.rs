//! `tidegate addresses`.

mod bans;
mod look;
mod show;

use super::{print, redis_store};
use crate::config_file;
use crate::environment::FlagEnvironment;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use tidegate_policy::Config;
use tidegate_policy::addresses::AddressLimits;
use tidegate_policy::guard::ListOrigin;

/// The arguments of `tidegate addresses`.
#[derive(Args, Debug)]
#[command(after_help = "\
Looking changes nothing. Who is let in again is, within one refresh of the guard's list; and so is
whoever is banned kept out.

Examples:
  tidegate addresses --config tidegate.yaml --top 20
  tidegate addresses --config tidegate.yaml --unban 192.0.2.1
  tidegate addresses --config tidegate.yaml --ban 192.0.2.1 --for 1h")]
pub struct AddressesArgs {
    /// The configuration
    #[arg(long, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub config: PathBuf,
    /// How many to show of those who ask most in this period, and of those who ever did
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub top: u16,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Keep this address out
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["unban", "top", "json"])]
    pub ban: Option<String>,
    /// For how long, such as `1h`; for ever unless told
    #[arg(long = "for", value_name = "TIME", requires = "ban")]
    pub length: Option<String>,
    /// Let this address in again
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["top", "json"])]
    pub unban: Option<String>,
}

/// Shows the busiest addresses, or bans or unbans an address.
pub fn run(args: &AddressesArgs) -> Result<(), Failure> {
    let environment = FlagEnvironment::new();
    let config = config_file::load(&args.config, &environment)?;
    redis_store::redis(&config)?;
    let counted = counted(&config)?;
    let settings = redis_store::settings(&config)?;
    let order = bans::Order::of(args, &config, counted)?;
    let said = redis_store::wait_for(async {
        let store = redis_store::connect(settings, "tidegate-addresses").await?;
        let connection = store.connection();
        let said = match &order {
            Some(order) => order.carry_out(connection, &environment).await,
            None => {
                let set = ban_set(&config, counted);
                let banned = set.map(|set| (set, config.client.address_rules()));
                let sight = look::look(connection, counted, banned, args.top.into()).await;
                sight.and_then(|sight| {
                    if !args.json {
                        return Ok(show::text(&sight));
                    }
                    serde_json::to_string_pretty(&sight).map_err(Failure::runtime)
                })
            }
        };
        connection.close().await;
        said
    })?;
    print::line(said.trim_end())
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
