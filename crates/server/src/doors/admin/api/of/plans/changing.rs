//! How an entry is changed: all of them are read, with the change, as a server would; then it is
//! written where nobody has changed anything meanwhile; and then it is served.

use super::entries::etag;
use super::place::Place;
use crate::doors::admin::api::Api;
use crate::doors::admin::api::audit::{Change, Outcome};
use crate::doors::admin::api::etag::ETag;
use crate::doors::admin::api::respond::Refusal;
use crate::shelf::WriteError;
use crate::sources::entries::{self, Entries, settings};
use crate::tasks::blocking;
use serde_json::{Map, Value};
use std::sync::Arc;
use tidegate::plan::{Level, PlanErrors, Table};
use tidegate_policy::mask;

/// How often a change is tried that others were quicker with.
const TRIES_MAX: usize = 8;

/// What was written.
#[derive(Debug)]
pub(super) struct Saved {
    /// All entries, as they are now.
    pub(super) entries: Entries,
    /// The version of the one.
    pub(super) etag: ETag,
}

/// Changes the entry `id` to what `change` makes of it and of all others: other settings, or none.
pub(super) async fn submit(
    api: &Api,
    (place, id): (&Place, &str),
    change: impl Fn(Option<&str>, &Entries) -> Result<Option<Map<String, Value>>, Refusal>,
) -> Result<(Saved, Option<Change>), Refusal> {
    let shelf = place.writable(api)?;
    for _ in 0..TRIES_MAX {
        let there = place.read(&*shelf).await?;
        let before = there.get(place.level, id).map(str::to_owned);
        let after = change(before.as_deref(), &there)?;
        if let Some(settings) = &after {
            refuse_masks(settings)?;
            refuse_missing_plan(place, settings, &there)?;
        }
        let change = Change {
            target: place.target(id),
            before: before.as_deref().map_or(Value::Null, said),
            after: after.clone().map_or(Value::Null, Value::Object),
        };
        let text = after.map(|settings| Value::Object(settings).to_string());
        let version = etag(text.as_deref().unwrap_or_default());
        if before.as_deref().and_then(settings) == text.as_deref().and_then(settings)
            && before.is_some() == text.is_some()
        {
            let etag = etag(before.as_deref().unwrap_or_default());
            let entries = there;
            return Ok((Saved { entries, etag }, None));
        }
        let next = there.with(place.level, id, text.as_deref());
        let (next, table) = check(api, place, there, next).await?;
        let changes = [entries::change(place.level, id, text.as_deref())];
        match shelf.write(next.version(), &changes).await {
            Ok(_) => {
                serve(api, place, table).await;
                let (entries, etag) = (next, version);
                return Ok((Saved { entries, etag }, Some(change)));
            }
            Err(WriteError::Conflict) => {}
            Err(WriteError::Away(why)) => return Err(Refusal::away(why)),
            // It may have been written, and only the answer was lost.
            Err(WriteError::Doubtful(why)) => {
                return Err(Refusal::away(why).told(Outcome::Unknown, change));
            }
        }
    }
    Err(Refusal::new(
        409,
        "others keep changing something: try again",
    ))
}

/// Whether `next` is sound with all limits that ask; the table of it. Where something was wrong `before`,
/// which nobody did from here, it is enough that less is wrong: so it can be put right one by one.
async fn check(
    api: &Api,
    place: &Place,
    before: Entries,
    next: Entries,
) -> Result<(Entries, Option<Arc<Table>>), Refusal> {
    let limiter = api.decider.limiter().clone();
    let (name, unset, hides) = (place.source.name.clone(), place.source.unset, place.hides);
    let checked = blocking(move || match next.document(hides).table(unset) {
        Ok(table) => {
            let table = Arc::new(table);
            let could = limiter.could_use_plans(&name, &table);
            could.map_err(|error| PlanErrors::one(error.to_string()))?;
            Ok((next, Some(table)))
        }
        Err(errors) => match before.document(hides).table(unset) {
            Err(earlier) if errors.count() < earlier.count() => Ok((next, None)),
            _ => Err(errors),
        },
    });
    let checked = checked.await.ok_or_else(Refusal::failed)?;
    checked.map_err(|errors| unsound(&errors))
}

fn unsound(errors: &PlanErrors) -> Refusal {
    let detail = match errors.count() {
        1 => "it would not be sound: 1 error".to_owned(),
        count => format!("it would not be sound: {count} errors"),
    };
    let refusal = Refusal::new(422, detail);
    let messages = errors.messages().iter();
    messages.fold(refusal, |refusal, message| refusal.with("body", message))
}

/// Goes by what was written at once. Whoever keeps plans reads it again anyway, a little later.
async fn serve(api: &Api, place: &Place, table: Option<Arc<Table>>) {
    let Some(table) = table else {
        return;
    };
    let (limiter, name) = (api.decider.limiter().clone(), place.source.name.clone());
    // A reload may have come between; then it is noted there why not.
    blocking(move || limiter.use_plans(&name, table).ok()).await;
}

/// What an entry says, for the audit.
fn said(text: &str) -> Value {
    settings(text).map_or_else(|| Value::from(text), Value::Object)
}

/// What was hidden from the caller, and comes back as it was shown, would be lost.
fn refuse_masks(settings: &Map<String, Value>) -> Result<(), Refusal> {
    let is_masked = settings.values().any(mask::is_masked);
    let why = "`***` stands where something is not shown: send it itself, or leave it out";
    if is_masked {
        return Err(Refusal::senseless("body", why));
    }
    Ok(())
}

/// A source may well name plans that are not there; somebody who asks for one means one that is.
fn refuse_missing_plan(
    place: &Place,
    settings: &Map<String, Value>,
    there: &Entries,
) -> Result<(), Refusal> {
    let plan = settings.get("plan").and_then(Value::as_str);
    match plan.filter(|_| place.level != Level::Plan) {
        Some(plan) if there.get(Level::Plan, plan).is_none() => {
            let name = crate::wire::fault::quote(plan);
            Err(Refusal::senseless(
                "plan",
                format!("there is no plan {name}"),
            ))
        }
        _ => Ok(()),
    }
}
