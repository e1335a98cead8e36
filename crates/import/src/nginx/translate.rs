//! Writes the configuration.

use super::http::{NginxHttp, NginxScope};
use super::limits::NginxPolicy;
use super::location::NginxLocation;
use super::report::NginxReport;
use super::sections;
use super::servers;
use super::zone;
use crate::draft::{ConditionDraft, LimitDraft, PolicyDraft};
use crate::scopes::{self, RuleScope, SolvedScopes};
use std::collections::BTreeSet;
use tidegate_policy::limit::ChargeTime;

/// Returns the sections before the policies, and the policy.
pub(super) fn all(http: &NginxHttp<'_>, report: &mut NginxReport) -> (String, PolicyDraft) {
    let zones = zone::all(http, report);
    let base = sections::base(http, &zones, report);
    let kept = expressible(http, report);
    let rules: Vec<RuleScope> = kept.iter().map(|it| it.1.clone()).collect();
    let beats = |a: usize, b: usize| match (kept.get(a), kept.get(b)) {
        (Some((first, _)), Some((second, _))) => is_before(http, first, second),
        _ => false,
    };
    let selection = |of: usize| {
        let zone = http.limits.get(of).and_then(|it| zones.get(&it.zone));
        zone.map(|zone| &zone.selection)
    };
    let is_certain = |of: usize| {
        selection(of)
            .is_some_and(|it| it.only.is_empty() && (!it.key.may_be_empty || it.or_address))
    };
    let solved = match (scopes::solve(&rules, beats, is_certain), kept.first()) {
        (Ok(solved), _) => {
            note_cycles(&kept, http, report);
            note_conflicts(&kept, http, report);
            solved
        }
        (Err(fault), first) => {
            if let Some((first, _)) = first {
                report.error(
                    first.directive,
                    fault.message,
                    &fault.help.unwrap_or_default(),
                );
            }
            SolvedScopes::default()
        }
    };
    let policy = NginxPolicy {
        http,
        zones: &zones,
        kept: &kept,
        solved: &solved,
    };
    let mut limits = policy.limits(report);
    if limits.is_empty() {
        if let Some(file) = report.files.first() {
            let name = file.name.clone();
            report
                .notes
                .warn((&name, 1), "no `limit_req` applies: every request passes");
        }
        limits.push(LimitDraft::for_no_request());
    }
    let policy = PolicyDraft {
        name: "nginx".to_owned(),
        domain: "nginx".to_owned(),
        evaluate: "all",
        charge: ChargeTime::IfFits,
        limits,
    };
    (base, policy)
}

/// Returns the scopes whose requests Tidegate can match, each as a rule.
fn expressible<'h, 'd>(
    http: &'h NginxHttp<'d>,
    report: &mut NginxReport,
) -> Vec<(&'h NginxScope<'d>, RuleScope)> {
    let mut found = Vec::new();
    for scope in &http.scopes {
        let is_limited = !scope.uses.is_empty();
        let Some(hosts) = hosts(http, scope, report) else {
            continue;
        };
        if scope.location == NginxLocation::Server && has_root(http, scope.server) {
            // No request is outside `location /`.
            continue;
        }
        let Some(patterns) = scope.location.patterns() else {
            let text = format!(
                "`{}` is not translated: Tidegate matches paths by whole segments, not by regular expressions. Its requests get the limits of the other locations",
                scope.directive.written()
            );
            report.warn(scope.directive, text);
            continue;
        };
        if let Some(text) = patterns.difference.filter(|_| is_limited) {
            report.note(scope.directive, text);
        }
        let mut conditions: Vec<ConditionDraft> = patterns
            .patterns
            .into_iter()
            .map(|path| ConditionDraft {
                path: Some(path),
                hosts: hosts.clone(),
                ..ConditionDraft::default()
            })
            .collect();
        if conditions.is_empty() && !hosts.is_empty() {
            conditions.push(ConditionDraft {
                hosts,
                ..ConditionDraft::default()
            });
        }
        let uses = scope.uses.clone();
        found.push((scope, RuleScope { conditions, uses }));
    }
    found
}

/// Returns true if a server has `location /`.
fn has_root(http: &NginxHttp<'_>, server: usize) -> bool {
    let mut scopes = http.scopes.iter().filter(|it| it.server == server);
    scopes.any(|it| matches!(&it.location, NginxLocation::Prefix { path, .. } if path == "/"))
}

/// Returns true if a location with `^~` has a location inside that regular expressions come before. Then
/// these come before both, so that no request is left without limits.
fn has_inner(http: &NginxHttp<'_>, scope: &NginxScope<'_>) -> bool {
    let NginxLocation::Prefix { path, is_final } = &scope.location else {
        return false;
    };
    let mut inside = http.scopes.iter().filter(|it| it.server == scope.server);
    *is_final
        && inside.any(|it| match &it.location {
            NginxLocation::Prefix {
                path: inner,
                is_final: false,
            } => inner.len() > path.len() && inner.starts_with(path.as_str()),
            _ => false,
        })
}

/// Warns about locations that apply in an order without a first one.
fn note_cycles(
    kept: &[(&NginxScope<'_>, RuleScope)],
    http: &NginxHttp<'_>,
    report: &mut NginxReport,
) {
    for (scope, _) in kept.iter().filter(|(it, _)| has_inner(http, it)) {
        let regexes = kept.iter().map(|(it, _)| it);
        let mut regexes = regexes.filter(|it| it.server == scope.server);
        if regexes.any(|it| matches!(it.location, NginxLocation::Regex(_))) {
            let text = format!(
                "regular expressions come before `{}` in Tidegate, because they come before the location inside it",
                scope.directive.written()
            );
            report.warn(scope.directive, text);
        }
    }
}

/// Returns the hosts of a scope's server; none if it has all, and `None` if they cannot be expressed.
fn hosts(
    http: &NginxHttp<'_>,
    scope: &NginxScope<'_>,
    report: &mut NginxReport,
) -> Option<Vec<String>> {
    if http.is_catch_all(scope.server) {
        return Some(Vec::new());
    }
    let server = http.servers.get(scope.server)?;
    if scope.location == NginxLocation::Server {
        for name in server
            .names
            .iter()
            .filter(|it| !servers::is_expressible(it))
        {
            let text = format!(
                "server name `{name}` is not translated: limits of the default server apply to its requests"
            );
            report.warn(scope.directive, text);
        }
    }
    let hosts = server.hosts();
    (!hosts.is_empty()).then_some(hosts)
}

/// Returns true if nginx chooses this scope rather than the other for a request that both match.
fn is_before(http: &NginxHttp<'_>, first: &NginxScope<'_>, second: &NginxScope<'_>) -> bool {
    if first.server == second.server {
        let is_regex = |scope: &NginxScope<'_>| matches!(scope.location, NginxLocation::Regex(_));
        return if is_regex(first) && has_inner(http, second) {
            true
        } else if is_regex(second) && has_inner(http, first) {
            false
        } else {
            let earlier = first.order < second.order;
            first.location.beats(&second.location, earlier)
        };
    }
    servers::is_before(&http.servers, first.server, second.server)
}

/// Warns about servers that have the same hosts and other limits, where neither is always before the other.
fn note_conflicts(
    kept: &[(&NginxScope<'_>, RuleScope)],
    http: &NginxHttp<'_>,
    report: &mut NginxReport,
) {
    let returns =
        |scope: &NginxScope<'_>| http.servers.get(scope.server).is_none_or(|it| it.returns);
    let mut seen = BTreeSet::new();
    for (at, (scope, rule)) in kept.iter().enumerate() {
        if returns(scope) || seen.contains(&scope.server) {
            continue;
        }
        let earlier = kept.iter().take(at).find(|(other, with)| {
            other.server != scope.server
                && !returns(other)
                && with.uses != rule.uses
                && scopes::overlap(rule, with)
                && !is_before(http, scope, other)
                && !is_before(http, other, scope)
        });
        if let Some((other, _)) = earlier {
            seen.insert(scope.server);
            let (file, line) = (report.file(other.directive.file), other.directive.line);
            let text = format!(
                "`{}` has hosts of the server at {file}:{line}, with other limits: Tidegate does not know the `listen` address of a request, so the limits of both apply",
                scope.directive.written()
            );
            report.warn(scope.directive, text);
        }
    }
}
