//! `tidegate reset`.

mod all;
mod audit;
mod confirm;
mod one;

use super::bucket_args::BucketArgs;
use super::print;
use clap::Args;
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_control::live::config_file;

/// The arguments of `tidegate reset`.
#[derive(Args, Debug)]
#[command(after_help = "\
A reset bucket is full, and a block by its limit ends. Instances drop a cached
refusal within a second. A bucket that does not exist is full, or its key is
written differently; nothing is reset, and the exit code is 3.

Every reset is logged to standard error at `info`: the user, the bucket, and the
number of deleted buckets or keys.

Examples:
  tidegate reset --config tidegate.yaml api/per-client/ip:192.0.2.1
  tidegate reset --config tidegate.yaml --limit per-client --key 192.0.2.1
  tidegate reset --config tidegate.yaml --limit per-client --all --dry-run
  tidegate reset --config tidegate.yaml --limit per-client --all --yes")]
pub struct ResetArgs {
    /// Bucket to reset.
    #[command(flatten)]
    pub bucket: BucketArgs,
    /// Every bucket of the limit
    #[arg(long, requires = "limit", conflicts_with_all = ["key", "band"])]
    pub all: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Show what would be reset, without resetting it
    #[arg(long)]
    pub dry_run: bool,
}

/// Resets a bucket, or every bucket of a limit.
pub fn run(args: &ResetArgs) -> Result<(), Failure> {
    let environment = FlagEnvironment::new();
    let config = config_file::load(&args.bucket.config, &environment)?;
    let message = if args.all {
        all::run(args, &config, &environment)?
    } else {
        one::run(args, config, &environment)?
    };
    print::line(&message)
}
