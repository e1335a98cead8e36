//! `tidegate import traefik-ratelimit`.

use super::{read, show};
use clap::Args;
use std::path::PathBuf;
use tidegate_control::failure::Failure;
use tidegate_import::traefik_ratelimit;

/// The arguments of `tidegate import traefik-ratelimit`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads `rateLimit` middlewares and the routers that use them. For the settings of
the Traefik plugin with a keeper, use `tidegate import traefik-plugin`.")]
pub struct ImportTraefikRatelimitArgs {
    /// Dynamic configuration in YAML or JSON, a Compose file with labels, or Kubernetes manifests
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Prints the translation.
pub(super) fn run(args: &ImportTraefikRatelimitArgs) -> Result<(), Failure> {
    let imported = traefik_ratelimit(&read(&args.file)?).map_err(Failure::input)?;
    show(&imported, &[])
}
