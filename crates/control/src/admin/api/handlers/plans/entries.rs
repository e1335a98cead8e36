//! Lists, reads, creates, changes and removes plans, groups and subjects.

use super::changing::submit;
use super::place::PlanLocation;
use crate::admin::api::Api;
use crate::admin::api::bodies::documents::{EntryMode, ModeChange};
use crate::admin::api::bodies::page::ListPage;
use crate::admin::api::bodies::plans::{EffectivePlan, EntryItem, NewEntry, PlanAssignment};
use crate::admin::api::bodies::{DocumentUser, MergePatch, NoContent};
use crate::admin::api::etag::ETag;
use crate::admin::api::handlers::editing::used;
use crate::admin::api::patch;
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::reply::{AdminReply, ReplyResult};
use crate::admin::api::routing::call::AdminCall;
use crate::admin::api::routing::path::{encode, is_sound};
use crate::admin::api::routing::route::BASE;
use crate::sources::entries::{PlanEntries, settings};
use serde_json::{Map, Value};
use std::sync::Arc;
use tidegate::plan::{PlanLevel, PlanShare, PlanTable, RateName, SubjectEntry, refers};
use tidegate_net::tasks::blocking;
use tidegate_policy::calendar::{CalendarLevel, Weekday, ZoneNumber};

/// The maximum number of users of an entry that are listed by name.
const USERS_MAX: usize = 20;

/// Lists the entries of a level.
pub(in super::super::super) async fn list_entries(
    api: &Api,
    call: &AdminCall,
) -> ReplyResult<ListPage<EntryItem>> {
    let place = PlanLocation::of(api, call).await?;
    let prefix = call.query.text("name").map(str::to_owned);
    if prefix.is_some() && place.is_secret() {
        let why = "these are secrets, and not shown: none can be looked for";
        return Err(AdminProblem::malformed("query.name", why));
    }
    let shelf = place.shelf(api)?;
    let (entries, _turn) = place.read(api, &*shelf).await?;
    let views = EntryViews::new(api, place);
    let query = call.query.clone();
    // There may be many entries.
    let page = blocking(move || {
        let of_level = entries.of(views.place.level);
        let prefix = prefix.as_deref().unwrap_or_default();
        let wanted: Vec<(&str, &str)> = of_level.filter(|(id, _)| id.starts_with(prefix)).collect();
        let users = entries.users(views.place.level);
        ListPage::of(&wanted, &query, |(id, text)| {
            views.item(id, text, users.of(id))
        })
    });
    let page = page.await.ok_or_else(AdminProblem::internal)?;
    Ok(AdminReply::ok(page))
}

/// Returns one entry.
pub(in super::super::super) async fn get(api: &Api, call: &AdminCall) -> ReplyResult<EntryItem> {
    let place = PlanLocation::of(api, call).await?;
    let id = call.param("entry");
    if place.source.shelf().is_none() {
        return EntryViews::new(api, place).known(id);
    }
    let shelf = place.shelf(api)?;
    let (entries, _turn) = place.read(api, &*shelf).await?;
    EntryViews::new(api, place).show(entries, id).await
}

/// Creates an entry.
pub(in super::super::super) async fn create(
    api: &Api,
    call: &AdminCall,
    body: NewEntry,
) -> ReplyResult<EntryItem> {
    let place = PlanLocation::of(api, call).await?;
    let NewEntry { id, mut settings } = body;
    settings.retain(|_, value| !value.is_null());
    if !is_sound(&id) {
        let why = "it needs one: a text without control characters";
        return Err(AdminProblem::invalid("id", why));
    }
    let made = |there: Option<&str>, _: &[(PlanLevel, String)]| match there {
        Some(_) => {
            let (noun, shown) = (place.level.noun(), place.shown(place.level, &id));
            let name = tidegate_frontends::wire::fault::quote(&shown);
            Err(AdminProblem::conflict(format!(
                "there is a {noun} {name} already"
            )))
        }
        None => Ok(Some(settings.clone())),
    };
    let saved = api.change(call, submit(api, (&place, &id), made)).await?;
    let level = place.level.plural();
    let shown = place.shown(place.level, &id);
    let location = [place.source.name.as_str(), level, &shown].map(encode);
    let location = format!("{BASE}/plans/{}", location.join("/"));
    let reply = EntryViews::new(api, place).show(saved, &id).await?;
    Ok(reply.created(location))
}

/// Applies a merge patch to an entry.
pub(in super::super::super) async fn change(
    api: &Api,
    call: &AdminCall,
    MergePatch(mut patch): MergePatch,
) -> ReplyResult<EntryItem> {
    let id = call.param("entry");
    if patch.remove("id").is_some_and(|renamed| renamed != id) {
        let why = "an id cannot be changed: buckets are named after it";
        return Err(AdminProblem::invalid("id", why));
    }
    let patch = Value::Object(patch);
    alter(api, call, |settings| {
        let mut patched = Value::Object(std::mem::take(settings));
        patch::merge(&mut patched, &patch);
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
    body: ModeChange<EntryMode>,
) -> ReplyResult<EntryItem> {
    alter(api, call, |settings| {
        match body.mode {
            EntryMode::Off => settings.insert("enabled".to_owned(), Value::Bool(false)),
            EntryMode::Enforce => settings.remove("enabled"),
        };
    })
    .await
}

/// Sets the plan of a group or a subject; `null` removes it.
pub(in super::super::super) async fn assign(
    api: &Api,
    call: &AdminCall,
    body: PlanAssignment,
) -> ReplyResult<EntryItem> {
    alter(api, call, |settings| {
        match &body.plan {
            Some(plan) => settings.insert("plan".to_owned(), plan.as_str().into()),
            None => settings.remove("plan"),
        };
    })
    .await
}

/// Removes an entry that is not in use.
pub(in super::super::super) async fn remove(api: &Api, call: &AdminCall) -> ReplyResult<NoContent> {
    let place = PlanLocation::of(api, call).await?;
    let id = call.param("entry");
    let removed = |there: Option<&str>, users: &[(PlanLevel, String)]| {
        let text = there.ok_or_else(|| unknown(&place, id))?;
        call.expected.check(&etag(text))?;
        if !users.is_empty() {
            let names = users.iter().take(USERS_MAX);
            let names =
                names.map(|(level, id)| format!("{} `{}`", level.noun(), place.shown(*level, id)));
            let mut names: Vec<String> = names.collect();
            if let Some(more) = users.len().checked_sub(USERS_MAX).filter(|more| *more > 0) {
                names.push(format!("{more} more"));
            }
            return Err(used(place.level.noun(), id, &names));
        }
        Ok(None)
    };
    api.change(call, submit(api, (&place, id), removed)).await?;
    Ok(AdminReply::no_content())
}

/// Changes the settings of an existing entry, of the version that the caller has seen.
async fn alter(
    api: &Api,
    call: &AdminCall,
    change: impl Fn(&mut Map<String, Value>),
) -> ReplyResult<EntryItem> {
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
    EntryViews::new(api, place).show(saved, id).await
}

/// Returns the version of an entry. It depends on the content only, not on how a store formats it.
pub(super) fn etag(text: &str) -> ETag {
    settings(text).map_or_else(|| ETag::of_text(text), |it| ETag::of(&Value::Object(it)))
}

fn unknown(place: &PlanLocation, id: &str) -> AdminProblem {
    AdminProblem::not_found(place.level.noun(), &place.shown(place.level, id))
}

/// Makes the views of entries.
struct EntryViews {
    place: PlanLocation,
    /// The plans that this server applies.
    table: Option<Arc<PlanTable>>,
}

impl EntryViews {
    fn new(api: &Api, place: PlanLocation) -> Self {
        let table = place.table(api);
        Self { place, table }
    }

    /// Returns an entry, with its first users.
    fn item(&self, id: &str, text: &str, users: &[(PlanLevel, String)]) -> EntryItem {
        let place = &self.place;
        let names = users
            .iter()
            .take(USERS_MAX)
            .map(|(level, id)| DocumentUser::new(level.noun(), place.shown(*level, id)));
        self.view(id, Some(text), (names.collect(), users.len()))
    }

    fn view(
        &self,
        id: &str,
        text: Option<&str>,
        (used_by, users): (Vec<DocumentUser>, usize),
    ) -> EntryItem {
        let place = &self.place;
        let settings = text.and_then(settings);
        let is_off = text.is_some_and(|text| refers(place.level, text).is_off);
        EntryItem {
            id: place.shown(place.level, id),
            level: place.level.plural(),
            writable: place.source.shelf().is_some_and(|it| it.writable),
            version: text.map(|text| etag(text).as_str().to_owned()),
            mode: if is_off {
                EntryMode::Off
            } else {
                EntryMode::Enforce
            },
            settings,
            has: self.has(id),
            used_by,
            users,
        }
    }

    /// Returns the effective values that this server applies, all levels combined: the rate of a subject,
    /// or the quota of a group.
    fn has(&self, id: &str) -> Option<EffectivePlan> {
        let table = self.table.as_deref()?;
        let found = match self.place.level {
            PlanLevel::Plan => None,
            PlanLevel::Group => table.group(id),
            PlanLevel::Subject => table.get(id),
        }?;
        Some(has(table, &found))
    }

    /// Returns an existing entry as a response.
    async fn show(self, entries: PlanEntries, id: &str) -> ReplyResult<EntryItem> {
        let id = id.to_owned();
        // There may be many entries, and each may use this one.
        let shown = blocking(move || {
            let text = entries.get(self.place.level, &id);
            let text = text.ok_or_else(|| unknown(&self.place, &id))?;
            let users = entries.users(self.place.level);
            Ok(AdminReply::ok(self.item(&id, text, users.of(&id))).at(etag(text)))
        });
        shown.await.unwrap_or_else(|| Err(AdminProblem::internal()))
    }

    /// Returns the known values of an entry whose source does not store entries by name.
    fn known(&self, id: &str) -> ReplyResult<EntryItem> {
        if self.table.is_none() {
            return Err(AdminProblem::unavailable(
                "these plans have never been loaded",
            ));
        }
        if self.place.level == PlanLevel::Plan {
            return Err(self.place.elsewhere());
        }
        if self.has(id).is_none() {
            return Err(unknown(&self.place, id));
        }
        Ok(AdminReply::ok(self.view(id, None, (Vec::new(), 0))))
    }
}

fn has(table: &PlanTable, found: &SubjectEntry<'_>) -> EffectivePlan {
    let requests = RateName::default();
    let share = found.share(&requests);
    let named = found.named_shares();
    let calendar = calendar_of(table, found);
    EffectivePlan {
        rate: share.and_then(|it| text_of(table, &requests, it.share)),
        rates: named
            .filter_map(|(name, it)| Some((name.to_string(), text_of(table, name, it.share)?)))
            .collect(),
        time_zone: calendar.zone.map(ZoneNumber::name),
        week_start: calendar.week_start.map(Weekday::word),
        anchor: calendar.anchor.map(|anchor| anchor.to_string()),
        group: found.group.map(str::to_owned),
        is_default: share.is_some_and(|it| it.is_unset),
    }
}

/// Returns the calendar that the entry's levels set, if one of its rates has windows of the calendar.
fn calendar_of(table: &PlanTable, found: &SubjectEntry<'_>) -> CalendarLevel {
    let requests = RateName::default();
    let share = found.share(&requests).map(|it| (&requests, it));
    let levels = share
        .into_iter()
        .chain(found.named_shares())
        .filter_map(|(name, it)| match it.share {
            PlanShare::Rate(number) => table.rates(name).get(usize::try_from(number).ok()?),
            PlanShare::Unlimited | PlanShare::Nothing => None,
        });
    let mut levels = levels.map(|rate| rate.level);
    let is_set = |level: &CalendarLevel| *level != CalendarLevel::default();
    levels.find(is_set).unwrap_or_default()
}

/// Returns the text of a share of the rate `name`.
fn text_of(table: &PlanTable, name: &RateName, share: PlanShare) -> Option<String> {
    match share {
        PlanShare::Rate(number) => {
            let rate = table.rates(name).get(usize::try_from(number).ok()?)?;
            Some(rate.to_string())
        }
        PlanShare::Unlimited => Some("unlimited".to_owned()),
        PlanShare::Nothing => Some("refuse".to_owned()),
    }
}
