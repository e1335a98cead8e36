//! The arguments that identify a bucket.

use clap::Args;
use std::path::PathBuf;
use tidegate_control::buckets::BucketQuery;

/// The arguments that identify a bucket.
#[derive(Args, Debug)]
pub struct BucketArgs {
    /// Bucket name, such as `api/per-client/ip:192.0.2.1`, or its Redis key
    #[arg(
        value_name = "KEY",
        required_unless_present = "limit",
        conflicts_with_all = ["policy", "limit", "key"]
    )]
    pub bucket: Option<String>,
    /// Configuration file
    #[arg(long, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub config: PathBuf,
    /// Policy. Default: the first one
    #[arg(long, value_name = "NAME", requires = "limit")]
    pub policy: Option<String>,
    /// Limit
    #[arg(long, value_name = "NAME")]
    pub limit: Option<String>,
    /// Bucket key: a value for each part of the limit's key, `ip=192.0.2.1`, `user=ann`,
    /// `api-key=…`, `token=…`, `header:x-tenant=acme`, or only the values, in order. Secrets can be
    /// passed in plain text or as a hash. `header:NAME=…` also sets the identities that `client` reads
    /// from that header, such as the user in `header:authorization='Bearer …'`
    #[arg(long, value_name = "PART=VALUE", requires = "limit", num_args = 1..)]
    pub key: Vec<String>,
    /// Only this band, by its label or rate; `block` for only the block
    #[arg(long, value_name = "BAND")]
    pub band: Option<String>,
}

impl BucketArgs {
    /// Returns the description of the bucket.
    pub(super) fn query(&self) -> BucketQuery {
        BucketQuery {
            bucket: self.bucket.clone(),
            policy: self.policy.clone(),
            limit: self.limit.clone(),
            key: self.key.clone(),
            band: self.band.clone(),
        }
    }
}
