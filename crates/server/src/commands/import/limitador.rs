//! `tidegate import limitador`.

use super::{read, show};
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use tidegate_policy::import::limitador;

/// What to translate.
#[derive(Args, Debug)]
pub struct ImportLimitadorArgs {
    /// The file of limits
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Prints the translation.
pub(super) fn run(args: &ImportLimitadorArgs) -> Result<(), Failure> {
    let imported = limitador(&read(&args.file)?).map_err(Failure::input)?;
    show(&imported, &[])
}
