//! `policies`: named lists of limits.

use super::calendar;
use super::descriptor;
use super::domain;
use super::limit::{self, LimitScope};
use super::naming::KeyNamer;
use super::reserve;
use super::respond;
use super::superseded;
use crate::language::names::{DistinctNames, refuse_too_many};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::words::{CHARGE, EVALUATE};
use crate::tables::{LIMITS_MAX, POLICIES_MAX, POLICY};
use tidegate_core::LimitMode;
use tidegate_policy::limit::Limit;
use tidegate_policy::plan_source::PlanSource;
use tidegate_policy::policy::{Evaluate, Policy};
use tidegate_policy::respond::Layer;
use tidegate_policy::text::ConfigFault;

/// Settings that all policies share.
pub(crate) struct CommonSettings<'a> {
    /// The configuration of responses.
    pub(crate) respond: &'a Layer,
    /// The sources of rates that are not written in the configuration.
    pub(crate) plans: &'a [PlanSource],
}

/// Reads `policies`.
pub(crate) fn read_all(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    naming: &mut KeyNamer,
    common: &CommonSettings<'_>,
) -> Vec<Policy> {
    let items = reader.list(value);
    refuse_too_many(reader, value, items.len(), POLICIES_MAX);
    let mut names = DistinctNames::new("policies");
    let policies = items.iter().take(POLICIES_MAX);
    let policies = policies.filter_map(|item| policy(reader, item, &mut names, naming, common));
    let policies = policies.collect();
    domain::refuse_shared(reader, &items);
    policies
}

fn policy(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    names: &mut DistinctNames,
    naming: &mut KeyNamer,
    common: &CommonSettings<'_>,
) -> Option<Policy> {
    let fields = reader.fields(value, &POLICY)?;
    let name = fields
        .get("name")
        .and_then(|value| names.read(reader, &value));
    let evaluate = reader
        .setting(&fields, "evaluate", |word| EVALUATE.parse(word))
        .unwrap_or_default();
    let domain = reader.setting(&fields, "domain", domain::parse);
    let charge = reader.setting(&fields, "charge", |word| CHARGE.parse(word));
    let charge = charge.unwrap_or_default();
    let reserving = reserve::read(reader, &fields);
    let respond = respond::read(reader, fields.get("respond").as_ref(), common.respond);
    naming.enter(name.as_deref());
    let around = LimitScope {
        names: DistinctNames::new("limits"),
        naming,
        refusal: &respond.refusal,
        evaluate,
        plans: common.plans,
        reserves: fields.get("reserve").is_some(),
        charge,
        calendar: calendar::of_policy(reader, &fields),
    };
    let limits = limits(reader, &fields.get("limits")?, around);
    reserve::check(reader, &fields, evaluate, &limits);
    calendar::warn_in_vain(reader, &fields, &limits);
    // A policy with an error is never used, so do not prepare it.
    if reader.has_errors() {
        return None;
    }
    let policy = Policy::new(name?, evaluate, limits)
        .with_domain(domain)
        .with_charge(charge)
        .with_reserving(reserving);
    Some(policy.with_respond(respond.respond()))
}

fn limits(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    mut around: LimitScope<'_>,
) -> Vec<Limit> {
    let items = reader.list(value);
    refuse_too_many(reader, value, items.len(), LIMITS_MAX);
    let mut limits = Vec::new();
    let mut decides_all: Option<String> = None;
    for item in items.iter().take(LIMITS_MAX) {
        let limit = limit::read(reader, item, &mut around);
        if let Some(limit) = &limit
            && around.evaluate == Evaluate::First
            && limit.enabled
        {
            warn_if_unreachable(reader, item, limit, &mut decides_all);
        }
        limits.push(limit);
    }
    superseded::resolve(reader, &items, &mut limits);
    descriptor::refuse_override(reader, &items, &limits);
    limits.into_iter().flatten().collect()
}

/// Warns about a limit of a `first` policy that comes after an enforced limit which applies to every
/// request.
fn warn_if_unreachable(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    limit: &Limit,
    decides_all: &mut Option<String>,
) {
    // Each descriptor is matched separately.
    if limit.matches_each_descriptor() {
        return;
    }
    if let Some(earlier) = decides_all {
        let message = format!(
            "limit `{}` is never reached: `{earlier}` matches every request",
            limit.name
        );
        let fault = ConfigFault::new(message).help(format!(
            "write it before `{earlier}`, or use `evaluate: all`"
        ));
        reader.warn(value.spot(), fault);
    } else if limit.conditions.is_empty()
        && limit.mode == LimitMode::Enforce
        && limit.missing != tidegate_policy::limit::MissingIdentity::Skip
    {
        *decides_all = Some(limit.name.clone());
    }
}
