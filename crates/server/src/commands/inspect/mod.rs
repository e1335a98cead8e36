//! `tidegate inspect`.

mod show;

use super::bucket_args::BucketArgs;
use super::print;
use clap::Args;
use tidegate_control::buckets::{NamedBucket, redis_store, report};
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_control::live::config_file;

/// The arguments of `tidegate inspect`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads without changing anything. A bucket that does not exist is full, or its
key is written differently; the exit code is then 3.

Examples:
  tidegate inspect --config tidegate.yaml api/per-client/ip:192.0.2.1
  tidegate inspect --config tidegate.yaml 'tg:{ip:192.0.2.1}api/per-client'
  tidegate inspect --config tidegate.yaml --limit per-client --key 192.0.2.1
  tidegate inspect --config tidegate.yaml --limit per-key --key api-key=… --json
  tidegate inspect --config tidegate.yaml --limit per-user \\
    --key 'header:authorization=Bearer eyJ…'")]
pub struct InspectArgs {
    /// Bucket to show.
    #[command(flatten)]
    pub bucket: BucketArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Inspects a bucket.
///
/// # Errors
///
/// [`Failure::NotFound`] if the store has no record of the bucket, which is printed all the same;
/// [`Failure::Input`] if the bucket cannot be named; [`Failure::Runtime`] if Redis did not answer.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let mut config = config_file::load(&args.bucket.config, &FlagEnvironment::new())?;
    redis_store::redis(&config)?;
    // Before the limit is moved out of it.
    let settings = redis_store::settings(&config)?;
    let mut named = NamedBucket::find(&mut config, &args.bucket.query())?;
    let sight = redis_store::wait_for(async {
        let store = redis_store::connect(settings, "tidegate-inspect").await?;
        let sight = async {
            named.choose(&store).await?;
            report::look(&store, &named).await
        };
        let sight = sight.await;
        store.connection().close().await;
        sight
    })?;
    let text = if args.json {
        serde_json::to_string_pretty(&sight).map_err(Failure::runtime)?
    } else {
        show::text(&sight)
    };
    print::line(text.trim_end())?;
    if sight.found {
        Ok(())
    } else {
        Err(named.not_found())
    }
}
