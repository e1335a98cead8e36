//! Limits as a policy.

use super::limits::{Found, Limit};
use super::rule::Rule;
use crate::import::draft::{Counting, LimitDraft, PolicyDraft, RateDraft, Whom};
use crate::import::names::Names;
use crate::import::note::Notes;
use std::collections::BTreeMap;

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
    let names = names(&found.0);
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

/// What each of them is called. Where two would be called the same, the number does not go by their
/// places either.
fn names(limits: &[Limit]) -> Vec<String> {
    let least = |limit: &Limit| {
        let rules = limit.rules.iter();
        rules.map(|rule| (rule.made_up(), rule.identity())).min()
    };
    let mut sorted: Vec<(Option<(String, String)>, usize)> =
        limits.iter().map(least).zip(0..).collect();
    sorted.sort_unstable();
    let mut taken = Names::without(&["none"]);
    let named = sorted.into_iter().map(|(least, at)| {
        let made_up = least.map(|(made_up, _)| made_up);
        (at, taken.take(&made_up.unwrap_or_default()))
    });
    let named: BTreeMap<usize, String> = named.collect();
    named.into_values().collect()
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
