//! Plan sources, and their plans, groups and subjects.

use super::DocumentUser;
use super::documents::EntryMode;
use crate::admin::api::handlers::plans::LEVELS;
use crate::admin::health::body::PlanSourceStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A plan source.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanSourceItem {
    /// Its name, its kind, and its status.
    #[serde(flatten)]
    pub(crate) status: PlanSourceStatus,
    /// Its entries can be changed by this API.
    pub(crate) writable: bool,
    /// The number of groups.
    pub(crate) groups: usize,
    /// The limits whose rates come from it.
    pub(crate) used_by: Vec<DocumentUser>,
}

/// A plan, a group or a subject.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EntryItem {
    /// Its id; `***` if it is a secret.
    pub(crate) id: String,
    /// Its level.
    #[schemars(extend("enum" = LEVELS))]
    pub(crate) level: &'static str,
    /// It can be changed by this API.
    pub(crate) writable: bool,
    /// Its version, which is also the `ETag`; `null` if its source does not store entries by name.
    pub(crate) version: Option<String>,
    pub(crate) mode: EntryMode,
    /// Its own settings, if they are known.
    pub(crate) settings: Option<Map<String, Value>>,
    /// The values that this server applies, all levels combined.
    pub(crate) has: Option<EffectivePlan>,
    /// The first entries that use it.
    pub(crate) used_by: Vec<DocumentUser>,
    /// The number of entries that use it.
    pub(crate) users: usize,
}

/// The values that a server applies to a group or a subject.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EffectivePlan {
    /// The rate, `unlimited` or `refuse`.
    pub(crate) rate: Option<String>,
    /// The rates of other names, in the same form; absent if the source has none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) rates: BTreeMap<String, String>,
    /// The time zone of calendar windows; absent if neither the subject nor its group or a plan sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_zone: Option<&'static str>,
    /// The first day of a calendar week; absent if none of them sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) week_start: Option<&'static str>,
    /// The anchor of calendar windows; absent if none of them sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) anchor: Option<String>,
    /// The group of a subject.
    pub(crate) group: Option<String>,
    /// No level sets a rate, so the default applies.
    pub(crate) is_default: bool,
}

/// A new plan, group or subject.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NewEntry {
    /// Its id.
    #[schemars(length(min = 1, max = 1_024))]
    pub(crate) id: String,
    #[serde(flatten)]
    #[schemars(with = "EntrySettings")]
    pub(crate) settings: Map<String, Value>,
}

/// The settings of an entry, for the schema alone: they are stored as they are sent, and read by the reader
/// of plans. Numbers may have any width, or be text, so their types are not restricted.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct EntrySettings {
    /// The rate, such as `100/min`, or `unlimited`.
    rate: Option<Value>,
    /// The number of units, to inherit the period.
    amount: Option<Value>,
    /// The period, to inherit the amount: seconds, a duration, or `month`.
    period: Option<Value>,
    /// Rates of other names, such as units: each a rate, or an object with `amount` or `period`.
    rates: Option<Value>,
    /// The time zone of calendar windows, such as `Europe/Berlin`.
    time_zone: Option<Value>,
    /// The first day of a calendar week, such as `sunday`.
    week_start: Option<Value>,
    /// The day of the month or the local date and time from which calendar windows are counted.
    anchor: Option<Value>,
    /// The plan of a group or a subject.
    plan: Option<Value>,
    /// The group of a subject.
    group: Option<Value>,
    /// The quota of a group: a rate, or an object with a rate and `rates`.
    quota: Option<Value>,
    /// False if it is ignored. Default: true.
    enabled: Option<Value>,
}

/// The plan of a group or a subject.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanAssignment {
    /// The id of the plan, or `null` for none.
    #[schemars(schema_with = "assignable")]
    pub(crate) plan: Option<String>,
}

/// A member that must be there, and may be `null`. (A plain `Option` may be missing.)
fn assignable(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["string", "null"], "minLength": 1 })
}
