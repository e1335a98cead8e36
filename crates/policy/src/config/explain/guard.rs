//! Describes guards.

use super::subject::noun;
use super::words::time;
use crate::guard::{Guard, GuardEffect, ListOrigin};
use tidegate_core::LimitMode;

/// Describes a guard.
pub(super) fn explain(guard: &Guard, ipv6_prefix: u8) -> String {
    let subject = noun(&guard.subject, ipv6_prefix);
    let does = match (guard.effect, guard.mode) {
        (GuardEffect::Refuse, LimitMode::Enforce) => format!(
            "refuses every request whose {subject} is listed, before any limit is asked, as `{}`",
            guard.reason.as_str()
        ),
        (GuardEffect::Refuse, LimitMode::Shadow) => {
            format!("counts requests whose {subject} is listed, and refuses none")
        }
        (GuardEffect::Exempt, LimitMode::Enforce) => {
            format!("lets every request pass whose {subject} is listed; nothing else is asked")
        }
        (GuardEffect::Exempt, LimitMode::Shadow) => {
            format!("counts requests whose {subject} is listed, and exempts none")
        }
    };
    let state = if guard.enabled {
        ""
    } else {
        " (disabled: it is not asked)"
    };
    let mut lines = vec![
        format!("Guard `{}`{state}: {does}.", guard.name),
        list(guard),
    ];
    if let Some(refusal) = &guard.refusal {
        lines.push(format!("Refusals have status {}.", refusal.status));
    }
    lines.join("\n  ")
}

/// Returns "The list is …".
fn list(guard: &Guard) -> String {
    let from = match &guard.origin {
        ListOrigin::List(members) => {
            let plural = if members.len() == 1 { "" } else { "s" };
            return format!("The list is written here: {} value{plural}.", members.len());
        }
        ListOrigin::File(path) => format!("the file {path}"),
        ListOrigin::Redis { set, at: None } => format!("the set `{set}` in the store's Redis"),
        ListOrigin::Redis { set, at: Some(at) } => format!("the set `{set}` in {at}"),
    };
    if !guard.enabled {
        return format!("The list is {from}, which is not read meanwhile.");
    }
    format!(
        "The list is {from}, read every {}, each time within {}; while it cannot be read, the last one counts.",
        time(guard.refresh),
        time(guard.timeout)
    )
}
