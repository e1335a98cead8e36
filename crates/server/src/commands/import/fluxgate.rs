//! `tidegate import fluxgate`.

use super::{read, show};
use clap::Args;
use std::path::PathBuf;
use tidegate_control::failure::Failure;
use tidegate_import::fluxgate;

/// The arguments of `tidegate import fluxgate`.
#[derive(Args, Debug)]
pub struct ImportFluxgateArgs {
    /// Documents of rules, as the database exports them, and `application.yml`, in any order
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// Prints the translation.
pub(super) fn run(args: &ImportFluxgateArgs) -> Result<(), Failure> {
    let files: Result<Vec<_>, Failure> = args.files.iter().map(|file| read(file)).collect();
    let imported = fluxgate(&files?).map_err(Failure::input)?;
    show(&imported, &[])
}
