//! Translates limits into a policy.

use super::limits::{PluginLimit, PluginLimits};
use super::rule::PluginRule;
use crate::draft::{AlgorithmDraft, LimitDraft, PolicyDraft, RateDraft, RequestScope};
use crate::names::{self, NameRequest};
use crate::note::ImportNotes;
use tidegate_policy::limit::ChargeTime;

/// Returns the policy for the limits of a document.
///
/// A limit is named after the alphabetically first of its rules, not after its position or the rule
/// written first. So inserting another limit before it, or reordering its rules, neither swaps nor
/// loses counters.
pub(super) fn policy(
    name: &str,
    found: &PluginLimits,
    (file, line): (&str, usize),
    notes: &mut ImportNotes,
) -> PolicyDraft {
    let names = called(&found.0);
    let limits = found.0.iter().zip(names);
    let mut limits: Vec<LimitDraft> = limits.map(|(limit, name)| draft(limit, name)).collect();
    if limits.is_empty() {
        notes.warn((file, line), "no limits found: every request passes");
        limits.push(LimitDraft::for_no_request());
    }
    PolicyDraft {
        name: name.to_owned(),
        domain: name.to_owned(),
        evaluate: "first",
        charge: ChargeTime::IfFits,
        limits,
    }
}

/// Returns the name of each limit.
fn called(limits: &[PluginLimit]) -> Vec<String> {
    let wanted = limits.iter().map(|limit| {
        let rules = limit.rules.iter();
        let least = rules.map(|rule| (rule.made_up(), rule.identity())).min();
        let (text, of) = least.unwrap_or_default();
        NameRequest::made_up(text, of)
    });
    names::all(&wanted.collect::<Vec<_>>(), &["none"])
}

fn draft(limit: &PluginLimit, name: String) -> LimitDraft {
    LimitDraft {
        whom: RequestScope::Any(limit.rules.iter().map(PluginRule::condition).collect()),
        rates: vec![RateDraft {
            text: format!("{}/s", limit.amount),
            label: None,
        }],
        ..LimitDraft::new(name, AlgorithmDraft::Bucketed)
    }
}

#[cfg(test)]
mod tests {
    use crate::{LimitsOptions, traefik_plugin_limits};

    /// Returns the names of the limits for these headers.
    fn names(headers: &[(&str, &str)]) -> Vec<String> {
        let limits = headers.iter().map(|(key, value)| {
            format!(
                r#"{{ "rules": [{{ "urlpathpattern": "/a", "headerkey": "{key}", "headerval": "{value}" }}], "limit": 1 }}"#
            )
        });
        let limits: Vec<String> = limits.collect();
        let text = format!(r#"{{ "limits": [{}] }}"#, limits.join(", "));
        let imported = traefik_plugin_limits("keeper", &text, &LimitsOptions::default());
        let part = imported.expect("a valid config").to_part();
        let names = part
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- name: "));
        names.skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn a_limit_was_named_by_the_token_of_its_rule() {
        let headers = [
            ("Authorization", "Bearer S3cretToken"),
            ("Authorization", "Bearer other"),
            ("Tier", "Free"),
        ];
        let names = names(&headers);
        let [secret, other, open] = names.as_slice() else {
            panic!("{names:?}");
        };
        assert_eq!(open, "a.tier-free");
        for name in [secret, other] {
            let hash = name
                .strip_prefix("a.authorization-")
                .expect("the key is told");
            assert!(hash.len() == 8 && hash.bytes().all(|it| it.is_ascii_hexdigit()));
        }
        assert_ne!(secret, other);
        // The case of a value does not matter, not even in its hash.
        let loud = self::names(&[("AUTHORIZATION", "BEARER S3CRETTOKEN")]);
        assert_eq!(loud.first(), Some(secret));
    }
}
