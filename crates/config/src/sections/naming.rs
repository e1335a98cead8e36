//! Chooses the template that names the keys of a limit, and checks that it is safe: no two buckets may
//! share a key, and no client may choose one.

use super::template;
use crate::language::reader::{ConfigReader, ConfigValue};
use std::collections::BTreeMap;
use tidegate_core::Algorithm;
use tidegate_policy::limit::{KeyPart, Limit};
use tidegate_policy::slot_group::{part_as_written, subject_of};
use tidegate_policy::store::{LayoutWord, StoreTarget};
use tidegate_policy::template::{KeyOf, Template, TemplatePiece, band_name};
use tidegate_policy::text::ConfigFault;

/// A placeholder for any text that a client may send, used to compare names.
const ANYTHING: &str = "*";

/// The naming rules of keys, and the names already taken.
#[derive(Debug)]
pub(crate) struct KeyNamer {
    /// The layout; `None` for a store in memory.
    layout: Option<LayoutWord>,
    /// The template of `store`, if it sets one.
    template: Option<Template>,
    /// The prefix of Tidegate's own keys.
    prefix: String,
    /// The policy that is being read.
    policy: String,
    /// The names of keys, each with the limit that uses it.
    taken: BTreeMap<String, String>,
}

/// A template and its origin.
struct ChosenTemplate<'a> {
    template: Template,
    whose: NamingAuthority,
    value: ConfigValue<'a>,
}

/// The origin of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamingAuthority {
    Limit,
    Store,
    Nobody,
}

impl KeyNamer {
    pub(crate) fn new(target: &StoreTarget, template: Option<Template>) -> Self {
        let redis = target.redis();
        Self {
            layout: redis.map(|redis| redis.layout),
            template,
            prefix: redis.map(|redis| redis.prefix.clone()).unwrap_or_default(),
            policy: String::new(),
            taken: BTreeMap::new(),
        }
    }

    /// Sets the policy of the limits that follow.
    pub(crate) fn enter(&mut self, policy: Option<&str>) {
        policy.unwrap_or_default().clone_into(&mut self.policy);
    }

    /// Returns true if the buckets of a limit are stored as documents of other systems.
    pub(crate) fn is_open(&self, limit: &Limit) -> bool {
        self.layout == Some(LayoutWord::Open) && default(limit).is_some()
    }

    /// Returns the template of a limit; `None` if its keys are packed. `written` is the limit's own
    /// template.
    pub(crate) fn template<'a>(
        &mut self,
        reader: &mut ConfigReader<'_>,
        value: &ConfigValue<'a>,
        limit: &Limit,
        written: Option<(Template, ConfigValue<'a>)>,
    ) -> Option<Template> {
        let why_not = match (self.layout, default(limit)) {
            (None, _) => "the store is `memory`",
            (Some(LayoutWord::Packed), _) => "the store's layout is `packed`",
            (Some(LayoutWord::Open), None) => "the algorithm has no open form and uses packed keys",
            (Some(LayoutWord::Open), Some(default)) => {
                let chosen = self.choose(value, limit, written, default);
                return self.check(reader, limit, chosen);
            }
        };
        if let Some((_, value)) = written {
            let fault = ConfigFault::new(format!("`template` has no effect: {why_not}"));
            reader.warn(value.key_spot(), fault.help("remove it"));
        }
        None
    }

    fn choose<'a>(
        &self,
        value: &ConfigValue<'a>,
        limit: &Limit,
        written: Option<(Template, ConfigValue<'a>)>,
        default: Template,
    ) -> ChosenTemplate<'a> {
        let (template, whose, value) = match (written, &self.template) {
            (Some((template, value)), _) => (template, NamingAuthority::Limit, value),
            // A fixed window keeps all keys in one hash, so a template for single keys does not fit.
            (None, Some(template)) if !is_window(limit) => {
                (template.clone(), NamingAuthority::Store, value.clone())
            }
            (None, _) => (default, NamingAuthority::Nobody, value.clone()),
        };
        ChosenTemplate {
            template,
            whose,
            value,
        }
    }

    fn check(
        &mut self,
        reader: &mut ConfigReader<'_>,
        limit: &Limit,
        chosen: ChosenTemplate<'_>,
    ) -> Option<Template> {
        let fault = check_parts(limit, &chosen)
            .and_then(|()| check_bands(limit, &chosen))
            .and_then(|()| self.check_names(limit, &chosen));
        let Err(fault) = fault else {
            return Some(chosen.template);
        };
        let spot = if chosen.whose == NamingAuthority::Limit {
            chosen.value.spot()
        } else {
            chosen.value.node.get("name").map_or_else(
                || chosen.value.spot(),
                |name| (name.place, format!("{}.template", chosen.value.path)),
            )
        };
        reader.error(spot, fault);
        None
    }

    /// Checks that no client can choose a key, and that no two buckets share one.
    fn check_names(
        &mut self,
        limit: &Limit,
        chosen: &ChosenTemplate<'_>,
    ) -> Result<(), ConfigFault> {
        let subject = subject_of(&limit.key, |_| ANYTHING.to_owned());
        let shown = chosen.show();
        for band in limit.shapes() {
            let name = chosen.template.render(&KeyOf {
                policy: &self.policy,
                limit: &limit.name,
                subject: &subject,
                band: band_name(band),
            });
            if name.starts_with(ANYTHING) {
                let message = format!("{shown} starts with a value from the client");
                let help = "start with fixed text, so that clients cannot choose arbitrary keys";
                return Err(ConfigFault::new(message).help(help));
            }
            if name.starts_with(&self.prefix) {
                let message = format!(
                    "{shown} starts with {}, the prefix of Tidegate's keys",
                    ConfigFault::quote(&self.prefix)
                );
                return Err(
                    ConfigFault::new(message).help("start with different text, or change `prefix`")
                );
            }
            if !limit.enabled {
                continue;
            }
            let owner = format!("`{}` of policy `{}`", limit.name, self.policy);
            if let Some(other) = self.taken.insert(name, owner.clone()) {
                let message = format!(
                    "{owner} and {other} would share keys: {shown} gives both the same \
                        names"
                );
                let help = if is_window(limit) {
                    "give one of them a template with {limit}, such as rate_limits:{limit}"
                } else {
                    "put {limit} into the template, and {policy} if both policies have a limit of that name"
                };
                return Err(ConfigFault::new(message).help(help));
            }
        }
        Ok(())
    }
}

impl ChosenTemplate<'_> {
    /// Describes the template, such as "its template `a:{key}`".
    fn show(&self) -> String {
        let template = ConfigFault::quote(self.template.as_str());
        match self.whose {
            NamingAuthority::Limit => format!("its template {template}"),
            NamingAuthority::Store => format!("the template {template} of `store`"),
            NamingAuthority::Nobody => format!("the default template {template}"),
        }
    }
}

/// Returns the documented default template, for algorithms that have one.
#[deny(clippy::wildcard_enum_match_arm)]
fn default(limit: &Limit) -> Option<Template> {
    let text = match limit.algorithm {
        Algorithm::TokenBucket if limit.bands.len() > 1 => {
            "ratelimit:{policy}:{limit}:{key}:{band}"
        }
        Algorithm::TokenBucket => "ratelimit:{limit}:{key}",
        Algorithm::SlidingLog => "{subject}",
        // The document of a fixed window counts in whole seconds.
        Algorithm::FixedWindow(_) if has_whole_seconds(limit) => "rate_limits",
        Algorithm::FixedWindow(_)
        | Algorithm::SlidingWindow
        | Algorithm::BucketedWindow
        | Algorithm::CalendarWindow
        | Algorithm::Concurrent => {
            return None;
        }
    };
    template::parse(text).ok()
}

fn has_whole_seconds(limit: &Limit) -> bool {
    let mut periods = limit.shapes().iter().map(|band| band.quota.period_us());
    periods.all(|period_us| period_us % 1_000_000 == 0)
}

/// Returns true if all keys of a limit are fields of one hash.
fn is_window(limit: &Limit) -> bool {
    matches!(limit.algorithm, Algorithm::FixedWindow(_))
}

/// Checks that the name contains every part of the key and no other. The name of a hash must contain
/// none.
fn check_parts(limit: &Limit, chosen: &ChosenTemplate<'_>) -> Result<(), ConfigFault> {
    let shown = chosen.show();
    let mut has_all = false;
    let mut named = Vec::new();
    for piece in chosen.template.pieces() {
        match piece {
            TemplatePiece::Key | TemplatePiece::Subject => has_all = true,
            TemplatePiece::Part { of, .. } => named.push(of),
            _ => {}
        }
    }
    if is_window(limit) {
        if !has_all && named.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{shown} contains a part of the key, but the algorithm uses one hash for all \
                keys"
        );
        return Err(ConfigFault::new(message)
            .help("write only its name, such as rate_limits:{limit}; each key is a field of it"));
    }
    if let Some(foreign) = named.iter().find(|part| !limit.key.contains(part)) {
        let foreign = part_as_written(foreign);
        let message = format!(
            "{shown} contains {{{foreign}}}, but the key of `{}` has no such part",
            limit.name
        );
        return Err(ConfigFault::new(message).help("use {key} for all parts of the key"));
    }
    let is_absent = |part: &&KeyPart| **part != KeyPart::Global && !named.contains(part);
    if let Some(absent) = limit.key.iter().find(is_absent).filter(|_| !has_all) {
        let absent = part_as_written(absent);
        let message = format!("{shown} lacks {{{absent}}}: different keys would share a bucket");
        return Err(ConfigFault::new(message).help("add it, or use {key} for all parts of the key"));
    }
    Ok(())
}

/// Checks that each of several bands has a distinct name.
fn check_bands(limit: &Limit, chosen: &ChosenTemplate<'_>) -> Result<(), ConfigFault> {
    if limit.bands.len() < 2 {
        return Ok(());
    }
    if !chosen.template.pieces().contains(&TemplatePiece::Band) {
        let message = format!(
            "{} has no {{band}}, but `{}` has several bands",
            chosen.show(),
            limit.name
        );
        return Err(ConfigFault::new(message).help(format!(
            "add it: template: \"{}:{{band}}\"",
            chosen.template
        )));
    }
    if let Some(band) = limit.bands.iter().find(|band| band.label.is_none()) {
        let message = format!(
            "{} uses band labels, but `{}` has none",
            chosen.show(),
            band.text
        );
        return Err(
            ConfigFault::new(message).help(format!("write {{ rate: {}, label: NAME }}", band.text))
        );
    }
    Ok(())
}
