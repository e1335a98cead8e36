//! Limits as a policy.

use super::limits::{Found, Limit};
use super::rule::Rule;
use crate::import::draft::{Counting, LimitDraft, PolicyDraft, RateDraft, Whom};
use crate::import::names::Names;
use crate::import::note::Notes;

/// The policy for the limits of a document.
///
/// A limit is called after its first rule and not after its place: whoever puts another before it does
/// not exchange their counters.
pub(super) fn policy(
    name: &str,
    found: &Found,
    (file, line): (&str, usize),
    notes: &mut Notes,
) -> PolicyDraft {
    let mut names = Names::without(&["none"]);
    let limits = found.0.iter();
    let mut limits: Vec<LimitDraft> = limits.map(|limit| draft(limit, &mut names)).collect();
    if limits.is_empty() {
        notes.add(
            (file, line),
            "there are no limits here: every request passes",
        );
        limits.push(LimitDraft::nobody());
    }
    PolicyDraft {
        name: name.to_owned(),
        domain: name.to_owned(),
        evaluate: "first",
        limits,
    }
}

fn draft(limit: &Limit, names: &mut Names) -> LimitDraft {
    let made_up = limit.rules.first().map(Rule::made_up);
    let name = names.take(&made_up.unwrap_or_default());
    LimitDraft {
        whom: Whom::Any(limit.rules.iter().map(Rule::condition).collect()),
        rates: vec![RateDraft {
            text: format!("{}/s", limit.amount),
            label: None,
        }],
        ..LimitDraft::new(name, Counting::Bucketed)
    }
}
