//! Limits, policies and the helpers with which tests match requests.

use crate::matching::{HostPattern, KeyRules, PathPattern};
use crate::{Condition, Evaluate, KeyPart, Limit, Policy, Request, Scratch};

/// An enabled, enforced limit for every request, in one bucket.
pub(super) fn limit(name: &str) -> Limit {
    Limit::new(name)
}

/// A limit for these paths.
pub(super) fn limit_for(name: &str, paths: &[&str]) -> Limit {
    Limit {
        conditions: paths.iter().map(|path| on_path(path)).collect(),
        ..limit(name)
    }
}

/// A limit under this condition.
pub(super) fn limit_if(name: &str, condition: Condition) -> Limit {
    Limit {
        conditions: vec![condition],
        ..limit(name)
    }
}

pub(super) fn on_path(path: &str) -> Condition {
    Condition {
        path: Some(pattern(path)),
        ..Condition::default()
    }
}

pub(super) fn on_host(host: &str) -> Condition {
    Condition {
        hosts: vec![HostPattern::parse(host).unwrap()],
        ..Condition::default()
    }
}

pub(super) fn on_header(name: &str, value: &str) -> Condition {
    Condition {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..Condition::default()
    }
}

pub(super) fn pattern(text: &str) -> PathPattern {
    PathPattern::parse(text).unwrap()
}

pub(super) fn all(limits: Vec<Limit>) -> Policy {
    Policy::new("p".to_owned(), Evaluate::All, limits)
}

pub(super) fn first(limits: Vec<Limit>) -> Policy {
    Policy::new("p".to_owned(), Evaluate::First, limits)
}

/// Returns the names of the applicable limits, or `!name` if one refuses.
pub(super) fn met(policy: &Policy, request: &Request<'_>) -> String {
    let mut scratch = Scratch::default();
    let meeting = policy.meet(request, &KeyRules::default(), &mut scratch);
    if let Some(refused) = meeting.refused {
        assert!(meeting.met.is_empty(), "a refusal meets nothing else");
        return format!("!{}", policy.limits[refused.limit].name);
    }
    let names = meeting
        .met
        .iter()
        .map(|met| policy.limits[met.limit].name.as_str());
    names.collect::<Vec<_>>().join(" ")
}

/// Returns the key of a limit by `parts` as shown to operators; empty if the limit does not apply.
pub(super) fn subject(parts: &[KeyPart], request: &Request<'_>) -> String {
    let policy = all(vec![Limit {
        key: parts.to_vec(),
        ..limit("l")
    }]);
    let mut scratch = Scratch::default();
    let meeting = policy.meet(request, &KeyRules::default(), &mut scratch);
    let met = &meeting.met[0];
    let subject = meeting.subject(met);
    assert_eq!(meeting.bucket(met), format!("p/l/{subject}").as_bytes());
    subject.to_owned()
}
