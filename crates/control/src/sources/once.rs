//! Plans for commands that need them once: to validate, to inspect, to simulate.

use super::{PlanLoader, missing};
use crate::failure::Failure;
use std::fmt::Write;
use std::future::Future;
use std::sync::Arc;
use tidegate::plan::{PlanErrors, PlanOrigin, PlanSource, PlanTable, Tables, UnsetShare};
use tidegate::{LoadPlans, LoadedPlans};
use tidegate_config::Config;
use tidegate_policy::Limit;
use tidegate_policy::text::counted;
use tokio::time::timeout;

/// Loads the plan sources that are `wanted`; `None` for the others. `limits` are those that use them:
/// subjects that are secrets are hidden in messages.
///
/// Starts a runtime and blocks this thread, for up to the timeout of each source: not for use in a server.
///
/// # Errors
///
/// [`Failure::Input`] with the name of the source and all its errors, if one cannot be read in time or is invalid.
pub fn load<'a>(
    sources: &[PlanSource],
    limits: impl Iterator<Item = &'a Limit>,
    wanted: impl Fn(usize, &PlanSource) -> bool,
) -> Result<Vec<Option<Arc<PlanTable>>>, Failure> {
    let plans = limits.filter_map(|limit| limit.plan.as_ref());
    let secret = plans.filter(|plan| plan.hides_subject());
    let secret: Vec<usize> = secret.map(|plan| plan.source).collect();
    let mut tables = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        tables.push(if wanted(number, source) {
            Some(match source.inline() {
                Some(table) => Arc::clone(table),
                None => Arc::new(load_one(source, secret.contains(&number))?),
            })
        } else {
            None
        });
    }
    Ok(tables)
}

fn load_one(source: &PlanSource, hides_subjects: bool) -> Result<PlanTable, Failure> {
    let wrong = |why: String| Failure::input(format!("plans `{}`: {why}", source.name));
    let loaded = wait_for(async {
        let plans = PlanLoader::default();
        let loading = plans.load(source, None, hides_subjects);
        let loaded = timeout(source.timeout, loading).await;
        let late = |_| Err(format!("no response within {:?}", source.timeout));
        loaded.unwrap_or_else(late).map_err(wrong)
    })?;
    match loaded {
        LoadedPlans::Changed { document, .. } => document
            .table(source.terms.clone())
            .map_err(|errors| wrong(listed(&errors))),
        LoadedPlans::Unchanged => Ok(PlanTable::default()),
    }
}

/// Formats errors for people: one on the same line, several below each other.
fn listed(errors: &PlanErrors) -> String {
    if errors.count() == 1 {
        return errors.to_string();
    }
    let text = errors.text().map_or(String::new(), |it| format!("{it}: "));
    let mut listed = format!("{text}{}", counted(errors.count(), "error", "errors"));
    for message in errors.messages() {
        let _ = write!(listed, "\n   {message}");
    }
    match errors.count().checked_sub(errors.messages().len()) {
        None | Some(0) => {}
        Some(more) => {
            let _ = write!(listed, "\n   and {more} more");
        }
    }
    listed
}

/// Summary of the plans of a configuration.
#[derive(Debug)]
pub struct PlanSummary {
    /// A line for each source.
    pub summaries: Vec<String>,
    /// Settings that are valid, but probably unintended.
    pub warnings: Vec<String>,
}

/// Checks the plans that `config` contains, or names as files, and summarizes them. Other sources are not
/// loaded.
///
/// # Errors
///
/// [`Failure::Input`] if a plan source needs a feature that this program was built without, if a file cannot
/// be read, or if one of its rates does not fit a limit that uses it.
pub fn check(config: &Config) -> Result<PlanSummary, Failure> {
    let is_local = |_: usize, source: &PlanSource| {
        matches!(source.origin, PlanOrigin::File(_) | PlanOrigin::Inline(_))
    };
    for source in &config.plans {
        if let Some(why) = missing(source) {
            return Err(Failure::input(format!("plans `{}`: {why}", source.name)));
        }
    }
    let limits = config.written().flat_map(|policy| &policy.limits);
    let tables = load(&config.plans, limits, is_local)?;
    check_rates(config, &tables)?;
    let loaded = || config.plans.iter().zip(&tables);
    Ok(PlanSummary {
        summaries: loaded()
            .map(|(it, table)| tell(it, table.as_deref()))
            .collect(),
        warnings: loaded()
            .filter_map(|(it, table)| warn_of_unset(it, table.as_deref()?))
            .collect(),
    })
}

/// Returns a warning if subjects are unlimited because no level specifies their rate.
fn warn_of_unset(source: &PlanSource, table: &PlanTable) -> Option<String> {
    let (count, name) = (table.notes().unset, &source.name);
    if count == 0 || source.terms.unset != UnsetShare::Unlimited {
        return None;
    }
    let (subjects, have) = match count {
        1 => ("subject", "has"),
        _ => ("subjects", "have"),
    };
    Some(format!(
        "plans `{name}`: warning: {count} {subjects} {have} neither a plan nor a rate and are \
         unlimited, because `unset` is `unlimited`\n   help: give each a plan, or write `unset: \
         refuse` or a rate such as `unset: 100/min`"
    ))
}

/// Fails if a rate cannot be counted by a limit that uses it.
fn check_rates(config: &Config, tables: &Tables) -> Result<(), Failure> {
    for policy in config.written() {
        for limit in &policy.limits {
            let plan = limit.plan.as_ref();
            let planned = plan.and_then(|it| Some((tables.get(it.source)?.as_deref()?, &it.name)));
            let Some((table, name)) = planned else {
                continue;
            };
            for (nth, rate) in table.rates(name).iter().enumerate() {
                limit.planned_band(*rate).map_err(|why| {
                    let whose = table.owner_of_rate(name, nth);
                    Failure::input(format!("{whose}, for limit `{}`: {why}", limit.name))
                })?;
            }
        }
    }
    Ok(())
}

fn tell(source: &PlanSource, table: Option<&PlanTable>) -> String {
    let name = &source.name;
    let Some(table) = table else {
        return format!(
            "Plans `{name}`: not checked, because they come from {}.",
            source.kind()
        );
    };
    let notes = table.notes();
    let unset = match source.terms.rates.len() {
        0 => "subjects have no rate",
        _ => "subjects lack a rate",
    };
    let mut text = format!(
        "Plans `{name}`: subjects: {}, groups: {}, different rates: {}.",
        table.subjects(),
        table.groups(),
        table.rates_count()
    );
    for (count, what) in [
        (
            notes.groups_missing,
            "groups are missing, but subjects refer to them",
        ),
        (notes.unset, unset),
    ] {
        if count > 0 {
            // Writing to a string cannot fail.
            write!(text, " {count} {what}.").ok();
        }
    }
    text
}

/// Runs `work` of a command to completion.
///
/// # Errors
///
/// [`Failure::Runtime`] if the system refuses a runtime, otherwise the failure of `work`.
///
/// # Panics
///
/// If the caller already runs on a runtime: only commands use it, and they start without one.
pub fn wait_for<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start: {error}")))?;
    runtime.block_on(work)
}
