//! `tidegate import limitador`.

use super::{Charging, read, show};
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use tidegate_policy::import::limitador;

/// The arguments of `tidegate import limitador`.
#[derive(Args, Debug)]
pub struct ImportLimitadorArgs {
    /// The file of limits
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// When a call that does not fit is charged
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Charging::EvenIfRefused)]
    pub charge: Charging,
}

/// Prints the translation.
pub(super) fn run(args: &ImportLimitadorArgs) -> Result<(), Failure> {
    let imported = limitador(&read(&args.file)?, args.charge.into()).map_err(Failure::input)?;
    show(&imported, &[])
}
