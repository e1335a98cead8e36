//! `tidegate inspect`.

pub(crate) mod look;
mod show;

use super::bucket::{BucketArgs, NamedBucket};
use super::{print, redis_store};
use crate::config_file;
use crate::environment::FlagEnvironment;
use crate::failure::Failure;
use clap::Args;

/// The arguments of `tidegate inspect`.
#[derive(Args, Debug)]
#[command(after_help = "\
Inspecting changes nothing. If the store keeps nothing of the bucket, the bucket is full, or another
one is meant: the exit code is 3.

Examples:
  tidegate inspect --config tidegate.yaml api/per-client/ip:192.0.2.1
  tidegate inspect --config tidegate.yaml 'tg:{ip:192.0.2.1}api/per-client'
  tidegate inspect --config tidegate.yaml --limit per-client --key 192.0.2.1
  tidegate inspect --config tidegate.yaml --policy api --limit per-key --key api-key=SECRET --json
  tidegate inspect --config tidegate.yaml --limit per-user --key 'header:authorization=Bearer eyJ…'")]
pub struct InspectArgs {
    /// Which bucket.
    #[command(flatten)]
    pub bucket: BucketArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Inspects a bucket.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let mut config = config_file::load(&args.bucket.config, &FlagEnvironment::new())?;
    redis_store::redis(&config)?;
    // Before the limit is moved out of it.
    let settings = redis_store::settings(&config)?;
    let mut named = NamedBucket::find(&mut config, &args.bucket)?;
    let sight = redis_store::wait_for(async {
        let store = redis_store::connect(settings, "tidegate-inspect").await?;
        let sight = async {
            named.choose(&store).await?;
            look::look(&store, &named).await
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
