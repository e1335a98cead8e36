//! The guard that a variable belongs to.

use super::text;
use crate::environment::Environment;
use crate::syntax::{NodeKind, YamlNode};

/// The section that a variable belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CollectorSection {
    /// The guard that refuses blocked projects.
    Projects,
    /// The guard that refuses banned addresses.
    Blacklist,
    /// `addresses`.
    Counts,
}

/// The result of the search for the owner of a setting.
pub(super) enum SettingOwner<'a> {
    One(&'a mut YamlNode),
    None,
    /// The file refers to the variable itself, and so decides what it sets.
    Named,
    /// The names of several guards that it could belong to.
    Several(Vec<String>),
}

pub(super) fn find<'a>(
    root: &'a mut YamlNode,
    whose: CollectorSection,
    variable: &str,
    environment: &dyn Environment,
) -> SettingOwner<'a> {
    if whose == CollectorSection::Counts {
        let is_map = |node: &&mut YamlNode| matches!(node.kind, NodeKind::Map(_));
        let counts = section(root, "addresses").filter(is_map);
        return counts.map_or(SettingOwner::None, SettingOwner::One);
    }
    let banning = root.get("addresses").and_then(|it| it.get("ban"));
    let banning = banning.and_then(|it| it.get("guard"));
    let banning = banning.map(|it| text(it, environment));
    let name = |guard: &YamlNode| guard.get("name").map(|it| text(it, environment));
    let is_meant = |guard: &YamlNode| match (whose, &banning) {
        (CollectorSection::Blacklist, Some(banning)) => name(guard).as_deref() == Some(banning),
        _ => is_candidate(guard, whose, environment),
    };
    let meant: Vec<&YamlNode> = guards(root).iter().filter(|it| is_meant(it)).collect();
    let mention = format!("${{{variable}");
    if meant.iter().any(|guard| mentions(guard, &mention)) {
        return SettingOwner::Named;
    }
    if meant.len() > 1 {
        return SettingOwner::Several(meant.into_iter().filter_map(name).collect());
    }
    let Some(NodeKind::List(guards)) = section(root, "guards").map(|it| &mut it.kind) else {
        return SettingOwner::None;
    };
    let found = guards.iter_mut().find(|it| is_meant(it));
    found.map_or(SettingOwner::None, SettingOwner::One)
}

/// Returns true if a guard refuses by a set in Redis: addresses for `Blacklist`, other blocked subjects
/// for `Projects`.
fn is_candidate(guard: &YamlNode, whose: CollectorSection, environment: &dyn Environment) -> bool {
    let (Some(subject), Some(_)) = (guard.get("deny"), guard.get("redis")) else {
        return false;
    };
    let reason = guard.get("reason").map(|it| text(it, environment));
    match (text(subject, environment).trim(), whose) {
        ("ip", whose) => whose == CollectorSection::Blacklist,
        (_, whose) => {
            whose == CollectorSection::Projects
                && reason.is_none_or(|reason| reason.trim() == "blocked")
        }
    }
}

pub(super) fn guards(root: &YamlNode) -> &[YamlNode] {
    match root.get("guards").map(|it| &it.kind) {
        Some(NodeKind::List(guards)) => guards,
        _ => &[],
    }
}

fn section<'a>(root: &'a mut YamlNode, name: &str) -> Option<&'a mut YamlNode> {
    let NodeKind::Map(sections) = &mut root.kind else {
        return None;
    };
    let mut sections = sections.iter_mut();
    let found = sections.find(|entry| entry.key.text == name);
    found.map(|entry| &mut entry.value)
}

/// Returns true if a text in this node contains `what`.
fn mentions(node: &YamlNode, what: &str) -> bool {
    match &node.kind {
        NodeKind::Text(text) => text.contains(what),
        NodeKind::List(items) => items.iter().any(|item| mentions(item, what)),
        NodeKind::Map(entries) => entries.iter().any(|entry| mentions(&entry.value, what)),
        NodeKind::Null | NodeKind::Broken => false,
    }
}
