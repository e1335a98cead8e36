//! Plans for commands that need them once: to check them, to look by them, to simulate.

use super::redis_store::wait_for;
use crate::failure::Failure;
use crate::sources::{self, Plans};
use std::fmt::Write;
use std::sync::Arc;
use tidegate::plan::{Origin, PlanSource, Table, Tables};
use tidegate::{LoadPlans, LoadedPlans};
use tidegate_policy::{Config, Limit};
use tokio::time::timeout;

/// What the sources tell now that are `wanted`; `None` for the others. `limits` are those that ask them:
/// whom they know by a secret is shown in no message.
pub(crate) fn load<'a>(
    sources: &[PlanSource],
    limits: impl Iterator<Item = &'a Limit>,
    wanted: impl Fn(usize, &PlanSource) -> bool,
) -> Result<Vec<Option<Arc<Table>>>, Failure> {
    let plans = limits.filter_map(|limit| limit.plan.as_ref());
    let secret = plans.filter(|plan| plan.hides_subject());
    let secret: Vec<usize> = secret.map(|plan| plan.source).collect();
    let mut tables = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        tables.push(if wanted(number, source) {
            Some(Arc::new(load_one(source, secret.contains(&number))?))
        } else {
            None
        });
    }
    Ok(tables)
}

fn load_one(source: &PlanSource, hides_subjects: bool) -> Result<Table, Failure> {
    let wrong = |why: String| Failure::input(format!("plans `{}`: {why}", source.name));
    let loaded = wait_for(async {
        let plans = Plans::default();
        let loading = plans.load(source, None, hides_subjects);
        let loaded = timeout(source.timeout, loading).await;
        let late = |_| Err(format!("there was no answer within {:?}", source.timeout));
        loaded.unwrap_or_else(late).map_err(wrong)
    })?;
    match loaded {
        LoadedPlans::Changed { document, .. } => document
            .table(source.unset)
            .map_err(|errors| wrong(errors.to_string())),
        LoadedPlans::Unchanged => Ok(Table::default()),
    }
}

/// Checks the plans in files that `config` names, and tells what they hold; of others, that they were
/// not asked.
pub(crate) fn check(config: &Config) -> Result<Vec<String>, Failure> {
    let is_file = |_: usize, source: &PlanSource| matches!(source.origin, Origin::File(_));
    for source in &config.plans {
        if let Some(why) = sources::missing(source) {
            return Err(Failure::input(format!("plans `{}`: {why}", source.name)));
        }
    }
    let limits = config.written().flat_map(|policy| &policy.limits);
    let tables = load(&config.plans, limits, is_file)?;
    check_rates(config, &tables)?;
    let told = config.plans.iter().zip(&tables);
    Ok(told
        .map(|(source, table)| tell(source, table.as_deref()))
        .collect())
}

/// Every rate must be one that the limits which ask for it can count.
fn check_rates(config: &Config, tables: &Tables) -> Result<(), Failure> {
    for policy in config.written() {
        for limit in &policy.limits {
            let source = limit.plan.as_ref().map(|plan| plan.source);
            let table = source.and_then(|source| tables.get(source)?.as_deref());
            for (nth, rate) in table.map_or(&[][..], Table::rates).iter().enumerate() {
                limit.planned_band(*rate).map_err(|why| {
                    let whose = table.map_or("", |table| table.whose(nth));
                    Failure::input(format!("{whose}, for limit `{}`: {why}", limit.name))
                })?;
            }
        }
    }
    Ok(())
}

fn tell(source: &PlanSource, table: Option<&Table>) -> String {
    let name = &source.name;
    let Some(table) = table else {
        return format!(
            "Plans `{name}`: not asked, for they come from {}.",
            source.kind()
        );
    };
    let notes = table.notes();
    let mut told = format!(
        "Plans `{name}`: subjects: {}, groups: {}, different rates: {}.",
        table.subjects(),
        table.groups(),
        table.rates().len()
    );
    for (count, what) in [
        (
            notes.plans_missing,
            "have a plan that is not there, and what they say themselves",
        ),
        (
            notes.groups_missing,
            "groups are not there, though subjects belong to them",
        ),
        (
            notes.unset,
            "subjects are there of which nothing says how much",
        ),
    ] {
        if count > 0 {
            // Writing to a string cannot fail.
            write!(told, " {count} {what}.").ok();
        }
    }
    told
}
