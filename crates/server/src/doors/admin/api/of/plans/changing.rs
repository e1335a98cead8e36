//! Changes an entry: validates it together with all others, like a server that loads them; writes it if
//! nothing has changed meanwhile; and then serves it.

use super::place::PlanLocation;
use crate::doors::admin::api::Api;
use crate::doors::admin::api::audit::{AuditOutcome, AuditedChange};
use crate::doors::admin::api::respond::AdminProblem;
use crate::shelf::{Revision, WriteError};
use crate::sources::entries::{self, PlanEntries, settings};
use crate::tasks::blocking;
use serde_json::{Map, Value};
use std::sync::Arc;
use tidegate::plan::{PlanErrors, PlanLevel, PlanTable};
use tidegate_policy::mask;

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
        let (users, there) = read.await.ok_or_else(AdminProblem::failed)?;
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
            Err(WriteError::Away(why)) => return Err(AdminProblem::away(why)),
            // The write may have happened, and only its reply was lost.
            Err(WriteError::Doubtful(why)) => {
                return Err(AdminProblem::away(why).told(AuditOutcome::Unknown, change));
            }
        }
    }
    Err(AdminProblem::new(
        409,
        "others keep changing something: try again",
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
    let (name, unset, hides) = (place.source.name.clone(), place.source.unset, place.hides);
    let level = place.level;
    let checked = blocking(move || {
        let next = there.with(level, &id, text.as_deref());
        let table = |entries: &PlanEntries| {
            let table = Arc::new(entries.document(hides).table(unset)?);
            // An entry that no limit can count is a smaller error than one that cannot be parsed.
            let could = limiter.could_use_plans(&name, &table);
            could.map_err(|error| PlanErrors::one(error.to_string()))?;
            Ok(table)
        };
        let errors = match table(&next) {
            Ok(table) => return Ok((next, Ok(table))),
            Err(errors) => errors,
        };
        let unread = |entries: &PlanEntries| {
            let table = entries.document(hides).table(unset);
            table.map_or_else(|errors: PlanErrors| errors.count(), |_| 0)
        };
        if unread(&next) < unread(&there) {
            return Ok((next, Err(errors)));
        }
        Err(errors)
    });
    let checked = checked.await.ok_or_else(AdminProblem::failed)?;
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
            let using = blocking(move || limiter.use_plans_of(&name, table, Some(version.0)));
            match using.await {
                Some(Ok(())) => Ok(()),
                // A reload may have happened in between.
                Some(Err(error)) => Err(PlanErrors::one(error.to_string())),
                None => Err(PlanErrors::one("it came to no end")),
            }
        }
        Err(errors) => Err(errors),
    };
    match served {
        Ok(()) => Ok((entries, Some(change))),
        Err(errors) => {
            let refusal = unsound(&errors).with("source", "it is written, and not served");
            Err(refusal.told(AuditOutcome::RefusedAfterWriting, change))
        }
    }
}

fn unsound(errors: &PlanErrors) -> AdminProblem {
    let detail = match errors.count() {
        1 => "it would not be sound: 1 error".to_owned(),
        count => format!("it would not be sound: {count} errors"),
    };
    let refusal = AdminProblem::new(422, detail);
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
    let why = "`***` stands where something is not shown: send it itself, or leave it out";
    if mask::is_masked(said) {
        return Err(AdminProblem::senseless("body", why));
    }
    Ok(())
}
