//! Policies, guards, routes and limits.

use super::DocumentUser;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_config::compose::DocumentKind;

/// The part that policies, guards, routes and limits have in common.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DocumentItem {
    /// Its name.
    pub(crate) name: String,
    /// The source that has it.
    pub(crate) source: Option<String>,
    /// It can be changed by this API.
    pub(crate) writable: bool,
    /// Its version, which is also the `ETag`.
    pub(crate) version: String,
    /// Its users. A document that is in use cannot be removed.
    pub(crate) used_by: Vec<DocumentUser>,
    /// Its content. Secrets are shown as `***`.
    #[schemars(with = "Map<String, Value>")]
    pub(crate) document: Value,
}

/// A policy.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PolicyItem {
    #[serde(flatten)]
    common: DocumentItem,
}

/// A guard.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GuardItem {
    /// The mode that it is in. A variable is shown as written.
    mode: String,
    #[serde(flatten)]
    common: DocumentItem,
}

/// A route.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RouteItem {
    /// The mode that it is in. A variable is shown as written.
    mode: String,
    #[serde(flatten)]
    common: DocumentItem,
}

/// A limit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LimitItem {
    /// The policy that it belongs to.
    pub(crate) policy: String,
    /// The mode that it is in. A variable is shown as written.
    pub(crate) mode: String,
    #[serde(flatten)]
    pub(crate) common: DocumentItem,
}

/// The view of one kind of document.
pub(crate) trait DocumentView: Serialize + JsonSchema + Send {
    /// The kind.
    const KIND: DocumentKind;

    /// Returns the view of a document that is in this mode.
    fn new(common: DocumentItem, mode: String) -> Self;
}

impl DocumentView for PolicyItem {
    const KIND: DocumentKind = DocumentKind::Policy;

    /// Its limits have modes; the policy has none.
    fn new(common: DocumentItem, _: String) -> Self {
        Self { common }
    }
}

impl DocumentView for GuardItem {
    const KIND: DocumentKind = DocumentKind::Guard;

    fn new(common: DocumentItem, mode: String) -> Self {
        Self { mode, common }
    }
}

impl DocumentView for RouteItem {
    const KIND: DocumentKind = DocumentKind::Route;

    fn new(common: DocumentItem, mode: String) -> Self {
        Self { mode, common }
    }
}

/// A change of mode.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "{M}Change")]
pub(crate) struct ModeChange<M> {
    /// The mode to set.
    pub(crate) mode: M,
}

/// The modes of limits, guards and routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Mode")]
pub(crate) enum ModeWord {
    Enforce,
    Shadow,
    Off,
}

/// The modes of plans, groups and subjects. They set rates and decide nothing, so none of them is in shadow
/// mode: the limit that uses them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EntryMode {
    /// The entry applies.
    Enforce,
    /// The entry counts as absent.
    Off,
}

/// The policies of a route.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyAssignment {
    /// The policy, several, `none`, or `null` for the first of all.
    #[schemars(schema_with = "assignable")]
    pub(crate) policy: Option<RoutePolicies>,
}

/// One policy, or several.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RoutePolicies {
    One(#[schemars(length(min = 1))] String),
    Several(#[schemars(length(min = 1), inner(length(min = 1)))] Vec<String>),
}

/// A member that must be there, and may be `null`. (A plain `Option` may be missing.)
fn assignable(schemas: &mut schemars::SchemaGenerator) -> schemars::Schema {
    Option::<RoutePolicies>::json_schema(schemas)
}
