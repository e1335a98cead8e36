//! `tidegate import limitador`.

use super::{ChargeCondition, read, show};
use clap::Args;
use std::path::PathBuf;
use tidegate_control::failure::Failure;
use tidegate_import::limitador;

/// The arguments of `tidegate import limitador`.
#[derive(Args, Debug)]
pub struct ImportLimitadorArgs {
    /// File with limits
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Charging of calls that do not fit
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ChargeCondition::EvenIfRefused)]
    pub charge: ChargeCondition,
}

/// Prints the translation.
pub(super) fn run(args: &ImportLimitadorArgs) -> Result<(), Failure> {
    let imported = limitador(&read(&args.file)?, args.charge.into()).map_err(Failure::input)?;
    show(&imported, &[])
}
