//! Finds a bucket: by its name, by its key in Redis, or by its subject.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the description of a bucket, and the bucket that it identifies |
//! | `identity` | from `--key user=ann` to a bucket, by the matcher that decisions use |
//! | `name` | from a bucket's name or a key in Redis to its policy, limit and subject |
//! | `keys` | the location of a bucket in Redis |
//! | `plan_rate` | the rate that a plan assigns to the bucket |
//! | `report` | the content of a bucket |
//! | `budget` | the content of all buckets of a subject |
//! | `reset`, `reset_all` | resetting a bucket, or all buckets of a limit |
//! | `redis_store` | the Redis that a configuration names |
//! | `pattern` | the parser for keys that templates of the open layout generate |

pub mod budget;
mod identity;
mod keys;
mod name;
mod pattern;
mod plan_rate;
pub mod redis_store;
pub mod report;
pub mod reset;
pub mod reset_all;

pub use keys::escape_glob;
pub(crate) use keys::{BucketAddress, keys_of_all, keys_of_blocks, place_of};
pub use pattern::glob;
pub(crate) use pattern::is_only_of;

use crate::failure::Failure;
use crate::sources::once;
use identity::{Names, Naming};
use plan_rate::PlannedBands;
use std::sync::Arc;
use tidegate::{Store, StoreErrorKind};
use tidegate_config::Config;
use tidegate_policy::plan::PlanTable;
use tidegate_policy::{Band, Evaluate, KeyPart, Limit, Policy};

/// The description of a bucket, by an administrator.
#[derive(Clone, Debug, Default)]
pub struct BucketQuery {
    /// The bucket: its name, such as `api/per-client/ip:192.0.2.1`, or its key in Redis.
    pub bucket: Option<String>,
    /// The policy. Default: the first.
    pub policy: Option<String>,
    /// The limit, if there is no `bucket`.
    pub limit: Option<String>,
    /// A value for each part of the limit's key, `ip=192.0.2.1`, or the values alone, in order.
    pub key: Vec<String>,
    /// One band only, by its label or as it is written; `block` for the block alone.
    pub band: Option<String>,
}

/// A bucket and the limit that it belongs to.
#[derive(Debug)]
pub struct NamedBucket {
    /// A policy of the same name that contains only this limit, without conditions.
    policy: Policy,
    /// `policy/limit/subject`.
    pub bucket: String,
    /// Other names under which it may be stored, in the order in which to try them.
    others: Vec<String>,
    band: Option<String>,
    /// The rate, if it comes from a plan.
    planned: Option<PlannedBands>,
    /// Its name contains a literal secret, so that a hash finds only its block.
    is_literal: bool,
}

impl NamedBucket {
    /// Finds the bucket that `query` describes.
    ///
    /// Moves the limit out of `config`, and loads its plans if it has any. If they cannot be loaded the bucket is
    /// found all the same, without a rate.
    ///
    /// # Errors
    ///
    /// [`Failure::Input`] if the policy, the limit or the band does not exist, or if the values do not form a key of
    /// the limit. The message lists the names that exist.
    pub fn find(config: &mut Config, query: &BucketQuery) -> Result<Self, Failure> {
        let read = match (&query.bucket, &query.limit) {
            (Some(text), _) => Some(name::read(config, text)?),
            (None, Some(_)) => None,
            // clap requires one of them.
            (None, None) => {
                return Err(Failure::input("the bucket is missing: pass KEY or --limit"));
            }
        };
        let (policy, limit) = match &read {
            Some(read) => (Some(read.policy.as_str()), read.limit.as_str()),
            None => (
                query.policy.as_deref(),
                query.limit.as_deref().unwrap_or_default(),
            ),
        };
        let (policy, limit) = (policy_name(config, policy, limit)?, limit.to_owned());
        let policy = take(config, &policy, &limit)?;
        let (tables, why) = match tables(config, &policy) {
            Ok(tables) => (tables, String::new()),
            Err(failure) => (Vec::new(), failure.to_string()),
        };
        let naming = Naming {
            rules: config.key_rules(),
            client: &config.client,
            tables: &tables,
        };
        let spelled = match read {
            None => identity::bucket(&policy, naming, &query.key)?,
            Some(read) => spellings(&policy, &limit, naming, &read.subject),
        };
        let mut named = Self::new(policy, naming, spelled, &why);
        named.band.clone_from(&query.band);
        named.check_band()?;
        Ok(named)
    }

    /// Creates the bucket of the one limit of `policy`. `why` is the reason if its plans are not loaded.
    fn new(policy: Policy, naming: Naming<'_>, spelled: Names, why: &str) -> Self {
        let is_literal = naming.rules.literal
            && policy
                .limits
                .iter()
                .any(|limit| limit.template.is_some() && limit.key.iter().any(KeyPart::is_secret));
        let mut named = Self {
            planned: None,
            is_literal,
            policy,
            bucket: spelled.bucket,
            others: spelled.others,
            band: None,
        };
        if let Some(limit) = named.limit() {
            let source = limit.plan.as_ref().map(|plan| plan.source);
            let table = source.and_then(|source| naming.tables.get(source)?.as_deref());
            let subject = (spelled.subject.as_deref(), named.subject());
            named.planned = plan_rate::planned(limit, subject.0, subject.1, table.ok_or(why));
        }
        named
    }

    /// Selects the first of the names under which the store has a record, or else the one that decisions
    /// use.
    ///
    /// # Errors
    ///
    /// [`Failure::Runtime`] if the store did not answer. A corrupt value is no error: it exists.
    pub async fn choose(&mut self, store: &impl Store) -> Result<(), Failure> {
        if self.others.is_empty() || self.is_stored(store, &self.bucket).await? {
            return Ok(());
        }
        for other in std::mem::take(&mut self.others) {
            if self.is_stored(store, &other).await? {
                self.bucket = other;
                break;
            }
        }
        Ok(())
    }

    async fn is_stored(&self, store: &impl Store, bucket: &str) -> Result<bool, Failure> {
        for band in self.bands().into_iter().chain(self.block()) {
            match store.inspect(bucket.as_bytes(), &band.quota).await {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(true),
                // A corrupt value exists, too.
                Err(error) if error.kind() == StoreErrorKind::Corrupt => return Ok(true),
                Err(error) => return Err(Failure::runtime(error)),
            }
        }
        Ok(false)
    }

    /// Returns why there is no rate to show, for a limit whose rate comes from a plan.
    pub(crate) fn without_rate(&self) -> Option<&str> {
        match &self.planned {
            Some(PlannedBands::None(why)) => Some(why),
            _ => None,
        }
    }

    /// Returns the failure for a bucket of which the store has no record.
    pub fn not_found(&self) -> Failure {
        let literal = if self.is_literal {
            "; with `key_names: literal`, its hash finds only a block"
        } else {
            ""
        };
        let why = match self.without_rate() {
            None => "the bucket is full, or its key is written differently".to_owned(),
            Some(why) => format!("rate {why}"),
        };
        Failure::not_found(format!(
            "nothing is stored for {}: {why}\n   help: pass the exact value that the client \
             sends, with --limit and --key{literal}; `tidegate reset --limit … --all --dry-run` \
             counts the buckets of a limit",
            self.bucket
        ))
    }

    /// Returns the name of the policy.
    pub fn policy(&self) -> &str {
        &self.policy.name
    }

    /// Returns the limit.
    pub fn limit(&self) -> Option<&Limit> {
        self.policy.limits.first()
    }

    /// Returns the subject, such as `ip:192.0.2.1`.
    pub fn subject(&self) -> &str {
        self.bucket.splitn(3, '/').nth(2).unwrap_or_default()
    }

    /// Returns the bucket's name for logs, without secrets: with `store.redis.key_names: literal` the name
    /// contains them literally.
    pub fn shown(&self) -> String {
        let key = self.limit().map_or(&[][..], |limit| &limit.key);
        let subject = self.subject();
        let mut shown = self.bucket.strip_suffix(subject).unwrap_or("").to_owned();
        for (nth, text) in subject.split(',').enumerate() {
            if nth > 0 {
                shown.push(',');
            }
            let is_secret = key.get(nth).is_some_and(KeyPart::is_secret);
            match text.split_once(':') {
                Some((label, value)) if is_secret && !value.starts_with('#') => {
                    shown.push_str(label);
                    shown.push_str(":***");
                }
                _ => shown.push_str(text),
            }
        }
        shown
    }

    /// Returns the selected bands. Without a rate they have the shape of the plan's bands, so that their
    /// state is found, but other numbers.
    pub fn bands(&self) -> Vec<&Band> {
        let bands = match &self.planned {
            Some(PlannedBands::Rate { band, .. }) => std::slice::from_ref(band),
            _ => self.limit().map_or(&[][..], Limit::shapes),
        };
        bands.iter().filter(|band| self.is_meant(band)).collect()
    }

    /// Returns the block of the limit, if it has one and that is selected.
    pub fn block(&self) -> Option<&Band> {
        let block = match &self.planned {
            Some(PlannedBands::Rate { block, .. }) => block.as_ref()?,
            _ => self.limit()?.block.as_ref()?,
        };
        self.is_meant(block).then_some(block)
    }

    /// Returns true if not all bands are selected.
    pub(crate) fn is_partial(&self) -> bool {
        self.band.is_some()
    }

    fn is_meant(&self, band: &Band) -> bool {
        let Some(wanted) = &self.band else {
            return true;
        };
        band.label.as_ref() == Some(wanted) || band.text == *wanted
    }

    fn check_band(&self) -> Result<(), Failure> {
        let Some(limit) = self.limit() else {
            return Err(Failure::runtime("a policy without a limit"));
        };
        if !self.bands().is_empty() || self.block().is_some() {
            return Ok(());
        }
        let names = limit.shapes().iter().chain(&limit.block);
        let names = names.map(|band| band.label.as_ref().unwrap_or(&band.text));
        Err(Failure::input(format!(
            "limit `{}` has no band `{}`; it has {}",
            limit.name,
            self.band.as_deref().unwrap_or_default(),
            listed(names)
        )))
    }
}

/// Returns the names that an operator may mean by `subject`: the one that decisions use comes first, the
/// literal one last.
fn spellings(policy: &Policy, limit: &str, naming: Naming<'_>, subject: &str) -> Names {
    let literal = format!("{}/{limit}/{subject}", policy.name);
    match identity::respelled(policy, naming, subject) {
        Some(mut names) if names.bucket != literal => {
            names.others.push(literal);
            names
        }
        names => Names {
            bucket: literal,
            others: Vec::new(),
            subject: names.and_then(|names| names.subject),
        },
    }
}

/// Loads the plan source that the one limit of `policy` uses; nothing if it uses none.
fn tables(config: &Config, policy: &Policy) -> Result<Vec<Option<Arc<PlanTable>>>, Failure> {
    let plan = policy.limits.first().and_then(|limit| limit.plan.as_ref());
    let asked = plan.map(|plan| plan.source);
    once::load(&config.plans, policy.limits.iter(), |number, _| {
        Some(number) == asked
    })
}

/// Moves the limit out of the configuration into a policy that matches every request.
///
/// # Errors
///
/// [`Failure::Input`] with the names that exist, if there is no such policy or limit.
pub fn take(config: &mut Config, policy: &str, limit: &str) -> Result<Policy, Failure> {
    let Some(at) = config.policies.iter().position(|it| it.name == policy) else {
        return Err(unknown_policy(config, policy));
    };
    let Some(of) = config.policies.get_mut(at) else {
        return Err(Failure::runtime("the policy is gone"));
    };
    let Some(at) = of.limits.iter().position(|it| it.name == limit) else {
        let known = listed(of.limits.iter().map(|limit| &limit.name));
        return Err(Failure::input(format!(
            "policy `{policy}` has no limit `{limit}`; it has {known}"
        )));
    };
    Ok(alone(policy, of.limits.swap_remove(at)))
}

/// Returns a policy of this name that contains only this limit, which matches every request: the requests
/// that a limit matches do not matter for its buckets.
fn alone(policy: &str, mut limit: Limit) -> Policy {
    limit.enabled = true;
    limit.conditions.clear();
    Policy::new(policy.to_owned(), Evaluate::All, vec![limit])
}

/// Returns the policy that the buckets of `limit` are named after. `name` is the given policy, or the
/// first by default. It may be a joined policy, because decisions report those names.
///
/// # Errors
///
/// [`Failure::Input`] if the configuration has no policy.
pub fn policy_name(config: &Config, name: Option<&str>, limit: &str) -> Result<String, Failure> {
    let policy = config.policy(name);
    let at = |policy: &Policy| policy.limits.iter().position(|it| it.name == limit);
    let origin = policy.and_then(|policy| Some(policy.origin(at(policy)?)));
    let name = origin.or(name).or(policy.map(|it| it.name.as_str()));
    let name = name.ok_or_else(|| Failure::input("the configuration has no policy"))?;
    Ok(name.to_owned())
}

fn unknown_policy(config: &Config, policy: &str) -> Failure {
    let known = listed(config.written().map(|policy| &policy.name));
    Failure::input(format!("unknown policy `{policy}`; expected {known}"))
}

/// Returns names as a list: `a`, `b`.
fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
