//! Bans an address, or unbans it.

use super::look::{ENDS_MAX, TIME_MAX, first_of, list};
use super::{AddressesArgs, ban_set};
use crate::commands::who::who;
use crate::failure::Failure;
use std::time::Duration;
use tidegate_policy::Config;
use tidegate_policy::addresses::AddressLimits;
use tidegate_policy::config::{Environment, duration};
use tidegate_policy::limit::AddressRules;
use tidegate_redis::{Bans, Connection};
use tracing::info;

/// A ban or an unban to execute.
pub(super) struct Order {
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
    /// Returns the ban or unban of the command line; `None` if there is none.
    pub(super) fn of(
        args: &AddressesArgs,
        config: &Config,
        counted: &AddressLimits,
    ) -> Result<Option<Self>, Failure> {
        let (text, what) = match (&args.ban, &args.unban) {
            (Some(address), _) => (address, BanCommand::Ban(length(args.length.as_deref())?)),
            (None, Some(address)) => (address, BanCommand::Unban),
            (None, None) => return Ok(None),
        };
        let set = ban_set(config, counted).ok_or_else(|| {
            Failure::input(
                "this configuration bans nobody\n   help: add `ban: { guard: NAME, for: 1h }` to \
                 `addresses`",
            )
        })?;
        Ok(Some(Self {
            set: set.to_owned(),
            rules: config.client.address_rules(),
            address: member(text, config)?,
            what,
        }))
    }

    /// Executes it, logs the user, and returns the result.
    pub(super) async fn carry_out(
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
                let said = if new.is_empty() {
                    format!("{address} was kept out already")
                } else {
                    format!("{address} is kept out")
                };
                ("banned", said)
            }
            BanCommand::Unban => {
                let was_banned = self.unban(connection, &bans).await?;
                let is_held = self.is_held(connection).await?;
                let said = match (was_banned, is_held) {
                    (true, false) => format!("{address} is let in again"),
                    (false, false) => format!("{address} was not kept out"),
                    (true, true) => {
                        format!("{address} is out of the set, but a network is in it that holds it")
                    }
                    (false, true) => {
                        format!("{address} is not in the set, but a network is in it that holds it")
                    }
                };
                ("unbanned", said)
            }
        };
        info!(who = who(environment), address, set = self.set, done, "ban");
        Ok(said)
    }
}

impl Order {
    /// Removes all members that stand for the address, in any form in which they were added.
    async fn unban(&self, connection: &Connection, bans: &Bans) -> Result<bool, Failure> {
        let set = self.set.as_bytes();
        let members = connection.members(set, ENDS_MAX, TIME_MAX).await;
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
