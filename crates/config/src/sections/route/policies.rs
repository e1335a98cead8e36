//! `policy`, also within `messages`: the policies of a route.
//!
//! For a route that lists several policies, they are joined into one more, so that all their limits are
//! decided atomically. For a route in shadow mode, a policy with the same limits in shadow mode is added.
//! Added policies come after those that are written.

use crate::environment::expand;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::FieldReader;
use crate::language::words::one_of;
use crate::syntax::{NodeKind, YamlNode};
use crate::tables::route::CARRIED_MAX;
use crate::tables::{LIMITS_MAX, POLICIES_MAX};
use std::collections::BTreeSet;
use tidegate_core::LimitMode;
use tidegate_policy::policy::Policy;
use tidegate_policy::route::{RefundRule, RoutePolicy};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::closest;

/// The word for a route without limits.
const NONE: &str = "none";

/// The policies that routes can use, and the changes that routes require of them.
#[derive(Debug)]
pub(super) struct CarriedPolicies {
    /// All written policies, valid or not: an error in one is no reason to report it as unknown.
    known: Vec<PolicyOutline>,
    /// The policies to add, each once.
    joined: Vec<JoinedPolicies>,
    /// The indexes of the policies whose charges must be refundable.
    refunding: BTreeSet<usize>,
}

/// A policy to add: several written ones joined, or the limits of one or several in shadow mode.
#[derive(Debug, PartialEq, Eq)]
struct JoinedPolicies {
    /// The indexes of the written policies.
    listed: Vec<usize>,
    mode: LimitMode,
}

/// A written policy.
#[derive(Debug)]
struct PolicyOutline {
    name: String,
    /// The value of `evaluate`, unless it is `all`.
    evaluate: Option<String>,
    limits: Vec<String>,
}

impl CarriedPolicies {
    /// Collects the policies of the section `policies`.
    pub(super) fn new(reader: &ConfigReader<'_>, policies: Option<&ConfigValue<'_>>) -> Self {
        let text = |node: Option<&YamlNode>| {
            let node = node?;
            let text = expand(node.as_text()?, reader.environment_at(node.place)).ok()?;
            Some(text.trim().to_owned())
        };
        let known = policies.iter().flat_map(|value| items(value.node));
        let known = known.map(|policy| PolicyOutline {
            name: text(policy.get("name")).unwrap_or_default(),
            evaluate: text(policy.get("evaluate")).filter(|word| word != "all"),
            limits: policy
                .get("limits")
                .into_iter()
                .flat_map(items)
                .filter_map(|limit| text(limit.get("name")))
                .collect(),
        });
        Self {
            known: known.collect(),
            joined: Vec::new(),
            refunding: BTreeSet::new(),
        }
    }

    /// Reads `policy`: a name, a list of names, or `none`. If the field is absent, the first policy
    /// applies.
    pub(super) fn policy(
        &mut self,
        reader: &mut ConfigReader<'_>,
        route: &FieldReader<'_>,
        refund: RefundRule,
        mode: LimitMode,
    ) -> Option<RoutePolicy> {
        let carried = match route.get("policy") {
            Some(value) => self.listed(reader, &value)?,
            None if self.known.is_empty() => return None,
            None => vec![0],
        };
        if refund == RefundRule::Unreached {
            self.refunding.extend(&carried);
        }
        self.carried(carried, mode)
    }

    /// Reads the name of a single policy.
    pub(super) fn read_single(
        &mut self,
        reader: &mut ConfigReader<'_>,
        value: &ConfigValue<'_>,
        mode: LimitMode,
    ) -> Option<RoutePolicy> {
        let index = self.one(reader, value)?;
        self.carried(vec![index], mode)
    }

    /// Returns the policies that a route lists; `None` if it has no limits or an error was reported.
    fn listed(&self, reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Vec<usize>> {
        if value.node.as_text() == Some(NONE) {
            self.check_none(reader, value);
            return None;
        }
        let items = reader.one_or_many(value);
        if items.len() > CARRIED_MAX {
            let fault = ConfigFault::new(format!("a route has at most {CARRIED_MAX} policies"));
            reader.error(value.key_spot(), fault);
        }
        let mut listed: Vec<usize> = Vec::new();
        for item in items.iter().take(CARRIED_MAX) {
            let Some(index) = self.one(reader, item) else {
                continue;
            };
            if listed.contains(&index) {
                let fault = ConfigFault::new("duplicate policy").help("remove it");
                reader.error(item.spot(), fault);
            } else {
                listed.push(index);
            }
        }
        if listed.len() > 1 {
            self.check_together(reader, value, &listed);
        }
        Some(listed).filter(|listed| !listed.is_empty())
    }

    /// Returns the index of the policy with this name.
    fn one(&self, reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<usize> {
        let names = || self.known.iter().map(|known| known.name.as_str());
        reader.parse(value, |name| {
            names().position(|known| known == name).ok_or_else(|| {
                let fault =
                    ConfigFault::new(format!("there is no policy {}", ConfigFault::quote(name)));
                let known: Vec<&str> = names().filter(|name| !name.is_empty()).take(8).collect();
                match closest(name, names()) {
                    Some(meant) => fault.help(format!("did you mean `{meant}`?")),
                    None if known.is_empty() => fault,
                    None => fault.help(format!("expected {}", one_of(&known))),
                }
            })
        })
    }

    fn check_none(&self, reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) {
        if self.known.iter().any(|known| known.name == NONE) {
            let fault = ConfigFault::new("`none` means no limit, but a policy has that name");
            reader.error(value.spot(), fault.help("give the policy another name"));
            return;
        }
        let fault = ConfigFault::new("requests on this route are not limited");
        let help = "set `policy`; write `policy: none` if this is intended";
        reader.warn(value.spot(), fault.help(help));
    }

    /// Checks that several policies can be joined into one.
    fn check_together(
        &self,
        reader: &mut ConfigReader<'_>,
        value: &ConfigValue<'_>,
        listed: &[usize],
    ) {
        let listed = listed.iter().filter_map(|index| self.known.get(*index));
        let listed: Vec<&PolicyOutline> = listed.collect();
        let other = listed
            .iter()
            .find_map(|it| Some((&it.name, it.evaluate.as_ref()?)));
        if let Some((name, evaluate)) = other {
            let message = format!(
                "`{name}` has `evaluate: {evaluate}` and cannot be combined with other policies"
            );
            let help = "only policies with `evaluate: all` can be combined; use it alone";
            reader.error(value.spot(), ConfigFault::new(message).help(help));
            return;
        }
        let limits: usize = listed.iter().map(|known| known.limits.len()).sum();
        if limits > LIMITS_MAX {
            let message = format!("these policies have {limits} limits; at most {LIMITS_MAX}");
            reader.error(
                value.spot(),
                ConfigFault::new(message + " can be decided together"),
            );
        }
        let mut seen = BTreeSet::new();
        let mut limits = listed.iter().flat_map(|known| &known.limits);
        let twice = limits.find(|name| !seen.insert(name.as_str()));
        if let Some(name) = twice {
            let owners = listed.iter().filter(|known| known.limits.contains(name));
            let owners: Vec<String> = owners.map(|it| format!("`{}`", it.name)).collect();
            let message = format!("the limit `{name}` is in {}", owners.join(" and in "));
            let help = "responses and metrics would be ambiguous; rename one of them";
            reader.error(value.spot(), ConfigFault::new(message).help(help));
        }
    }

    /// Returns the name and the index of a single policy, or of the policy to add for `listed`.
    fn carried(&mut self, listed: Vec<usize>, mode: LimitMode) -> Option<RoutePolicy> {
        let names = listed.iter().filter_map(|index| self.known.get(*index));
        let names: Vec<&str> = names.map(|known| known.name.as_str()).collect();
        let name = match mode {
            LimitMode::Enforce => names.join("+"),
            LimitMode::Shadow => Policy::shadow_name(&names.join("+")),
        };
        if let ([index], LimitMode::Enforce) = (listed.as_slice(), mode) {
            let index = *index;
            return Some(RoutePolicy { name, index });
        }
        let added = JoinedPolicies { listed, mode };
        let at = self.joined.iter().position(|other| *other == added);
        let at = at.unwrap_or_else(|| {
            self.joined.push(added);
            self.joined.len().saturating_sub(1)
        });
        let index = self.known.len().checked_add(at)?;
        Some(RoutePolicy { name, index })
    }

    /// Applies the changes that the routes require to the policies.
    pub(super) fn carry_out(
        self,
        reader: &mut ConfigReader<'_>,
        at: &ConfigValue<'_>,
        policies: &mut Vec<Policy>,
    ) {
        let count = self.joined.len().saturating_add(self.known.len());
        if !self.joined.is_empty() && count > POLICIES_MAX {
            let message = format!(
                "policies and policy lists of routes: {count}; at most {POLICIES_MAX} are \
                 supported"
            );
            reader.error(at.key_spot(), ConfigFault::new(message));
        }
        // After an error, policies are missing and the configuration is not used.
        if reader.has_errors() {
            return;
        }
        // Do this before joining: all users of a bucket must count in it the same way.
        for index in self.refundable(policies) {
            if let Some(policy) = policies.get_mut(index) {
                policy.make_refundable();
            }
        }
        let joined = self.joined.iter().filter_map(|added| {
            let listed = added.listed.iter().map(|index| policies.get(*index));
            let listed = listed.collect::<Option<Vec<_>>>()?;
            match added.mode {
                LimitMode::Enforce => Policy::joined(&listed),
                LimitMode::Shadow => Policy::shadow_of(&listed),
            }
        });
        let joined: Vec<Policy> = joined.collect();
        policies.extend(joined);
    }

    /// Returns the policies whose charges must be refundable: a route requires it, they are refundable
    /// already, or they are joined with one of these.
    fn refundable(&self, policies: &[Policy]) -> BTreeSet<usize> {
        let mut found = self.refunding.clone();
        let already = policies.iter().enumerate();
        found.extend(
            already
                .filter(|(_, it)| it.refundable())
                .map(|(index, _)| index),
        );
        loop {
            let before = found.len();
            for added in &self.joined {
                if added.listed.iter().any(|index| found.contains(index)) {
                    found.extend(&added.listed);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }
}

/// Returns the items of a list.
fn items(node: &YamlNode) -> &[YamlNode] {
    match &node.kind {
        NodeKind::List(items) => items,
        _ => &[],
    }
}
