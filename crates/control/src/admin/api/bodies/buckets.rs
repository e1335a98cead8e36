//! Inspection and reset of buckets. The report about a bucket is that of `tidegate inspect`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A bucket, by its name, or by the limit and the key that it belongs to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BucketSelector {
    /// Its name, such as `api/per-client/ip:192.0.2.1`, or its key in Redis.
    pub(crate) bucket: Option<String>,
    /// The policy of the limit. Default: the first policy that has the limit.
    pub(crate) policy: Option<String>,
    /// The limit, if the bucket is not given by its name.
    pub(crate) limit: Option<String>,
    /// A value for each part of the limit's key.
    #[schemars(extend("maxProperties" = 16, "examples" = [{ "ip": "192.0.2.1" }]))]
    pub(crate) key: Option<BTreeMap<String, String>>,
    /// One band only, by its label or as it is written.
    pub(crate) band: Option<String>,
}

/// The bucket to reset, or all buckets of a limit.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ResetRequest {
    #[serde(flatten)]
    pub(crate) selector: BucketSelector,
    /// Reset all buckets of `limit`. Default: false.
    pub(crate) all: Option<bool>,
    /// Only count them. Default: false.
    pub(crate) dry_run: Option<bool>,
}

/// The result of a reset.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResetReport {
    /// The bucket, or the pattern of all buckets of the limit.
    pub(crate) bucket: String,
    /// The store had a record of it.
    pub(crate) found: bool,
    /// The number of records that were removed, or that a dry run would remove.
    pub(crate) forgotten: u64,
    /// The number of records that were skipped, because they may belong to another limit.
    pub(crate) left: u64,
    /// False if the time ran out; another call resets the rest.
    pub(crate) complete: bool,
    /// Nothing was changed.
    pub(crate) dry_run: bool,
    /// A warning about the result.
    pub(crate) note: Option<String>,
}
