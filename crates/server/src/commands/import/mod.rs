//! `tidegate import`: translates the configuration of another limiter.

mod collector;
mod envoy;
mod fluxgate;
mod gateway;
mod limitador;
mod traefik_plugin;

pub use collector::ImportCollectorArgs;
pub use envoy::{Charging, EnvoyArgs, ImportEnvoyArgs, ImportedEvaluate};
pub use fluxgate::ImportFluxgateArgs;
pub use gateway::ImportGatewayArgs;
pub use limitador::ImportLimitadorArgs;
pub use traefik_plugin::ImportTraefikPluginArgs;

use super::print;
use crate::config_file;
use crate::failure::Failure;
use crate::sources::WITHOUT_MONGODB;
use clap::{Args, Command, Subcommand};
use std::io::{self, Write};
use std::path::Path;
use tidegate_policy::import::{Imported, SourceFile};

/// The arguments of `tidegate import`.
#[derive(Args, Debug)]
#[command(after_help = "\
The configuration goes to standard output, and what there is to know about it to standard error.

Examples:
  tidegate import envoy /data/ratelimit/config > tidegate.yaml
  tidegate import limitador limits.yaml > tidegate.yaml
  tidegate import traefik-plugin middleware.yaml > tidegate.yaml
  tidegate import fluxgate application.yml rules.json > tidegate.yaml
  tidegate import gateway application.yml rate-limits.json routes.json > tidegate.yaml
  tidegate import collector .env > tidegate.yaml
  tidegate serve --config tidegate.yaml")]
pub struct ImportArgs {
    /// Which limiter's
    #[command(subcommand)]
    pub limiter: ImportedSystem,
}

/// A limiter whose configuration can be translated.
#[derive(Debug, Subcommand)]
pub enum ImportedSystem {
    /// The files of envoyproxy/ratelimit
    Envoy(ImportEnvoyArgs),
    /// The file of limitador
    Limitador(ImportLimitadorArgs),
    /// The settings of a Traefik plugin with a keeper, or the limits that the keeper holds
    TraefikPlugin(ImportTraefikPluginArgs),
    /// The rules and settings of `FluxGate`
    Fluxgate(ImportFluxgateArgs),
    /// The settings, policies and routes of an API gateway
    Gateway(ImportGatewayArgs),
    /// The variables of an event collector
    Collector(ImportCollectorArgs),
}

/// Returns the description of the command, with the names of all limiters.
pub fn about() -> String {
    let limiters = ImportedSystem::augment_subcommands(Command::new("import"));
    let names: Vec<&str> = limiters.get_subcommands().map(Command::get_name).collect();
    format!(
        "Translate the configuration of another limiter: {}",
        names.join(", ")
    )
}

/// Prints the translation, or fails with everything that cannot be translated.
pub fn run(args: &ImportArgs) -> Result<(), Failure> {
    match &args.limiter {
        ImportedSystem::Envoy(args) => envoy::run(args),
        ImportedSystem::Limitador(args) => limitador::run(args),
        ImportedSystem::TraefikPlugin(args) => traefik_plugin::run(args),
        ImportedSystem::Fluxgate(args) => fluxgate::run(args),
        ImportedSystem::Gateway(args) => gateway::run(args),
        ImportedSystem::Collector(args) => collector::run(args),
    }
}

/// Reads a file.
fn read(path: &Path) -> Result<SourceFile, Failure> {
    Ok(SourceFile {
        name: path.display().to_string(),
        text: config_file::read(path)?,
    })
}

/// Prints a translation, and the notes about it.
fn show(imported: &Imported, passed_over: &[String]) -> Result<(), Failure> {
    let mut err = io::stderr().lock();
    for note in passed_over {
        // A failure to write notes does not fail the translation.
        writeln!(err, "note: {note}").ok();
    }
    for note in imported.notes() {
        writeln!(err, "{note}").ok();
    }
    if imported.uses_mongodb() && cfg!(not(feature = "mongodb")) {
        writeln!(
            err,
            "note: this configuration reads from MongoDB: {WITHOUT_MONGODB}"
        )
        .ok();
    }
    print::line(imported.to_yaml().trim_end())
}
