//! Budgets of a subject, like `tidegate budget`, in the store of this server.

use super::buckets::{config, note, refusal};
use crate::admin::api::Api;
use crate::admin::api::bodies::budgets::BudgetSelector;
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::reply::{AdminReply, ReplyResult};
use crate::admin::api::routing::call::AdminCall;
use crate::buckets::budget::{Budget, BudgetQuery, BudgetReport};
use tidegate_net::tasks;

/// Reads the budgets of a subject.
pub(in super::super) async fn read(
    api: &Api,
    _: &AdminCall,
    body: BudgetSelector,
) -> ReplyResult<BudgetReport> {
    let key = body.key.into_iter();
    let query = BudgetQuery {
        policy: body.policy,
        key: key.map(|(name, value)| format!("{name}={value}")).collect(),
    };
    if query.key.is_empty() {
        return Err(AdminProblem::invalid("key", "it names no identity"));
    }
    let config = config(api).await?;
    // This may look rates up in plans, which can take any time.
    let found = tasks::blocking(move || Budget::find(&config, &query));
    let found = found.await.ok_or_else(AdminProblem::internal)?;
    let store = api.decider.limiter().store();
    let budget = found.map_err(refusal)?;
    let mut report = budget.read(store).await.map_err(refusal)?;
    let is_found = report.limits.iter().all(|it| it.found);
    report.note = report.note.or_else(|| note(store, is_found));
    Ok(AdminReply::ok(report))
}
