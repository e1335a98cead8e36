//! `tidegate import traefik-plugin`.

use super::{read, show};
use clap::Args;
use std::path::PathBuf;
use tidegate_control::failure::Failure;
use tidegate_import::traefik_plugin;

/// The arguments of `tidegate import traefik-plugin`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads the settings of one plugin, with `keeperURL` or `ratelimitData`. For
Traefik's own RateLimit middleware, use `tidegate import traefik-ratelimit`.")]
pub struct ImportTraefikPluginArgs {
    /// The file that holds the plugin's `spec`, or a document of limits
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Prints the translation.
pub(super) fn run(args: &ImportTraefikPluginArgs) -> Result<(), Failure> {
    let imported = traefik_plugin(&read(&args.file)?).map_err(Failure::input)?;
    show(&imported, &[])
}
