//! Members of the lists of guards, and bans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A member to add to a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMember {
    /// The member: an address, a network, or a name, as the guard's subject is.
    #[schemars(length(min = 1, max = 1_024))]
    pub(crate) member: String,
    /// The time after which it expires, if members of the list can. Default: never.
    #[serde(rename = "for")]
    #[schemars(example = "1h")]
    pub(crate) length: Option<String>,
}

/// A member of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MemberItem {
    /// The member; `***` if it is a secret.
    pub(crate) member: String,
    /// It was not on the list before it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<bool>,
    /// The time until it expires; `null` if it does not.
    pub(crate) ends_in_ms: Option<u64>,
}

/// A banned client.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct BanItem {
    /// The guard that bans it.
    pub(crate) guard: String,
    /// The client; `***` if it is a secret.
    pub(crate) member: String,
    /// The time until the ban ends; `null` if it does not.
    pub(crate) ends_in_ms: Option<u64>,
}
