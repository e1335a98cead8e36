//! The limits of the policy.

use super::http::{NginxDelay, NginxHttp, NginxLimit, NginxScope};
use super::report::NginxReport;
use super::zone::NginxZone;
use crate::draft::{
    AlgorithmDraft, ConditionDraft, KeyDraft, LimitDraft, RateDraft, RequestScope, WaitDraft,
};
use crate::names::{self, NameRequest};
use crate::scopes::{RuleScope, ScopedLimit, SolvedScopes};
use std::collections::{BTreeMap, BTreeSet};

/// The longest wait of a queued request, in milliseconds.
const WAIT_MAX: u64 = 3_600_000;

/// The most queued requests, unless nginx accepts more connections.
const WAITING: u64 = 1_000;
const WAITING_MAX: u64 = 1_000_000;

/// Scopes as limits, and everything that they are made of.
pub(super) struct NginxPolicy<'p, 'd> {
    pub(super) http: &'p NginxHttp<'d>,
    pub(super) zones: &'p BTreeMap<String, NginxZone>,
    pub(super) kept: &'p [(&'p NginxScope<'d>, RuleScope)],
    pub(super) solved: &'p SolvedScopes,
}

/// The names of all limits.
struct LimitNames {
    limits: Vec<String>,
    exempt: Vec<String>,
    free: Vec<String>,
}

impl NginxPolicy<'_, '_> {
    /// Returns the limits of the policy.
    pub(super) fn limits(&self, report: &mut NginxReport) -> Vec<LimitDraft> {
        note_shared(self.http, self.solved, report);
        let exempt = self.exempt_zones();
        let names = self.names(&exempt);
        let replaced = |all: &BTreeSet<usize>| {
            let names = all.iter().filter_map(|at| names.limits.get(*at));
            names.cloned().collect::<Vec<_>>()
        };
        let mut limits = Vec::new();
        for (limit, name) in self.solved.limits.iter().zip(&names.limits) {
            let Some(of) = self.http.limits.get(limit.of) else {
                continue;
            };
            let Some(zone) = self.zones.get(&of.zone) else {
                continue;
            };
            let rules = limit.scopes.iter().filter_map(|it| self.kept.get(*it));
            let rules: Vec<&RuleScope> = rules.map(|(_, rule)| rule).collect();
            limits.push(LimitDraft {
                whom: request_scope(&rules, &zone.selection.only),
                replaces: replaced(&limit.replaces),
                ..draft(name.clone(), of, zone, (self.http, report))
            });
        }
        for (zone, name) in exempt.iter().zip(&names.exempt) {
            let of = self.solved.limits.iter().enumerate();
            let of = of.filter(|(_, it)| self.zone_of(it) == *zone);
            let except = self.zones.get(*zone).map(|it| it.selection.except.clone());
            limits.push(LimitDraft {
                comment: Some(format!(
                    "The key of zone {zone} is empty for these requests."
                )),
                whom: RequestScope::Any(except.unwrap_or_default()),
                replaces: replaced(&of.map(|(at, _)| at).collect()),
                ..LimitDraft::new(name.clone(), AlgorithmDraft::Tokens)
            });
        }
        for (exempt, name) in self.solved.exempt.iter().zip(&names.free) {
            let Some((scope, rule)) = self.kept.get(exempt.scope) else {
                continue;
            };
            let (line, written) = (scope.directive.line, scope.directive.written());
            let what = if scope.uses.is_empty() {
                "has no limits"
            } else {
                "has other limits"
            };
            let file = report.file(scope.directive.file);
            limits.push(LimitDraft {
                comment: Some(format!("{file}:{line}: {written} {what}.")),
                whom: request_scope(&[rule], &[]),
                replaces: replaced(&exempt.replaces),
                ..LimitDraft::new(name.clone(), AlgorithmDraft::Tokens)
            });
        }
        limits
    }

    fn zone_of(&self, limit: &ScopedLimit) -> &str {
        let of = self.http.limits.get(limit.of);
        of.map_or("", |it| it.zone.as_str())
    }

    /// Returns the zones that do not count some requests.
    fn exempt_zones(&self) -> Vec<&str> {
        let used: BTreeSet<&str> = self
            .solved
            .limits
            .iter()
            .map(|it| self.zone_of(it))
            .collect();
        let exempts = |zone: &&str| {
            let zone = self.zones.get(*zone);
            zone.is_some_and(|it| !it.selection.except.is_empty())
        };
        used.into_iter().filter(exempts).collect()
    }

    /// Returns the names of all limits: that of the zone, with a location if the zone has several limits.
    fn names(&self, exempt: &[&str]) -> LimitNames {
        let label = |scope: usize| {
            let scope = self.kept.get(scope);
            scope.map_or(String::new(), |(it, _)| it.location.label())
        };
        let mut wanted: Vec<NameRequest> = Vec::new();
        for limit in &self.solved.limits {
            let zone = self.zone_of(limit);
            let alike = self.solved.limits.iter();
            let is_alone = alike.filter(|it| self.zone_of(it) == zone).count() == 1;
            let first = limit.scopes.first().copied().unwrap_or_default();
            let text = if is_alone {
                zone.to_owned()
            } else {
                format!("{zone}.{}", label(first))
            };
            let of = self.http.limits.get(limit.of);
            let written = of.map_or(String::new(), |it| it.directive.written());
            wanted.push(NameRequest::made_up(
                text.clone(),
                format!("{text}\n{written}"),
            ));
        }
        let exempts = exempt.iter().map(|zone| format!("{zone}-exempt"));
        let free = self.solved.exempt.iter();
        let free = free.map(|it| format!("unlimited.{}", label(it.scope)));
        let others = exempts.chain(free);
        wanted.extend(others.map(|text| NameRequest::made_up(text.clone(), text)));
        let mut names = names::all(&wanted, &["none"]);
        let mut others = names.split_off(self.solved.limits.len());
        let free = others.split_off(exempt.len());
        LimitNames {
            limits: names,
            exempt: others,
            free,
        }
    }
}

/// Warns about zones whose buckets nginx shares and Tidegate does not.
fn note_shared(http: &NginxHttp<'_>, solved: &SolvedScopes, report: &mut NginxReport) {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for limit in &solved.limits {
        if let Some(of) = http.limits.get(limit.of)
            && !seen.insert(&of.zone)
        {
            let text = format!(
                "zone `{}` becomes several limits with separate buckets: its settings differ, or its locations are inside others. nginx has one counter for all of them",
                of.zone
            );
            report.warn(of.directive, text);
        }
    }
}

/// Returns the requests of a limit: those of its rules that the zone counts.
fn request_scope(rules: &[&RuleScope], only: &[ConditionDraft]) -> RequestScope {
    let is_all = rules.iter().any(|rule| rule.conditions.is_empty());
    let rules = rules.iter().flat_map(|rule| rule.conditions.clone());
    let rules: Vec<ConditionDraft> = if is_all { Vec::new() } else { rules.collect() };
    let both: Vec<ConditionDraft> = match (rules.is_empty(), only.is_empty()) {
        (true, true) => return RequestScope::Everybody,
        (true, false) => only.to_vec(),
        (false, true) => rules,
        (false, false) => {
            let with = |rule: &ConditionDraft| {
                let rule = rule.clone();
                only.iter().map(move |it| ConditionDraft {
                    path: it.path.clone().or_else(|| rule.path.clone()),
                    hosts: if it.hosts.is_empty() {
                        rule.hosts.clone()
                    } else {
                        it.hosts.clone()
                    },
                    ..it.clone()
                })
            };
            rules.iter().flat_map(with).collect()
        }
    };
    RequestScope::Any(both)
}

/// Returns a limit without the requests that it applies to.
fn draft(
    name: String,
    limit: &NginxLimit<'_>,
    zone: &NginxZone,
    (http, report): (&NginxHttp<'_>, &mut NginxReport),
) -> LimitDraft {
    let (amount, period) = zone.rate;
    let (capacity, queued) = match limit.delay {
        NginxDelay::Never => (limit.burst + 1, 0),
        NginxDelay::After(delay) => {
            let at_once = delay.min(limit.burst);
            (at_once + 1, limit.burst - at_once)
        }
    };
    let unit = if period == 1_000 { "s" } else { "min" };
    let burst = if capacity == amount {
        String::new()
    } else {
        format!(" burst {capacity}")
    };
    let key = &zone.selection.key;
    let place = format!(
        "{}:{}",
        report.file(limit.directive.file),
        limit.directive.line
    );
    LimitDraft {
        comment: Some(format!("{place}: {}", limit.directive.written())),
        key: if key.parts.is_empty() {
            KeyDraft::Global
        } else {
            KeyDraft::Parts {
                parts: key.parts.clone(),
                // nginx skips a request only if all parts are empty, `missing: skip` if any is.
                or_skip: key.may_be_empty && key.parts.len() == 1 && !zone.selection.or_address,
            }
        },
        rates: vec![RateDraft {
            text: format!("{amount}/{unit}{burst}"),
            label: None,
        }],
        shadow: limit.is_dry_run,
        waiting: waiting(queued, zone.rate, limit, (http, report)),
        status: (limit.status != http.common_status()).then_some(limit.status),
        ..LimitDraft::new(name, AlgorithmDraft::Tokens)
    }
}

/// Returns the queue of a limit that delays up to `queued` requests of a key.
fn waiting(
    queued: u64,
    (amount, period): (u64, u64),
    limit: &NginxLimit<'_>,
    (http, report): (&NginxHttp<'_>, &mut NginxReport),
) -> Option<WaitDraft> {
    if queued == 0 {
        return None;
    }
    let exact = queued.saturating_mul(period).div_ceil(amount);
    if exact > WAIT_MAX {
        let text = format!(
            "nginx delays requests by up to {} s, Tidegate by at most an hour: requests that would wait longer are refused",
            exact / 1_000
        );
        report.warn(limit.directive, text);
    }
    Some(WaitDraft {
        max_wait: exact.clamp(1, WAIT_MAX),
        max_waiting: http.connections.clamp(WAITING, WAITING_MAX),
    })
}
