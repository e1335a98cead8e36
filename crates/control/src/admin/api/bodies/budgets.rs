//! Budgets. The report is that of `tidegate budget`.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A subject, by its identities.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BudgetSelector {
    /// Only the limits of this policy. Default: those of all policies.
    pub(crate) policy: Option<String>,
    /// The identities of the subject, by the parts of keys.
    #[schemars(extend(
        "minProperties" = 1,
        "maxProperties" = 16,
        "examples" = [{ "user": "ann", "attr:tenant": "acme" }]
    ))]
    pub(crate) key: BTreeMap<String, String>,
}
