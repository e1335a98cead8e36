//! The variables of an event collector, whose responses are `respond: { profile: collector }`.
//!
//! Users who migrate from the collector have these variables set already. Their names are common ones.
//! They therefore apply only to a configuration that has the collector's profile at its top level.
//!
//! | module | contents |
//! |---|---|
//! | this one | every variable except those of Redis itself, and the settings it fills |
//! | `section` | the guard that a variable belongs to |
//! | `redis` | the URL of Redis, and its password |

mod redis;
mod section;

use super::environment::{Environment, expand};
use super::syntax::{NodeKind, TextSpan, YamlNode, at};
use crate::language::reader::ConfigReader;
use section::{CollectorSection, SettingOwner, find};
use tidegate_policy::text::ConfigFault;

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

/// The variables for the maps of counts, their fields in `addresses.maps`, and the collector's names.
const MAPS: [(&str, &str, &str); 2] = [
    ("REDIS_ALL_IPS_MAP", "total", "AllIPsMap"),
    ("REDIS_CURRENT_PERIOD_MAP", "period", "CurrentPeriodMap"),
];

const fn variable(
    name: &'static str,
    says: &'static [(CollectorSection, &'static [&'static str])],
) -> CollectorVariable {
    CollectorVariable { name, says }
}

/// Puts the values of these variables into the tree, if the configuration has the collector's profile.
/// Call it after Tidegate's own variables are applied: their values stay.
pub(crate) fn apply(reader: &mut ConfigReader<'_>, root: &mut YamlNode) {
    let environment = reader.environment();
    let profile = root.get("respond").and_then(|it| it.get("profile"));
    let profile = profile.map(|it| text(it, environment));
    if profile.as_deref() != Some(PROFILE) || !environment.looks_up() {
        return;
    }
    for variable in &VARIABLES {
        let Some(said) = variable_value(variable.name, environment) else {
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
            reader.warn(spot, unused_variable(variable.says));
        }
    }
    name_maps(root);
    redis::apply(root, environment);
}

/// Names the maps of `addresses` as the collector does, where neither the file nor a variable does.
fn name_maps(root: &mut YamlNode) {
    let NodeKind::Map(sections) = &mut root.kind else {
        return;
    };
    let Some(counts) = sections.iter_mut().find(|it| it.key.text == "addresses") else {
        return;
    };
    for (variable, map, name) in MAPS {
        let maps = counts.value.get("maps");
        let is_map = |it: &YamlNode| matches!(it.kind, NodeKind::Map(_));
        if maps.is_none_or(|maps| is_map(maps) && maps.get(map).is_none()) {
            let path = ["maps", map];
            put(&mut counts.value, &path, name, TextSpan::Variable(variable));
        }
    }
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
fn variable_value(name: &str, environment: &dyn Environment) -> Option<String> {
    let value = environment.variable(name)?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
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
    let message = format!(
        "ambiguous: it could set any of the guards {}",
        names.join(", ")
    );
    let setting = path.last().copied().unwrap_or_default();
    ConfigFault::new(message).help(format!(
        "write `{setting}: ${{{variable}}}` in the guard it is for"
    ))
}

fn unused_variable(says: &[(CollectorSection, &[&str])]) -> ConfigFault {
    let (why, help) = match says.first() {
        Some((CollectorSection::Projects, _)) => (
            "no guard blocks by a set in Redis",
            "add one: `{ name: projects, deny: attr:project, redis: { set: DisabledProjectsSet } }`",
        ),
        Some((CollectorSection::Blacklist, _)) => (
            "no guard refuses addresses by a set in Redis",
            "add one: `{ name: blacklist, deny: ip, redis: { set: BlacklistIPsSet } }`",
        ),
        _ => (
            "no requests are counted by address",
            "add `addresses`, or unset it",
        ),
    };
    ConfigFault::new(format!("this has no effect: {why}")).help(help)
}
