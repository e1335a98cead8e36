//! `tidegate import`: translates the configuration of another limiter.

mod collector;
mod envoy;
mod fluxgate;
mod gateway;
mod limitador;
mod nginx;
mod traefik_plugin;
mod traefik_ratelimit;

pub use collector::ImportCollectorArgs;
pub use envoy::{ChargeCondition, EnvoyArgs, ImportEnvoyArgs, ImportedEvaluate};
pub use fluxgate::ImportFluxgateArgs;
pub use gateway::ImportGatewayArgs;
pub use limitador::ImportLimitadorArgs;
pub use nginx::ImportNginxArgs;
pub use traefik_plugin::ImportTraefikPluginArgs;
pub use traefik_ratelimit::ImportTraefikRatelimitArgs;

use super::print;
use clap::{Args, Command, Subcommand};
use std::io::{self, Write};
use std::path::Path;
use tidegate_control::failure::Failure;
use tidegate_control::live::config_file;
use tidegate_control::mongo::WITHOUT_MONGODB;
use tidegate_import::{ImportedConfig, SourceFile};

/// The arguments of `tidegate import`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints the configuration to standard output, and notes and warnings to standard
error.

Examples:
  tidegate import nginx /etc/nginx/nginx.conf > tidegate.yaml
  tidegate import traefik-ratelimit dynamic.yaml > tidegate.yaml
  tidegate import envoy /data/ratelimit/config > tidegate.yaml
  tidegate import limitador limits.yaml > tidegate.yaml
  tidegate import traefik-plugin middleware.yaml > tidegate.yaml
  tidegate import fluxgate application.yml rules.json > tidegate.yaml
  tidegate import gateway application.yml limits.json > tidegate.yaml
  tidegate import collector .env > tidegate.yaml
  tidegate serve --config tidegate.yaml")]
pub struct ImportArgs {
    /// System to import from
    #[command(subcommand)]
    pub limiter: ImportedSystem,
}

/// A limiter whose configuration can be translated.
#[derive(Debug, Subcommand)]
pub enum ImportedSystem {
    /// Limits of nginx: `limit_req` of all servers and locations
    Nginx(ImportNginxArgs),
    /// `RateLimit` middlewares and routers of Traefik
    TraefikRatelimit(ImportTraefikRatelimitArgs),
    /// Files of envoyproxy/ratelimit
    Envoy(ImportEnvoyArgs),
    /// Limits file of limitador
    Limitador(ImportLimitadorArgs),
    /// Settings of a Traefik plugin with a keeper, or the limits in the keeper
    TraefikPlugin(ImportTraefikPluginArgs),
    /// Rules and settings of `FluxGate`
    Fluxgate(ImportFluxgateArgs),
    /// Settings, policies and routes of an API gateway
    Gateway(ImportGatewayArgs),
    /// Variables of an event collector
    Collector(ImportCollectorArgs),
}

/// Returns the description of the command, with the names of all limiters.
pub fn about() -> String {
    let limiters = ImportedSystem::augment_subcommands(Command::new("import"));
    let names: Vec<&str> = limiters.get_subcommands().map(Command::get_name).collect();
    format!(
        "Import the configuration of another rate limiter: {}",
        names.join(", ")
    )
}

/// Prints the translation, or fails with everything that cannot be translated.
///
/// # Errors
///
/// [`Failure::Input`] with everything that cannot be translated, each with its line. Nothing is printed then: half
/// a translation would limit too little.
pub fn run(args: &ImportArgs) -> Result<(), Failure> {
    match &args.limiter {
        ImportedSystem::Nginx(args) => nginx::run(args),
        ImportedSystem::TraefikRatelimit(args) => traefik_ratelimit::run(args),
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
fn show(imported: &ImportedConfig, passed_over: &[String]) -> Result<(), Failure> {
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
