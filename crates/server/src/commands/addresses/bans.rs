//! `tidegate ban` and `tidegate unban`.

use super::report::{ENDS_MAX, TIME_MAX, first_of, list};
use super::{ban_set, counted, load, with_redis};
use crate::commands::operator::who;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_config::Config;
use tidegate_config::Environment;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_policy::limit::AddressRules;
use tidegate_policy::text::duration;
use tidegate_redis_client::Connection;
use tidegate_redis_shared::{Bans, RedisSets};
use tracing::info;

/// The arguments of `tidegate ban`.
#[derive(Args, Debug)]
#[command(after_help = "\
The ban takes effect with the next refresh of the guard's list.

Example: tidegate ban 192.0.2.1 --for 1h --config tidegate.yaml")]
pub struct BanArgs {
    /// Address or network to ban
    pub address: String,
    /// Configuration file
    #[arg(long, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub config: PathBuf,
    /// Ban duration, e.g. 1h. Default: permanent
    #[arg(long = "for", value_name = "TIME")]
    pub length: Option<String>,
}

/// The arguments of `tidegate unban`.
#[derive(Args, Debug)]
#[command(after_help = "\
The address is accepted again with the next refresh of the guard's list.

Example: tidegate unban 192.0.2.1 --config tidegate.yaml")]
pub struct UnbanArgs {
    /// Address or network to unban
    pub address: String,
    /// Configuration file
    #[arg(long, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub config: PathBuf,
}

/// Bans an address.
///
/// All instances read the ban from Redis within their guard's `refresh`; this one command reaches all of them.
///
/// # Errors
///
/// [`Failure::Input`] if the address or the duration is invalid, or the configuration has no bans;
/// [`Failure::Runtime`] if Redis did not answer.
pub fn ban(args: &BanArgs) -> Result<(), Failure> {
    let length = length(args.length.as_deref())?;
    run(&args.config, &args.address, BanCommand::Ban(length))
}

/// Unbans an address.
///
/// # Errors
///
/// Those of [`ban`].
pub fn unban(args: &UnbanArgs) -> Result<(), Failure> {
    run(&args.config, &args.address, BanCommand::Unban)
}

fn run(file: &Path, address: &str, command: BanCommand) -> Result<(), Failure> {
    let environment = FlagEnvironment::new();
    let config = load(file, &environment)?;
    let order = Order::of(address, command, &config)?;
    with_redis(&config, async |connection| {
        order.carry_out(connection, &environment).await
    })
}

/// A ban or an unban to execute.
struct Order {
    set: String,
    rules: AddressRules,
    /// In normalized form.
    address: String,
    what: BanCommand,
}

enum BanCommand {
    Ban(Option<Duration>),
    Unban,
}

impl Order {
    fn of(text: &str, what: BanCommand, config: &Config) -> Result<Self, Failure> {
        let set = ban_set(config, counted(config)?).ok_or_else(|| {
            Failure::input(
                "this configuration has no bans\n   help: add `ban: { guard: NAME, for: 1h }` to \
                 `addresses`",
            )
        })?;
        Ok(Self {
            set: set.to_owned(),
            rules: config.client.address_rules(),
            address: member(text, config)?,
            what,
        })
    }

    /// Executes it, logs the user, and returns the result.
    async fn carry_out(
        &self,
        connection: &Connection,
        environment: &dyn Environment,
    ) -> Result<String, Failure> {
        let bans = Bans::new(connection.clone(), self.set.clone());
        let address = &self.address;
        let (done, said) = match self.what {
            BanCommand::Ban(length) => {
                let new = bans
                    .ban(&[address], length)
                    .await
                    .map_err(Failure::runtime)?;
                let message = if new.is_empty() {
                    format!("{address} was already banned")
                } else {
                    format!("{address} is banned")
                };
                ("banned", message)
            }
            BanCommand::Unban => {
                let was_banned = self.unban(connection, &bans).await?;
                let is_held = self.is_held(connection).await?;
                let message = match (was_banned, is_held) {
                    (true, false) => format!("{address} is unbanned"),
                    (false, false) => format!("{address} was not banned"),
                    (true, true) => {
                        format!(
                            "{address} is removed from the set, but the set has a network that contains it"
                        )
                    }
                    (false, true) => {
                        format!(
                            "{address} is not in the set, but the set has a network that contains it"
                        )
                    }
                };
                ("unbanned", message)
            }
        };
        info!(
            event = "ban_changed",
            who = who(environment),
            address,
            set = self.set,
            done,
            "ban list changed by a command"
        );
        Ok(said)
    }
}

impl Order {
    /// Removes all members that stand for the address, in any form in which they were added.
    async fn unban(&self, connection: &Connection, bans: &Bans) -> Result<bool, Failure> {
        let set = self.set.as_bytes();
        let sets = RedisSets::new(connection.clone());
        let members = sets.members(set, ENDS_MAX, TIME_MAX).await;
        let mut was_banned = false;
        for member in members.map_err(Failure::runtime)? {
            let name = std::str::from_utf8(&member).ok();
            let name = name.and_then(|text| self.rules.member_of(text));
            if name.as_ref() == Some(&self.address) {
                was_banned |= bans.unban(&member).await.map_err(Failure::runtime)?;
            }
        }
        Ok(was_banned)
    }

    /// Returns true if the guard still bans the address.
    async fn is_held(&self, connection: &Connection) -> Result<bool, Failure> {
        let list = list(connection, (&self.set, self.rules)).await?;
        let first = first_of(&self.address);
        Ok(first.is_some_and(|address| list.contains_address(address)))
    }
}

fn length(text: Option<&str>) -> Result<Option<Duration>, Failure> {
    match text {
        None | Some("0") => Ok(None),
        Some(text) => duration(text).map(Some).map_err(Failure::input),
    }
}

/// Returns the form of the address in the set.
fn member(text: &str, config: &Config) -> Result<String, Failure> {
    let member = config.client.address_rules().member_of(text);
    member.ok_or_else(|| Failure::input(format!("`{text}` is neither an address nor a network")))
}
