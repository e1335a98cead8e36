//! Rules of which only the most specific one applies, as limits that replace others.
//!
//! A location of nginx and a router of Traefik are *scopes*: the requests that they match, and the limits
//! that apply to these. Of several scopes that match a request, one applies. In Tidegate all limits that
//! match apply, except for those that another one `replaces`.

use crate::draft::ConditionDraft;
use std::collections::BTreeSet;
use tidegate_policy::text::ConfigFault;

/// The most scopes: the time and memory for their order grow with the square of their number.
const SCOPES_MAX: usize = 2_000;

/// A scope.
#[derive(Clone, Debug)]
pub(super) struct RuleScope {
    /// The requests that it matches; all if there are none.
    pub(super) conditions: Vec<ConditionDraft>,
    /// The indices of its limits.
    pub(super) uses: Vec<usize>,
}

/// A limit with the scopes that use it.
#[derive(Debug)]
pub(super) struct ScopedLimit {
    /// The index of the limit.
    pub(super) of: usize,
    pub(super) scopes: Vec<usize>,
    /// The indices of the scoped limits that it replaces.
    pub(super) replaces: BTreeSet<usize>,
}

/// A scope that replaces limits although no limit of it can.
#[derive(Debug)]
pub(super) struct ExemptScope {
    pub(super) scope: usize,
    pub(super) replaces: BTreeSet<usize>,
}

/// The scopes as limits.
#[derive(Debug, Default)]
pub(super) struct SolvedScopes {
    pub(super) limits: Vec<ScopedLimit>,
    pub(super) exempt: Vec<ExemptScope>,
}

/// The relations of scopes.
struct ScopeOrder<'s> {
    scopes: &'s [RuleScope],
    /// `beats[a][b]`: both may match a request, and `a` applies to it.
    beats: Vec<Vec<bool>>,
    is_kept: Vec<bool>,
}

/// Returns limits that apply as the scopes do. `beats` decides which of two scopes applies to a request that
/// both match. `is_certain` is true for a limit that applies to all requests of its scopes.
///
/// # Errors
///
/// Returns an error if there are too many scopes.
pub(super) fn solve(
    scopes: &[RuleScope],
    beats: impl Fn(usize, usize) -> bool,
    is_certain: impl Fn(usize) -> bool,
) -> Result<SolvedScopes, ConfigFault> {
    if scopes.len() > SCOPES_MAX {
        let fault = ConfigFault::new(format!(
            "{} locations or routers are too many",
            scopes.len()
        ));
        return Err(fault.help(format!(
            "expected at most {SCOPES_MAX}: import parts of the file"
        )));
    }
    let row = |a: usize, scope: &RuleScope| {
        let others = scopes.iter().enumerate();
        let others = others.map(|(b, other)| a != b && overlap(scope, other) && beats(a, b));
        others.collect()
    };
    let mut order = ScopeOrder {
        scopes,
        beats: scopes
            .iter()
            .enumerate()
            .map(|(a, it)| row(a, it))
            .collect(),
        is_kept: vec![true; scopes.len()],
    };
    order.drop_redundant();
    let mut solved = SolvedScopes {
        limits: order.split(),
        exempt: Vec::new(),
    };
    for scope in order.kept() {
        let replaces = order.replaced(scope, &solved.limits);
        if replaces.is_empty() {
            continue;
        }
        let mut limits = solved.limits.iter_mut();
        let own = limits.find(|it| it.scopes == [scope] && is_certain(it.of));
        match own {
            Some(limit) => limit.replaces = replaces,
            None => solved.exempt.push(ExemptScope { scope, replaces }),
        }
    }
    Ok(solved)
}

impl ScopeOrder<'_> {
    fn beats(&self, a: usize, b: usize) -> bool {
        self.beats.get(a).and_then(|row| row.get(b)) == Some(&true)
    }

    fn overlap(&self, a: usize, b: usize) -> bool {
        match (self.scopes.get(a), self.scopes.get(b)) {
            (Some(a), Some(b)) => overlap(a, b),
            _ => false,
        }
    }

    fn uses(&self, scope: usize) -> &[usize] {
        self.scopes.get(scope).map_or(&[], |it| &it.uses)
    }

    fn kept(&self) -> Vec<usize> {
        let all = self.is_kept.iter().enumerate();
        all.filter(|(_, is)| **is).map(|(at, _)| at).collect()
    }

    /// Drops scopes without which the same limits apply.
    fn drop_redundant(&mut self) {
        for scope in 0..self.scopes.len() {
            let kept = self.kept();
            let is_redundant = kept
                .iter()
                .any(|&parent| self.is_covered(scope, parent, &kept));
            if let (true, Some(is_kept)) = (is_redundant, self.is_kept.get_mut(scope)) {
                *is_kept = false;
            }
        }
    }

    /// Returns true if `parent` applies to all requests of `scope` with the same limits, even without
    /// `scope`.
    fn is_covered(&self, scope: usize, parent: usize, kept: &[usize]) -> bool {
        let (Some(inner), Some(outer)) = (self.scopes.get(scope), self.scopes.get(parent)) else {
            return false;
        };
        let between = |other: &usize| {
            self.uses(*other) != inner.uses
                && self.beats(*other, parent)
                && self.scopes.get(*other).is_some_and(|it| overlap(it, inner))
        };
        self.beats(scope, parent)
            && inner.uses == outer.uses
            && covers(outer, inner)
            && !kept.iter().any(between)
    }

    /// Returns the limits, each with its scopes. A limit is split if a scope without it comes before only some
    /// of its scopes: replacing the limit for one would replace it for the other.
    fn split(&self) -> Vec<ScopedLimit> {
        let kept = self.kept();
        let most = kept.iter().flat_map(|&it| self.uses(it)).max();
        let mut limits: Vec<ScopedLimit> = Vec::new();
        for of in 0..most.map_or(0, |most| most + 1) {
            let scopes = kept
                .iter()
                .copied()
                .filter(|&it| self.uses(it).contains(&of));
            let scopes: Vec<usize> = scopes.collect();
            let (together, apart) = self.grouped(scopes, &kept);
            let groups = [together]
                .into_iter()
                .chain(apart.into_iter().map(|it| vec![it]));
            let groups: Vec<Vec<usize>> = groups.filter(|group| !group.is_empty()).collect();
            limits.extend(groups.into_iter().map(|scopes| ScopedLimit {
                of,
                scopes,
                replaces: BTreeSet::new(),
            }));
        }
        limits
    }

    /// Divides the scopes of a limit into those that can share it and the others. Two scopes cannot share a
    /// limit if another scope replaces it for one of them, but applies together with the other or after it.
    fn grouped(&self, scopes: Vec<usize>, kept: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let (mut together, mut apart) = (scopes, Vec::new());
        loop {
            let others = kept.iter().filter(|it| !together.contains(it));
            let replaces = |other: &&usize| together.iter().any(|&it| self.beats(**other, it));
            let others: Vec<usize> = others.filter(replaces).copied().collect();
            let is_apart = |scope: usize| {
                let mut others = others.iter();
                others.any(|&other| !self.beats(other, scope) && self.overlap(other, scope))
            };
            // One scope less is one more that may be between the others.
            match together.iter().position(|&scope| is_apart(scope)) {
                Some(at) => apart.push(together.remove(at)),
                None => return (together, apart),
            }
        }
    }

    /// Returns the limits that do not apply to requests of a scope although their scopes match.
    fn replaced(&self, scope: usize, limits: &[ScopedLimit]) -> BTreeSet<usize> {
        let numbered = limits.iter().enumerate();
        let others = numbered.filter(|(_, limit)| {
            !limit.scopes.contains(&scope) && limit.scopes.iter().any(|&it| self.beats(scope, it))
        });
        others.map(|(at, _)| at).collect()
    }
}

/// Returns true unless no request can match both.
pub(super) fn overlap(a: &RuleScope, b: &RuleScope) -> bool {
    let both = |a: &ConditionDraft, b: &ConditionDraft| {
        lists_overlap(&a.methods, &b.methods, str::eq_ignore_ascii_case)
            && lists_overlap(&a.hosts, &b.hosts, hosts_overlap)
            && paths_overlap(a.path.as_deref(), b.path.as_deref())
    };
    a.conditions.is_empty()
        || b.conditions.is_empty()
        || a.conditions
            .iter()
            .any(|first| b.conditions.iter().any(|second| both(first, second)))
}

fn lists_overlap(a: &[String], b: &[String], both: impl Fn(&str, &str) -> bool) -> bool {
    let any = |first: &String| b.iter().any(|second| both(first, second));
    a.is_empty() || b.is_empty() || a.iter().any(any)
}

/// Returns true unless no host is one of both names or wildcards.
pub(super) fn hosts_overlap(a: &str, b: &str) -> bool {
    let under = |host: &str, pattern: &str| {
        let domain = pattern.strip_prefix('*');
        domain.is_some_and(|domain| host.ends_with(domain))
    };
    a.eq_ignore_ascii_case(b) || under(a, b) || under(b, a)
}

fn paths_overlap(a: Option<&str>, b: Option<&str>) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return true;
    };
    let (mut first, mut second) = (parts(a), parts(b));
    loop {
        match (first.next(), second.next()) {
            (Some("**"), _) | (_, Some("**")) | (None, None) => return true,
            // A shorter pattern matches the longer ones unless it ends with `$`.
            (None, Some(_)) => return !a.ends_with('$'),
            (Some(_), None) => return !b.ends_with('$'),
            (Some(a), Some(b)) if a == b || a == "*" || b == "*" => {}
            (Some(_), Some(_)) => return false,
        }
    }
}

fn parts(pattern: &str) -> impl Iterator<Item = &str> {
    let path = pattern.strip_suffix('$').unwrap_or(pattern);
    path.split('/').filter(|it| !it.is_empty())
}

/// Returns true if every request that `inner` matches is one that `outer` matches.
fn covers(outer: &RuleScope, inner: &RuleScope) -> bool {
    let one = |outer: &ConditionDraft, inner: &ConditionDraft| {
        let list = |outer: &[String], inner: &[String]| {
            outer.is_empty() || (!inner.is_empty() && inner.iter().all(|it| outer.contains(it)))
        };
        list(&outer.hosts, &inner.hosts)
            && list(&outer.methods, &inner.methods)
            && list(&outer.clients, &inner.clients)
            && (outer.header.is_none() || outer.header == inner.header)
            && path_covers(outer.path.as_deref(), inner.path.as_deref())
    };
    let by_any = |inner: &ConditionDraft| outer.conditions.iter().any(|it| one(it, inner));
    outer.conditions.is_empty()
        || (!inner.conditions.is_empty() && inner.conditions.iter().all(by_any))
}

fn path_covers(outer: Option<&str>, inner: Option<&str>) -> bool {
    let Some(outer) = outer else {
        return true;
    };
    let Some(inner) = inner else {
        return false;
    };
    if outer == inner {
        return true;
    }
    let is_plain = !outer.contains('*') && !outer.ends_with('$');
    let mut inner = parts(inner);
    is_plain && parts(outer).all(|it| inner.next() == Some(it))
}

#[cfg(test)]
mod tests {
    use super::{RuleScope, SCOPES_MAX, solve};
    use crate::draft::ConditionDraft;

    fn scope(path: Option<&str>, uses: &[usize]) -> RuleScope {
        let conditions = path.map(|path| ConditionDraft {
            path: Some(path.to_owned()),
            ..ConditionDraft::default()
        });
        RuleScope {
            conditions: conditions.into_iter().collect(),
            uses: uses.to_vec(),
        }
    }

    /// Solves prefixes, of which the longest applies. Returns each limit with its scopes and the limits it
    /// replaces, then the scopes without limits.
    fn solved(scopes: &[RuleScope]) -> String {
        let length = |at: usize| {
            scopes[at]
                .conditions
                .first()
                .map_or(0, |it| it.path.as_ref().map_or(0, String::len))
        };
        let solved = solve(scopes, |a, b| length(a) > length(b), |_| true).expect("they are few");
        let limits = solved
            .limits
            .iter()
            .map(|it| format!("{}{:?}>{:?}", it.of, it.scopes, it.replaces));
        let exempt = solved
            .exempt
            .iter()
            .map(|it| format!("free{}>{:?}", it.scope, it.replaces));
        limits.chain(exempt).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_most_specific_scope_replaces_the_limits_of_the_others() {
        assert_eq!(
            solved(&[scope(None, &[0]), scope(Some("/a"), &[1])]),
            "0[0]>{} 1[1]>{0}"
        );
        assert_eq!(
            solved(&[scope(None, &[0]), scope(Some("/a"), &[])]),
            "0[0]>{} free1>{0}"
        );
        assert_eq!(
            solved(&[scope(None, &[0]), scope(Some("/a"), &[0, 1])]),
            "0[0, 1]>{} 1[1]>{}"
        );
        assert_eq!(
            solved(&[scope(Some("/b"), &[0]), scope(Some("/a"), &[1])]),
            "0[0]>{} 1[1]>{}"
        );
    }

    #[test]
    fn a_scope_with_the_limits_of_the_next_one_is_dropped() {
        assert_eq!(
            solved(&[scope(None, &[0]), scope(Some("/a"), &[0])]),
            "0[0]>{}"
        );
        let nested = [
            scope(None, &[0]),
            scope(Some("/a"), &[1]),
            scope(Some("/a/b"), &[1]),
        ];
        assert_eq!(solved(&nested), "0[0]>{} 1[1]>{0}");
    }

    #[test]
    fn a_limit_on_both_sides_of_another_is_split() {
        let scopes = [
            scope(None, &[0]),
            scope(Some("/a"), &[1]),
            scope(Some("/a/b"), &[0]),
        ];
        assert_eq!(solved(&scopes), "0[0]>{} 0[2]>{0, 2} 1[1]>{0}");
    }

    #[test]
    fn ordering_too_many_scopes_took_quadratic_memory() {
        let scopes = vec![scope(None, &[0]); SCOPES_MAX + 1];
        let fault = solve(&scopes, |_, _| false, |_| true).expect_err("there are too many");
        assert!(fault.message.contains("too many"), "{}", fault.message);
    }
}
