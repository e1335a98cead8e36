//! Lists, reads, creates, changes and removes plans, groups and subjects.

use super::OF_ENTRIES;
use super::changing::submit;
use super::place::PlanLocation;
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::etag::ETag;
use crate::doors::admin::api::of::editing::used;
use crate::doors::admin::api::of::modes::wanted;
use crate::doors::admin::api::page;
use crate::doors::admin::api::patch;
use crate::doors::admin::api::path::{encode, is_sound};
use crate::doors::admin::api::respond::{AdminProblem, Done, ProblemCollector};
use crate::doors::admin::api::route::BASE;
use crate::sources::entries::{PlanEntries, settings};
use crate::tasks::blocking;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tidegate::plan::{PlanLevel, PlanShare, PlanTable, SubjectEntry, refers};

/// The maximum number of users of an entry that are listed by name.
const USERS_MAX: usize = 20;

/// Lists the entries of a level.
pub(in super::super::super) async fn list_entries(
    api: &Api,
    call: &AdminCall,
) -> Result<Done, AdminProblem> {
    let place = PlanLocation::of(api, call).await?;
    let prefix = call.query.text("name").map(str::to_owned);
    if prefix.is_some() && place.is_secret() {
        let why = "these are secrets, and not shown: none can be looked for";
        return Err(AdminProblem::bad("query.name", why));
    }
    let shelf = place.shelf(api)?;
    let (entries, _turn) = place.read(api, &*shelf).await?;
    let teller = Teller::new(api, place);
    let query = call.query.clone();
    // There may be many entries.
    let body = blocking(move || {
        let of_level = entries.of(teller.place.level);
        let prefix = prefix.as_deref().unwrap_or_default();
        let wanted: Vec<(&str, &str)> = of_level.filter(|(id, _)| id.starts_with(prefix)).collect();
        let users = entries.users(teller.place.level);
        page::of(&wanted, &query, |(id, text)| {
            teller.item(id, text, users.of(id))
        })
    });
    Ok(Done::seen(body.await.ok_or_else(AdminProblem::failed)?))
}

/// Returns one entry.
pub(in super::super::super) async fn get(
    api: &Api,
    call: &AdminCall,
) -> Result<Done, AdminProblem> {
    let place = PlanLocation::of(api, call).await?;
    let id = call.param("entry");
    if place.source.shelf().is_none() {
        return Teller::new(api, place).known(id);
    }
    let shelf = place.shelf(api)?;
    let (entries, _turn) = place.read(api, &*shelf).await?;
    Teller::new(api, place).show(entries, id).await
}

/// Creates an entry.
pub(in super::super::super) async fn create(
    api: &Api,
    call: &AdminCall,
) -> Result<Done, AdminProblem> {
    let place = PlanLocation::of(api, call).await?;
    let mut said = call.body.as_object().cloned().unwrap_or_default();
    said.retain(|_, value| !value.is_null());
    let id = match said.remove("id") {
        Some(Value::String(id)) if is_sound(&id) => id,
        _ => {
            return Err(AdminProblem::senseless(
                "id",
                "it needs one: a text without control characters",
            ));
        }
    };
    let made = |there: Option<&str>, _: &[(PlanLevel, String)]| match there {
        Some(_) => {
            let (noun, shown) = (place.level.noun(), place.shown(place.level, &id));
            let name = crate::wire::fault::quote(&shown);
            Err(AdminProblem::new(
                409,
                format!("there is a {noun} {name} already"),
            ))
        }
        None => Ok(Some(said.clone())),
    };
    let saved = api.change(call, submit(api, (&place, &id), made)).await?;
    let level = place.level.plural();
    let shown = place.shown(place.level, &id);
    let location = [place.source.name.as_str(), level, &shown].map(encode);
    let location = format!("{BASE}/plans/{}", location.join("/"));
    let done = Teller::new(api, place).show(saved, &id).await?;
    Ok(done.into_created(location))
}

/// Applies a merge patch to an entry.
pub(in super::super::super) async fn change(
    api: &Api,
    call: &AdminCall,
) -> Result<Done, AdminProblem> {
    let id = call.param("entry");
    if call.body.get("id").is_some_and(|renamed| renamed != id) {
        let why = "an id cannot be changed: buckets are named after it";
        return Err(AdminProblem::senseless("id", why));
    }
    alter(api, call, |settings| {
        let mut patched = Value::Object(std::mem::take(settings));
        let mut said = call.body.clone();
        if let Value::Object(said) = &mut said {
            said.remove("id");
        }
        patch::merge(&mut patched, &said);
        if let Value::Object(patched) = patched {
            *settings = patched;
        }
    })
    .await
}

/// Enables or disables an entry.
pub(in super::super::super) async fn turn(
    api: &Api,
    call: &AdminCall,
) -> Result<Done, AdminProblem> {
    let mode = wanted(call, &OF_ENTRIES)?;
    alter(api, call, |settings| {
        match mode {
            "off" => settings.insert("enabled".to_owned(), Value::Bool(false)),
            _ => settings.remove("enabled"),
        };
    })
    .await
}

/// Sets the plan of a group or a subject; `null` removes it.
pub(in super::super::super) async fn assign(
    api: &Api,
    call: &AdminCall,
) -> Result<Done, AdminProblem> {
    let mut wrong = ProblemCollector::default();
    wrong.take(call.only(&["plan"]));
    let plan = wrong.take(call.text("plan"));
    if call.body.get("plan").is_none() {
        let missing = AdminProblem::senseless("plan", "the id of a plan, or `null` for none");
        wrong.take::<()>(Err(missing));
    }
    wrong.end()?;
    let plan = plan.ok_or_else(AdminProblem::failed)?;
    alter(api, call, |settings| {
        match plan {
            Some(plan) => settings.insert("plan".to_owned(), plan.into()),
            None => settings.remove("plan"),
        };
    })
    .await
}

/// Removes an entry that is not in use.
pub(in super::super::super) async fn remove(
    api: &Api,
    call: &AdminCall,
) -> Result<Done, AdminProblem> {
    let place = PlanLocation::of(api, call).await?;
    let id = call.param("entry");
    let removed = |there: Option<&str>, users: &[(PlanLevel, String)]| {
        let text = there.ok_or_else(|| unknown(&place, id))?;
        call.expected.check(&etag(text))?;
        if !users.is_empty() {
            let told = users.iter().take(USERS_MAX);
            let told =
                told.map(|(level, id)| format!("{} `{}`", level.noun(), place.shown(*level, id)));
            let mut told: Vec<String> = told.collect();
            if let Some(more) = users.len().checked_sub(USERS_MAX).filter(|more| *more > 0) {
                told.push(format!("{more} more"));
            }
            return Err(used(place.level.noun(), id, &told));
        }
        Ok(None)
    };
    api.change(call, submit(api, (&place, id), removed)).await?;
    Ok(Done::gone())
}

/// Changes the settings of an existing entry, of the version that the caller has seen.
async fn alter(
    api: &Api,
    call: &AdminCall,
    change: impl Fn(&mut Map<String, Value>),
) -> Result<Done, AdminProblem> {
    let place = PlanLocation::of(api, call).await?;
    let id = call.param("entry");
    let altered = |there: Option<&str>, _: &[(PlanLevel, String)]| {
        let text = there.ok_or_else(|| unknown(&place, id))?;
        call.expected.check(&etag(text))?;
        // An entry that cannot be parsed is replaced by the new settings.
        let mut settings = settings(text).unwrap_or_default();
        change(&mut settings);
        Ok(Some(settings))
    };
    let saved = api.change(call, submit(api, (&place, id), altered)).await?;
    Teller::new(api, place).show(saved, id).await
}

/// Returns the version of an entry. It depends on the content only, not on how a store formats it.
pub(super) fn etag(text: &str) -> ETag {
    settings(text).map_or_else(|| ETag::of_text(text), |it| ETag::of(&Value::Object(it)))
}

fn unknown(place: &PlanLocation, id: &str) -> AdminProblem {
    AdminProblem::unknown(place.level.noun(), &place.shown(place.level, id))
}

/// Serializes entries.
struct Teller {
    place: PlanLocation,
    /// The plans that this server applies.
    table: Option<Arc<PlanTable>>,
}

impl Teller {
    fn new(api: &Api, place: PlanLocation) -> Self {
        let table = place.table(api);
        Self { place, table }
    }

    /// Returns an entry as JSON.
    fn item(&self, id: &str, text: &str, users: &[(PlanLevel, String)]) -> Value {
        let place = &self.place;
        let told = users
            .iter()
            .take(USERS_MAX)
            .map(|(level, id)| json!({ "kind": level.noun(), "name": place.shown(*level, id) }));
        self.told(id, Some(text), (told.collect(), users.len()))
    }

    fn told(&self, id: &str, text: Option<&str>, (used_by, users): (Vec<Value>, usize)) -> Value {
        let place = &self.place;
        let settings = text.and_then(settings);
        let is_off = text.is_some_and(|text| refers(place.level, text).is_off);
        json!({
            "id": place.shown(place.level, id),
            "level": place.level.plural(),
            "writable": place.source.shelf().is_some_and(|it| it.writable),
            "version": text.map(|text| etag(text).as_str().to_owned()),
            "enabled": !is_off,
            "settings": settings,
            "has": self.has(id),
            "used_by": used_by,
            "users": users,
        })
    }

    /// Returns the effective values that this server applies, all levels combined: the rate of a subject,
    /// or the quota of a group.
    fn has(&self, id: &str) -> Option<Value> {
        let table = self.table.as_deref()?;
        let found = match self.place.level {
            PlanLevel::Plan => None,
            PlanLevel::Group => table.group(id),
            PlanLevel::Subject => table.get(id),
        }?;
        Some(has(table, &found))
    }

    /// Returns an existing entry as a response.
    async fn show(self, entries: PlanEntries, id: &str) -> Result<Done, AdminProblem> {
        let id = id.to_owned();
        // There may be many entries, and each may use this one.
        let shown = blocking(move || {
            let text = entries.get(self.place.level, &id);
            let text = text.ok_or_else(|| unknown(&self.place, &id))?;
            let users = entries.users(self.place.level);
            Ok(Done::seen(self.item(&id, text, users.of(&id))).at(etag(text)))
        });
        shown.await.unwrap_or_else(|| Err(AdminProblem::failed()))
    }

    /// Returns the known values of an entry whose source does not store entries by name.
    fn known(&self, id: &str) -> Result<Done, AdminProblem> {
        if self.table.is_none() {
            return Err(AdminProblem::away("these plans have never been loaded"));
        }
        if self.place.level == PlanLevel::Plan {
            return Err(self.place.elsewhere());
        }
        if self.has(id).is_none() {
            return Err(unknown(&self.place, id));
        }
        Ok(Done::seen(self.told(id, None, (Vec::new(), 0))))
    }
}

fn has(table: &PlanTable, found: &SubjectEntry<'_>) -> Value {
    let rate = match found.given {
        PlanShare::Rate(number) => {
            let at = usize::try_from(number).ok();
            let rate = at.and_then(|at| table.rates().get(at));
            rate.map(ToString::to_string)
        }
        PlanShare::Unlimited => Some("unlimited".to_owned()),
        PlanShare::Nothing => Some("refuse".to_owned()),
    };
    json!({ "rate": rate, "group": found.group, "is_default": found.is_unset })
}
