//! The variables of an event collector, whose answers are `respond: { profile: collector }`.
//!
//! Whoever comes from there has them set already. Their names are common ones, so nobody else's
//! configuration listens to them: only one that answers as the collector does, at its top.
//!
//! | module | what it is |
//! |---|---|
//! | this one | every variable but those of Redis itself, and what it says |
//! | `whose` | which guard a variable means |
//! | `redis` | where Redis is, and its password |

mod redis;
mod whose;

use super::environment::{Environment, expand};
use super::fault::ConfigFault;
use super::overrides::at;
use super::reader::ConfigReader;
use super::syntax::{NodeKind, TextSpan, YamlNode};
use whose::{CollectorSection, SettingOwner, find};

/// The profile at the top that makes these variables count.
const PROFILE: &str = "collector";

/// A variable, and all that it says.
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
    // There, who is banned is found out and read in the same step.
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

/// Puts what these variables say into the tree, where it is the collector's. What a variable of our
/// own has said stays, so it is to be put there before.
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

/// Puts a value below a node, and what is missing on the way there.
fn put(node: &mut YamlNode, path: &[&'static str], said: &str, place: TextSpan) {
    let Some((first, rest)) = path.split_first() else {
        *node = scalar(said, place);
        return;
    };
    // What is of another kind is reported when it is read.
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

/// What a variable says; set to nothing, it is not set.
fn said(name: &str, environment: &dyn Environment) -> Option<String> {
    let said = environment.variable(name)?;
    let said = said.trim();
    (!said.is_empty()).then(|| said.to_owned())
}

/// A text with its variables replaced as far as that can be done: whoever reads it says what is
/// wrong with it.
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
