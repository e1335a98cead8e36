//! Routes that no request takes, because an earlier route takes them all.

use crate::language::reader::{ConfigReader, ConfigValue};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_policy::limit::Condition;
use tidegate_policy::route::Route;
use tidegate_policy::text::ConfigFault;

/// The maximum number of combinations of hosts and methods in a condition. Larger conditions are not
/// checked, which only loses a warning.
const COMBINATIONS_MAX: usize = 10_000;

/// A host, a path and a method; each is empty if any matches.
type RoutePattern = (String, String, String);

/// The patterns of earlier routes, with the route of each.
#[derive(Debug, Default)]
pub(super) struct RouteOverlap {
    taken: BTreeMap<RoutePattern, String>,
}

impl RouteOverlap {
    /// Warns if no request can take `route`, and records its patterns.
    pub(super) fn add(
        &mut self,
        reader: &mut ConfigReader<'_>,
        value: &ConfigValue<'_>,
        route: &Route,
    ) {
        let everything = [Condition::default()];
        let conditions = match route.conditions.as_slice() {
            [] => &everything,
            conditions => conditions,
        };
        let ways: Option<Vec<Vec<RoutePattern>>> = conditions.iter().map(ways).collect();
        let Some(ways) = ways.map(|ways| ways.concat()) else {
            return;
        };
        let owners: Option<BTreeSet<&String>> = ways.iter().map(|way| self.owner(way)).collect();
        if let Some(owners) = owners {
            warn(reader, value, route, &owners);
        }
        for way in ways {
            self.taken.entry(way).or_insert_with(|| route.name.clone());
        }
    }

    /// Returns the earlier route that takes all requests of this pattern. In each part, its pattern is
    /// the same or matches any.
    fn owner(&self, (host, path, method): &RoutePattern) -> Option<&String> {
        let or_any = |text: &str| [text.to_owned(), String::new()];
        for host in or_any(host) {
            for path in or_any(path) {
                for method in or_any(method) {
                    let owner = self.taken.get(&(host.clone(), path.clone(), method));
                    if owner.is_some() {
                        return owner;
                    }
                }
            }
        }
        None
    }
}

fn warn(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    route: &Route,
    owners: &BTreeSet<&String>,
) {
    let names: Vec<String> = owners.iter().map(|owner| format!("`{owner}`")).collect();
    let names = names.join(" and ");
    let take = if owners.len() == 1 { "takes" } else { "take" };
    let message = format!(
        "route `{}` is never used: {names} {take} all its requests",
        route.name
    );
    let help = format!("move it before {names}, or change its `match`");
    reader.warn(value.spot(), ConfigFault::new(message).help(help));
}

/// Returns all patterns of a condition; `None` if there are too many.
fn ways(condition: &Condition) -> Option<Vec<RoutePattern>> {
    let any = || vec![String::new()];
    let path = condition.path.as_ref();
    let path = path.map_or_else(String::new, |path| match path.spelt().as_str() {
        "/" => String::new(),
        spelt => spelt.to_owned(),
    });
    let hosts: Vec<String> = match condition.hosts.as_slice() {
        [] => any(),
        hosts => hosts
            .iter()
            .map(|it| it.as_str().to_ascii_lowercase())
            .collect(),
    };
    let methods = match condition.methods.as_slice() {
        [] => any(),
        methods => methods.to_vec(),
    };
    if hosts.len().saturating_mul(methods.len()) > COMBINATIONS_MAX {
        return None;
    }
    let with_host = |host: String| {
        let methods = methods.iter();
        let ways = methods.map(|method| (host.clone(), path.clone(), method.clone()));
        ways.collect::<Vec<_>>()
    };
    Some(hosts.into_iter().flat_map(with_host).collect())
}
