//! Limits as a policy.

use super::limits::{Found, Limit};
use super::rule::Rule;
use crate::import::draft::{Counting, LimitDraft, PolicyDraft, RateDraft, Whom};
use crate::import::names::{self, Wanted};
use crate::import::note::Notes;

/// The policy for the limits of a document.
///
/// A limit is called after the first of its rules by the alphabet, and neither after its place nor after
/// the rule that happens to be written first: whoever puts another before it, or its own rules in
/// another order, exchanges and forgets no counters.
pub(super) fn policy(
    name: &str,
    found: &Found,
    (file, line): (&str, usize),
    notes: &mut Notes,
) -> PolicyDraft {
    let names = called(&found.0);
    let limits = found.0.iter().zip(names);
    let mut limits: Vec<LimitDraft> = limits.map(|(limit, name)| draft(limit, name)).collect();
    if limits.is_empty() {
        notes.warn(
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

/// What each of them is called.
fn called(limits: &[Limit]) -> Vec<String> {
    let wanted = limits.iter().map(|limit| {
        let rules = limit.rules.iter();
        let least = rules.map(|rule| (rule.made_up(), rule.identity())).min();
        let (text, of) = least.unwrap_or_default();
        Wanted::made_up(text, of)
    });
    names::all(&wanted.collect::<Vec<_>>(), &["none"])
}

fn draft(limit: &Limit, name: String) -> LimitDraft {
    LimitDraft {
        whom: Whom::Any(limit.rules.iter().map(Rule::condition).collect()),
        rates: vec![RateDraft {
            text: format!("{}/s", limit.amount),
            label: None,
        }],
        ..LimitDraft::new(name, Counting::Bucketed)
    }
}
