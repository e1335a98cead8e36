//! `tidegate import limitador`.

use super::show;
use crate::config_file;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use tidegate_policy::import::{SourceFile, limitador};

/// What to translate.
#[derive(Args, Debug)]
pub struct ImportLimitadorArgs {
    /// The file of limits
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Prints the translation.
pub(super) fn run(args: &ImportLimitadorArgs) -> Result<(), Failure> {
    let file = SourceFile {
        name: args.file.display().to_string(),
        text: config_file::read(&args.file)?,
    };
    let imported = limitador(&file).map_err(Failure::input)?;
    show(&imported, &[])
}
