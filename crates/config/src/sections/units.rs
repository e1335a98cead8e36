//! Units: those that no request can bring, and those that no limit counts.

use super::client::{children, field};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::source::PolicySource;
use tidegate_policy::client::{Client, CostRules};
use tidegate_policy::listen::Listen;
use tidegate_policy::policy::Policy;
use tidegate_policy::text::{ConfigFault, closest};
use tidegate_policy::unit::{UNITS_MAX, Unit};

/// The parts of a configuration that may state or count a unit.
pub(crate) struct UnitScope<'a> {
    pub(crate) policies: &'a [Policy],
    pub(crate) client: &'a Client,
    pub(crate) listen: &'a Listen,
    pub(crate) sources: &'a [PolicySource],
}

/// Reports units of `client.cost` that no limit counts, and warns about limits that count a unit which no
/// request can bring. `written` is `policies`, and `client` the section of that name.
pub(crate) fn check(
    reader: &mut ConfigReader<'_>,
    written: &ConfigValue<'_>,
    client: Option<&ConfigValue<'_>>,
    around: &UnitScope<'_>,
) {
    // After an error, `policies` may lack policies that are written.
    if reader.has_errors() {
        return;
    }
    for (policy, value) in around.policies.iter().zip(children(written)) {
        refuse_many(reader, policy, &value);
        warn_about_unbrought(reader, policy, &value, around);
    }
    // Other sources may have policies that count it.
    if let (true, Some(client)) = (around.sources.is_empty(), client) {
        refuse_uncounted(reader, client, around);
    }
}

/// Reports a policy whose limits count too many units for one cost to name.
fn refuse_many(reader: &mut ConfigReader<'_>, policy: &Policy, value: &ConfigValue<'_>) {
    let count = policy.units().len();
    if count > UNITS_MAX {
        let message = format!(
            "the limits count {count} units; at most {UNITS_MAX} are supported in a policy"
        );
        let fault = ConfigFault::new(message).help("move some of them to another policy");
        reader.error(value.spot(), fault);
    }
}

/// Warns about the limits of a policy that count a unit which no request can bring. A caller of the HTTP API
/// or the Redis protocol can send any unit. Everything else has `client.cost`.
fn warn_about_unbrought(
    reader: &mut ConfigReader<'_>,
    policy: &Policy,
    value: &ConfigValue<'_>,
    around: &UnitScope<'_>,
) {
    let UnitScope { client, listen, .. } = around;
    // The HTTP API is open if nothing else is.
    let is_http_default = listen.grpc.is_none() && listen.gateway.is_none();
    if listen.http.is_some() || listen.resp.is_some() || is_http_default {
        return;
    }
    let is_brought = |unit: &Unit| match &client.cost {
        CostRules::Units(rules) => rules.iter().any(|(known, _)| known == unit),
        // A number is of the only unit of a policy. In Envoy's rate limit service, all costs are numbers.
        CostRules::Number(_) => policy.counts_one_unit(),
        CostRules::None => policy.counts_one_unit() && listen.grpc.is_some(),
    };
    let mut reported: Vec<&Unit> = Vec::new();
    let values = field(value, "limits");
    let values = values.iter().flat_map(children);
    for (limit, value) in policy.limits.iter().zip(values) {
        let unit = &limit.unit;
        if unit.is_requests() || is_brought(unit) || reported.contains(&unit) {
            continue;
        }
        reported.push(unit);
        if let Some(value) = field(&value, "unit") {
            let message = format!(
                "no request can bring `{}`: `client.cost` does not set it, and there is no listener \
                 whose callers could",
                unit.as_str()
            );
            let help = format!(
                "add `client.cost: {{ {}: {{ header: … }} }}`, or `listen.http`",
                unit.as_str()
            );
            reader.warn(value.spot(), ConfigFault::new(message).help(help));
        }
    }
}

/// Reports units of `client.cost` that no limit counts.
fn refuse_uncounted(
    reader: &mut ConfigReader<'_>,
    client: &ConfigValue<'_>,
    around: &UnitScope<'_>,
) {
    let CostRules::Units(rules) = &around.client.cost else {
        return;
    };
    let counted: Vec<&Unit> = around.policies.iter().flat_map(Policy::units).collect();
    let Some(costs) = field(client, "cost") else {
        return;
    };
    for (unit, _) in rules {
        if counted.contains(&unit) {
            continue;
        }
        let message = format!("no limit counts `{}`", unit.as_str());
        let help = match closest(unit.as_str(), counted.iter().map(|it| it.as_str())) {
            Some(closest) => format!("did you mean `{closest}`?"),
            None => format!("add a limit with `unit: {}`, or remove it", unit.as_str()),
        };
        let spot =
            field(&costs, unit.as_str()).map_or_else(|| costs.key_spot(), |it| it.key_spot());
        reader.error(spot, ConfigFault::new(message).help(help));
    }
}
