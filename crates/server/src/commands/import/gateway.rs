//! `tidegate import gateway`.

use super::{read, show};
use clap::Args;
use std::path::PathBuf;
use tidegate_control::failure::Failure;
use tidegate_import::gateway;

/// The arguments of `tidegate import gateway`.
#[derive(Args, Debug)]
pub struct ImportGatewayArgs {
    /// `application.yml`, and lists of policies, routes and limits of consumers as the admin
    /// service answers them, in any order
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// Prints the translation.
pub(super) fn run(args: &ImportGatewayArgs) -> Result<(), Failure> {
    let files: Result<Vec<_>, Failure> = args.files.iter().map(|file| read(file)).collect();
    let imported = gateway(&files?).map_err(Failure::input)?;
    show(&imported, &[])
}
