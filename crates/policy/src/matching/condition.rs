//! The parts of a condition besides the path.

use super::facts::MatchInput;
use crate::patterns::EntryPattern;
use crate::{Condition, Descriptor};

/// Returns true if everything except path and descriptor holds; the trie checks the path.
pub(crate) fn holds(condition: &Condition, facts: &MatchInput<'_>) -> bool {
    method_holds(condition, facts)
        && host_holds(condition, facts)
        && client_holds(condition, facts)
        && headers_hold(condition, facts)
        && attributes_hold(condition, facts)
}

/// Returns true if a descriptor has an entry for each of these patterns.
pub(crate) fn is_held(entries: &[EntryPattern], descriptor: &Descriptor<'_>) -> bool {
    entries.iter().all(|wanted| {
        let mut sent = descriptor.entries.iter();
        sent.any(|(name, value)| wanted.matches(name, value))
    })
}

fn method_holds(condition: &Condition, facts: &MatchInput<'_>) -> bool {
    condition.methods.is_empty()
        || facts.request.method.is_some_and(|method| {
            condition
                .methods
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(method))
        })
}

fn host_holds(condition: &Condition, facts: &MatchInput<'_>) -> bool {
    condition.hosts.is_empty()
        || facts
            .host
            .is_some_and(|host| condition.hosts.iter().any(|pattern| pattern.matches(host)))
}

fn client_holds(condition: &Condition, facts: &MatchInput<'_>) -> bool {
    condition.clients.is_empty()
        || facts
            .ip
            .is_some_and(|ip| condition.clients.iter().any(|net| net.contains(&ip)))
}

/// Returns true if each header is present and not empty. A condition with an empty value accepts any value.
fn headers_hold(condition: &Condition, facts: &MatchInput<'_>) -> bool {
    condition.headers.iter().all(|(name, wanted)| {
        facts.header(name).any(|sent| {
            !sent.is_empty() && (wanted.is_empty() || sent.eq_ignore_ascii_case(wanted))
        })
    })
}

fn attributes_hold(condition: &Condition, facts: &MatchInput<'_>) -> bool {
    condition
        .attributes
        .iter()
        .all(|(name, wanted)| facts.attribute(name).any(|known| known == wanted))
}
