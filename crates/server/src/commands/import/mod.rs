//! `tidegate import`: the configuration of another limiter, told in our own language.

mod envoy;
mod limitador;

pub use envoy::{EnvoyArgs, Evaluate, ImportEnvoyArgs};
pub use limitador::ImportLimitadorArgs;

use super::print;
use crate::failure::Failure;
use clap::{Args, Subcommand};
use std::io::{self, Write};
use tidegate_policy::import::Imported;

/// Which limiter's.
#[derive(Args, Debug)]
#[command(after_help = "\
The configuration goes to standard output, and what there is to know about it to standard error.

Examples:
  tidegate import envoy /data/ratelimit/config > tidegate.yaml
  tidegate import limitador limits.yaml > tidegate.yaml
  tidegate serve --config tidegate.yaml")]
pub struct ImportArgs {
    /// Which limiter's
    #[command(subcommand)]
    pub limiter: Limiter,
}

/// A limiter whose configuration is understood.
#[derive(Debug, Subcommand)]
pub enum Limiter {
    /// The files of envoyproxy/ratelimit
    Envoy(ImportEnvoyArgs),
    /// The file of limitador
    Limitador(ImportLimitadorArgs),
}

/// Prints the translation, or fails with everything that cannot be translated.
pub fn run(args: &ImportArgs) -> Result<(), Failure> {
    match &args.limiter {
        Limiter::Envoy(args) => envoy::run(args),
        Limiter::Limitador(args) => limitador::run(args),
    }
}

/// Prints a translation, and what there is to know about it.
fn show(imported: &Imported, passed_over: &[String]) -> Result<(), Failure> {
    let mut err = io::stderr().lock();
    for note in passed_over {
        // If nobody reads it, that is no reason not to translate.
        writeln!(err, "note: {note}").ok();
    }
    for note in imported.notes() {
        writeln!(err, "{note}").ok();
    }
    print::line(imported.to_yaml().trim_end())
}
