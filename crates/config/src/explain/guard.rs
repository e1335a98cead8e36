//! Describes guards.

use super::subject::noun;
use super::words::time;
use tidegate_core::LimitMode;
use tidegate_policy::guard::{Guard, GuardEffect, ListOrigin};
use tidegate_policy::text::counted;

/// Describes a guard.
pub(super) fn explain(guard: &Guard, ipv6_prefix: u8) -> String {
    let subject = noun(&guard.subject, ipv6_prefix);
    let does = match (guard.effect, guard.mode) {
        (GuardEffect::Refuse, LimitMode::Enforce) => format!(
            "refuses requests with a listed {subject} before any limit applies, as `{}`",
            guard.reason.as_str()
        ),
        (GuardEffect::Refuse, LimitMode::Shadow) => {
            format!("counts requests with a listed {subject} and refuses none")
        }
        (GuardEffect::Exempt, LimitMode::Enforce) => {
            format!("allows requests with a listed {subject}; no other guard or limit applies")
        }
        (GuardEffect::Exempt, LimitMode::Shadow) => {
            format!("counts requests with a listed {subject} and exempts none")
        }
    };
    let state = if guard.enabled { "" } else { " (off)" };
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
            let values = counted(members.len(), "value", "values");
            return format!("The list is in the configuration: {values}.");
        }
        ListOrigin::File(path) => format!("the file {path}"),
        ListOrigin::Redis { set, at: None } => format!("the set `{set}` in the store's Redis"),
        ListOrigin::Redis { set, at: Some(at) } => format!("the set `{set}` in {at}"),
    };
    if !guard.enabled {
        return format!("The list is {from}, which is not read while the guard is disabled.");
    }
    format!(
        "The list is {from}, read every {} with a timeout of {}; if a read fails, the last good \
         list is used.",
        time(guard.refresh),
        time(guard.timeout)
    )
}
