//! `tidegate import collector`.

use super::{read, show};
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use tidegate_policy::import::collector;

/// The arguments of `tidegate import collector`.
#[derive(Args, Debug)]
pub struct ImportCollectorArgs {
    /// The file of variables, `NAME=value` each
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Prints the translation.
pub(super) fn run(args: &ImportCollectorArgs) -> Result<(), Failure> {
    let imported = collector(&read(&args.file)?).map_err(Failure::input)?;
    show(&imported, &[])
}
