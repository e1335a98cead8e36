//! `tidegate import collector`.

use super::{read, show};
use clap::Args;
use std::path::PathBuf;
use tidegate_control::failure::Failure;
use tidegate_import::collector;

/// The arguments of `tidegate import collector`.
#[derive(Args, Debug)]
pub struct ImportCollectorArgs {
    /// File with variables, one `NAME=value` per line
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Prints the translation.
pub(super) fn run(args: &ImportCollectorArgs) -> Result<(), Failure> {
    let imported = collector(&read(&args.file)?).map_err(Failure::input)?;
    show(&imported, &[])
}
