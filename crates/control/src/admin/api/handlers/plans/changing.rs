//! Changes an entry: validates it together with all others, like a server that loads them; writes it if
//! nothing has changed meanwhile; and then serves it.

use super::place::PlanLocation;
use crate::admin::api::Api;
use crate::admin::api::audit::{AuditOutcome, AuditedChange};
use crate::admin::api::problem::AdminProblem;
use crate::docstore::{Revision, WriteError};
use crate::sources::entries::{self, PlanEntries, settings};
use serde_json::{Map, Value};
use std::sync::Arc;
use tidegate::plan::{PlanErrors, PlanLevel, PlanTable};
use tidegate_net::tasks::blocking;
use tidegate_policy::redact;
use tidegate_policy::text::counted;

/// The number of attempts for a change that conflicts with concurrent changes.
const TRIES_MAX: usize = 8;

/// Changes the entry `id`. `change` gets its text and its users, and returns the new settings, or `None`
/// to remove it. Returns the entries after the change, and the change to record.
pub(super) async fn submit(
    api: &Api,
    (place, id): (&PlanLocation, &str),
    change: impl Fn(
        Option<&str>,
        &[(PlanLevel, String)],
    ) -> Result<Option<Map<String, Value>>, AdminProblem>,
) -> Result<(PlanEntries, Option<AuditedChange>), AdminProblem> {
    let shelf = place.writable(api)?;
    // Serialized, so that the last change written is the last one served.
    let _turn = api.planning.lock().await;
    for _ in 0..TRIES_MAX {
        let (there, _walk) = place.read(api, &*shelf).await?;
        let level = place.level;
        let read = blocking(move || (there.users(level), there));
        let (users, there) = read.await.ok_or_else(AdminProblem::internal)?;
        let before = there.get(level, id).map(str::to_owned);
        let after = change(before.as_deref(), users.of(id))?;
        let text = after.map(|settings| Value::Object(settings).to_string());
        let is_same = before.as_deref().map(said) == text.as_deref().map(said);
        let Some(change) = (!is_same).then(|| AuditedChange {
            target: place.target(id),
            before: before.as_deref().map_or(Value::Null, said),
            after: text.as_deref().map_or(Value::Null, said),
        }) else {
            return Ok((there, None));
        };
        if let Some(text) = &text {
            refuse_masks(&said(text))?;
        }
        let edit = (id.to_owned(), text);
        let changes = [entries::change(level, id, edit.1.as_deref())];
        let version = there.version().clone();
        let checked = check(api, place, there, edit).await?;
        match shelf.write(&version, &changes).await {
            Ok(version) => return serve(api, place, (checked, version), change).await,
            Err(WriteError::Conflict) => {}
            Err(WriteError::Away(why)) => return Err(AdminProblem::unavailable(why)),
            // The write may have happened, and only its reply was lost.
            Err(WriteError::Doubtful(why)) => {
                return Err(
                    AdminProblem::unavailable(why).with_change(AuditOutcome::Unknown, change)
                );
            }
        }
    }
    Err(AdminProblem::conflict(
        "the plans keep changing concurrently: try again",
    ))
}

/// The entries after a change, with their table; or with the remaining errors, if they are fewer than
/// before.
type CheckedPlans = (PlanEntries, Result<Arc<PlanTable>, PlanErrors>);

/// Validates the entries with an entry of this text, or without it, and with all limits that use them. If
/// they are invalid already, because of a change made elsewhere, fewer errors are enough, so that the
/// errors can be fixed one by one.
async fn check(
    api: &Api,
    place: &PlanLocation,
    there: PlanEntries,
    (id, text): (String, Option<String>),
) -> Result<CheckedPlans, AdminProblem> {
    let limiter = api.decider.limiter().clone();
    let (name, terms, hides) = (
        place.source.name.clone(),
        place.source.terms.clone(),
        place.hides,
    );
    let level = place.level;
    let checked = blocking(move || {
        let next = there.with(level, &id, text.as_deref());
        let table = |entries: &PlanEntries| {
            let table = Arc::new(entries.document(hides).table(terms.clone())?);
            // An entry that no limit can count is a smaller error than one that cannot be parsed.
            let could = limiter.validate_plans(&name, &table);
            could.map_err(|error| PlanErrors::one(error.to_string()))?;
            Ok(table)
        };
        let errors = match table(&next) {
            Ok(table) => return Ok((next, Ok(table))),
            Err(errors) => errors,
        };
        let unread = |entries: &PlanEntries| {
            let table = entries.document(hides).table(terms.clone());
            table.map_or_else(|errors: PlanErrors| errors.count(), |_| 0)
        };
        if unread(&next) < unread(&there) {
            return Ok((next, Err(errors)));
        }
        Err(errors)
    });
    let checked = checked.await.ok_or_else(AdminProblem::internal)?;
    checked.map_err(|errors| unsound(&errors))
}

/// Serves the entries that were written as `version`, or returns why that fails.
async fn serve(
    api: &Api,
    place: &PlanLocation,
    ((entries, table), version): (CheckedPlans, Revision),
    change: AuditedChange,
) -> Result<(PlanEntries, Option<AuditedChange>), AdminProblem> {
    let (limiter, name) = (api.decider.limiter().clone(), place.source.name.clone());
    let served = match table {
        Ok(table) => {
            let using = blocking(move || limiter.use_plans(&name, table, Some(version.0)));
            match using.await {
                Some(Ok(())) => Ok(()),
                // A reload may have happened in between.
                Some(Err(error)) => Err(PlanErrors::one(error.to_string())),
                None => Err(PlanErrors::one("it did not finish")),
            }
        }
        Err(errors) => Err(errors),
    };
    match served {
        Ok(()) => Ok((entries, Some(change))),
        Err(errors) => {
            let refusal = unsound(&errors).with("source", "it is written, and not served");
            Err(refusal.with_change(AuditOutcome::RefusedAfterWriting, change))
        }
    }
}

fn unsound(errors: &PlanErrors) -> AdminProblem {
    let errors_counted = counted(errors.count(), "error", "errors");
    let refusal =
        AdminProblem::unprocessable(format!("the result would be invalid: {errors_counted}"));
    let messages = errors.messages().iter();
    messages.fold(refusal, |refusal, message| refusal.with("body", message))
}

/// Returns the content of an entry for the audit log. A text that cannot be parsed is omitted: it may
/// contain a secret.
fn said(text: &str) -> Value {
    settings(text).map_or_else(|| Value::from("not JSON"), Value::Object)
}

/// Rejects an entry that contains masks: the masked secrets would be lost.
fn refuse_masks(said: &Value) -> Result<(), AdminProblem> {
    let why = "`***` replaces a value that is not shown: send the value, or omit the field";
    if redact::is_masked(said) {
        return Err(AdminProblem::invalid("body", why));
    }
    Ok(())
}
