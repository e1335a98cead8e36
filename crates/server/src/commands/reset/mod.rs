//! `tidegate reset`.

pub(crate) mod all;
mod audit;
mod confirm;
pub(crate) mod one;

use super::bucket::BucketArgs;
use super::print;
use crate::config_file;
use crate::environment::FlagEnvironment;
use crate::failure::Failure;
use clap::Args;

/// The arguments of `tidegate reset`.
#[derive(Args, Debug)]
#[command(after_help = "\
A bucket that is reset is as good as new, and whoever its limit has blocked is blocked no more.
Instances that remember a refusal of it forget that within a second. If the store keeps nothing of
the bucket, nothing is reset: the bucket is full, or another one is meant. The exit code is then 3.

Every reset is logged to standard error, at `info`: who asked, for what, and how many buckets or
keys were forgotten.

Examples:
  tidegate reset --config tidegate.yaml api/per-client/ip:192.0.2.1
  tidegate reset --config tidegate.yaml --limit per-client --key 192.0.2.1
  tidegate reset --config tidegate.yaml --limit per-client --all --dry-run
  tidegate reset --config tidegate.yaml --limit per-client --all --yes")]
pub struct ResetArgs {
    /// Which bucket.
    #[command(flatten)]
    pub bucket: BucketArgs,
    /// Every bucket of the limit
    #[arg(long, requires = "limit", conflicts_with_all = ["key", "band"])]
    pub all: bool,
    /// Do not ask before forgetting every bucket of a limit
    #[arg(long)]
    pub yes: bool,
    /// Only tell what would be forgotten
    #[arg(long)]
    pub dry_run: bool,
}

/// Resets a bucket, or every bucket of a limit.
pub fn run(args: &ResetArgs) -> Result<(), Failure> {
    let environment = FlagEnvironment::new();
    let config = config_file::load(&args.bucket.config, &environment)?;
    let said = if args.all {
        all::run(args, &config, &environment)?
    } else {
        one::run(args, config, &environment)?
    };
    print::line(&said)
}
