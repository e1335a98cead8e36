//! Which guard a variable means.

use super::text;
use crate::config::environment::Environment;
use crate::config::syntax::{Kind, Node};

/// What has a setting.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The guard that keeps blocked projects out.
    Projects,
    /// The guard that keeps addresses out.
    Blacklist,
    /// `addresses`.
    Counts,
}

/// What was found to have a setting.
pub(super) enum Found<'a> {
    One(&'a mut Node),
    None,
    /// The file names the variable itself, and so has said whose it is.
    Named,
    /// These guards, any of which it could be.
    Several(Vec<String>),
}

pub(super) fn find<'a>(
    root: &'a mut Node,
    whose: Whose,
    variable: &str,
    environment: &dyn Environment,
) -> Found<'a> {
    if whose == Whose::Counts {
        let is_map = |node: &&mut Node| matches!(node.kind, Kind::Map(_));
        let counts = section(root, "addresses").filter(is_map);
        return counts.map_or(Found::None, Found::One);
    }
    let banning = root.get("addresses").and_then(|it| it.get("ban"));
    let banning = banning.and_then(|it| it.get("guard"));
    let banning = banning.map(|it| text(it, environment));
    let name = |guard: &Node| guard.get("name").map(|it| text(it, environment));
    let is_meant = |guard: &Node| match (whose, &banning) {
        (Whose::Blacklist, Some(banning)) => name(guard).as_deref() == Some(banning),
        _ => is_candidate(guard, whose, environment),
    };
    let meant: Vec<&Node> = guards(root).iter().filter(|it| is_meant(it)).collect();
    let mention = format!("${{{variable}");
    if meant.iter().any(|guard| mentions(guard, &mention)) {
        return Found::Named;
    }
    if meant.len() > 1 {
        return Found::Several(meant.into_iter().filter_map(name).collect());
    }
    let Some(Kind::List(guards)) = section(root, "guards").map(|it| &mut it.kind) else {
        return Found::None;
    };
    let found = guards.iter_mut().find(|it| is_meant(it));
    found.map_or(Found::None, Found::One)
}

/// Whether a guard refuses by a set in Redis: addresses, or whoever else is blocked.
fn is_candidate(guard: &Node, whose: Whose, environment: &dyn Environment) -> bool {
    let (Some(subject), Some(_)) = (guard.get("refuse"), guard.get("redis")) else {
        return false;
    };
    let reason = guard.get("reason").map(|it| text(it, environment));
    match (text(subject, environment).trim(), whose) {
        ("ip", whose) => whose == Whose::Blacklist,
        (_, whose) => {
            whose == Whose::Projects && reason.is_none_or(|reason| reason.trim() == "blocked")
        }
    }
}

pub(super) fn guards(root: &Node) -> &[Node] {
    match root.get("guards").map(|it| &it.kind) {
        Some(Kind::List(guards)) => guards,
        _ => &[],
    }
}

fn section<'a>(root: &'a mut Node, name: &str) -> Option<&'a mut Node> {
    let Kind::Map(sections) = &mut root.kind else {
        return None;
    };
    let mut sections = sections.iter_mut();
    let found = sections.find(|entry| entry.key.text == name);
    found.map(|entry| &mut entry.value)
}

/// Whether any text in here has this in it.
fn mentions(node: &Node, what: &str) -> bool {
    match &node.kind {
        Kind::Text(text) => text.contains(what),
        Kind::List(items) => items.iter().any(|item| mentions(item, what)),
        Kind::Map(entries) => entries.iter().any(|entry| mentions(&entry.value, what)),
        Kind::Null | Kind::Broken => false,
    }
}
