//! The variables of an event collector, whose responses are `respond: { profile: collector }`.
//!
//! Users who migrate from the collector have these variables set already. Their names are common ones.
//! They therefore apply only to a configuration that has the collector's profile at its top level.
//!
//! | module | contents |
//! |---|---|
//! | this one | every variable except those of Redis itself, and the settings it fills |
//! | `whose` | the guard that a variable belongs to |
//! | `redis` | the URL of Redis, and its password |

mod redis;
mod whose;

use super::environment::{Environment, expand};
use super::fault::ConfigFault;
use super::overrides::at;
use super::reader::ConfigReader;
use super::syntax::{NodeKind, TextSpan, YamlNode};
use whose::{CollectorSection, SettingOwner, find};

/// The top-level profile that enables these variables.
const PROFILE: &str = "collector";

/// A variable and the settings that it fills.
struct CollectorVariable {
    name: &'static str,
    says: &'static [(CollectorSection, &'static [&'static str])],
}

const VARIABLES: [CollectorVariable; 7] = [
    variable(
        "REDIS_DISABLED_PROJECT_SET",
        &[(CollectorSection::Projects, &["redis", "set"])],
    ),
    variable(
        "BLOCKED_PROJECTS_UPDATE_PERIOD",
        &[(CollectorSection::Projects, &["refresh"])],
    ),
    variable(
        "REDIS_BLACKLIST_IP_SET",
        &[(CollectorSection::Blacklist, &["redis", "set"])],
    ),
    // The collector finds banned addresses and reads them in the same step, so one period serves for
    // both.
    variable(
        "BLACKLIST_UPDATE_PERIOD",
        &[
            (CollectorSection::Blacklist, &["refresh"]),
            (CollectorSection::Counts, &["period"]),
        ],
    ),
    variable(
        "BLACKLIST_THRESHOLD",
        &[(CollectorSection::Counts, &["threshold"])],
    ),
    variable(
        "REDIS_ALL_IPS_MAP",
        &[(CollectorSection::Counts, &["maps", "total"])],
    ),
    variable(
        "REDIS_CURRENT_PERIOD_MAP",
        &[(CollectorSection::Counts, &["maps", "period"])],
    ),
];

const fn variable(
    name: &'static str,
    says: &'static [(CollectorSection, &'static [&'static str])],
) -> CollectorVariable {
    CollectorVariable { name, says }
}

/// Puts the values of these variables into the tree, if the configuration has the collector's profile.
/// Call it after Tidegate's own variables are applied: their values stay.
pub(super) fn apply(reader: &mut ConfigReader<'_>, root: &mut YamlNode) {
    let environment = reader.environment();
    let profile = root.get("respond").and_then(|it| it.get("profile"));
    let profile = profile.map(|it| text(it, environment));
    if profile.as_deref() != Some(PROFILE) || !environment.looks_up() {
        return;
    }
    for variable in &VARIABLES {
        let Some(said) = said(variable.name, environment) else {
            continue;
        };
        let mut heard = false;
        for (whose, path) in variable.says {
            match find(root, *whose, variable.name, environment) {
                SettingOwner::One(node) => {
                    put(node, path, &said, TextSpan::Variable(variable.name));
                }
                SettingOwner::Named => {}
                SettingOwner::None => continue,
                SettingOwner::Several(names) => {
                    let spot = (TextSpan::Variable(variable.name), "guards".to_owned());
                    reader.error(spot, several(variable.name, path, &names));
                }
            }
            heard = true;
        }
        if !heard {
            let spot = (TextSpan::Variable(variable.name), String::new());
            reader.warn(spot, unheard(variable.says));
        }
    }
    redis::apply(root, environment);
}

/// Puts a value at `path` below a node and creates the maps on the way.
fn put(node: &mut YamlNode, path: &[&'static str], said: &str, place: TextSpan) {
    let Some((first, rest)) = path.split_first() else {
        *node = scalar(said, place);
        return;
    };
    // A node of another kind is reported when it is read.
    if let NodeKind::Map(fields) = &mut node.kind {
        put(
            at(fields, first, place, NodeKind::Map(Vec::new())),
            rest,
            said,
            place,
        );
    }
}

fn scalar(text: &str, place: TextSpan) -> YamlNode {
    YamlNode {
        place,
        kind: NodeKind::Text(text.to_owned()),
    }
}

/// Returns the value of a variable; `None` if it is unset or empty.
fn said(name: &str, environment: &dyn Environment) -> Option<String> {
    let said = environment.variable(name)?;
    let said = said.trim();
    (!said.is_empty()).then(|| said.to_owned())
}

/// Returns a text with its variables replaced as far as possible. Errors in it are reported when the
/// text is read.
fn text(node: &YamlNode, environment: &dyn Environment) -> String {
    let text = node.as_text().unwrap_or_default();
    match node.place {
        TextSpan::Variable(_) => text.to_owned(),
        TextSpan::File { .. } => expand(text, environment).unwrap_or_else(|_| text.to_owned()),
    }
}

fn several(variable: &str, path: &[&str], names: &[String]) -> ConfigFault {
    let names: Vec<String> = names.iter().map(|name| ConfigFault::quote(name)).collect();
    let message = format!("it could be for any of the guards {}", names.join(", "));
    let setting = path.last().copied().unwrap_or_default();
    ConfigFault::new(message).help(format!(
        "write `{setting}: ${{{variable}}}` at the one that is meant"
    ))
}

fn unheard(says: &[(CollectorSection, &[&str])]) -> ConfigFault {
    let (why, help) = match says.first() {
        Some((CollectorSection::Projects, _)) => (
            "no guard blocks anybody by a set in Redis",
            "add one: `{ name: projects, refuse: attr:project, redis: { set: DisabledProjectsSet } }`",
        ),
        Some((CollectorSection::Blacklist, _)) => (
            "no guard refuses addresses by a set in Redis",
            "add one: `{ name: blacklist, refuse: ip, redis: { set: BlacklistIPsSet } }`",
        ),
        _ => (
            "no requests are counted by address",
            "add `addresses`, or unset it",
        ),
    };
    ConfigFault::new(format!("this has no effect: {why}")).help(help)
}
