//! `tidegate import envoy`, and the flags by which other commands read the same files.

use super::show;
use crate::config_file;
use crate::config_source::ConfigInput;
use crate::failure::Failure;
use crate::peer::{self, Peer};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use tidegate_policy::ChargeTime;
use tidegate_policy::import::{EnvoyOptions, envoy};

/// The arguments of `tidegate import envoy`.
#[derive(Args, Debug)]
pub struct ImportEnvoyArgs {
    /// The folder with a YAML file for each domain, or one such file
    #[arg(value_name = "DIR")]
    pub path: PathBuf,
    /// How limits that one call meets are decided
    #[arg(long, value_name = "HOW", value_enum, default_value_t = ImportedEvaluate::All)]
    pub evaluate: ImportedEvaluate,
    /// When a call that does not fit is charged
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Charging::EvenIfRefused)]
    pub charge: Charging,
    /// Several files may tell of the same domain, as with `MERGE_DOMAIN_CONFIG`
    #[arg(long)]
    pub merge_domains: bool,
}

/// Files of envoyproxy/ratelimit, for commands that take a configuration.
#[derive(Args, Clone, Debug, Default)]
pub struct EnvoyArgs {
    /// The configuration of envoyproxy/ratelimit: a folder with a YAML file for each domain, or one
    /// such file; with --config, its policies come after the others. Without a value: the folder that
    /// `RUNTIME_ROOT`, `RUNTIME_SUBDIRECTORY` and `RUNTIME_APPDIRECTORY` name. `serve` then also honours
    /// the other environment variables of envoyproxy/ratelimit
    #[arg(
        long,
        env = "TIDEGATE_ENVOY_CONFIG",
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = peer::FOLDER,
        value_parser = OsStringValueParser::new().map(peer::folder)
    )]
    pub envoy_config: Option<PathBuf>,
    /// How limits of --envoy-config that one call meets are decided; `all` unless told
    #[arg(long, value_name = "HOW", value_enum, requires = "envoy_config")]
    pub evaluate: Option<ImportedEvaluate>,
    /// When a call that does not fit is charged by limits of --envoy-config. Default:
    /// even-if-refused
    #[arg(long, value_name = "WHEN", value_enum, requires = "envoy_config")]
    pub charge: Option<Charging>,
    /// Several files of --envoy-config may tell of the same domain
    #[arg(long, requires = "envoy_config")]
    pub merge_domains: bool,
}

/// The evaluation of several limits that match one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportedEvaluate {
    /// Together: a call that one of them refuses takes nothing from the others
    All,
    /// Each for itself, as envoyproxy/ratelimit does
    Each,
}

impl EnvoyArgs {
    /// Returns the input of a configuration, which may also have a `file`.
    pub fn source<'a>(&'a self, file: Option<&'a Path>) -> ConfigInput<'a> {
        let options = self.options(&Peer::default());
        ConfigInput {
            file,
            envoy: self.envoy_config.as_deref().map(|path| (path, options)),
        }
    }

    /// Returns the options of the translation: from these flags, else from `peer`.
    pub(crate) fn options(&self, peer: &Peer) -> EnvoyOptions {
        let charge = if peer.charge_if_fits {
            Charging::IfFits
        } else {
            Charging::EvenIfRefused
        };
        let how = (
            self.evaluate.unwrap_or(ImportedEvaluate::All),
            self.charge.unwrap_or(charge),
        );
        EnvoyOptions {
            quota: peer.quota,
            ..options(how, self.merge_domains || peer.merge_domains)
        }
    }
}

/// When a call that does not fit is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Charging {
    /// If it states its hits: it is refused and charged, for they may have been spent already
    EvenIfRefused,
    /// Never: it is refused, and a cost that is sent after the response is lost
    IfFits,
}

impl From<Charging> for ChargeTime {
    fn from(charging: Charging) -> Self {
        match charging {
            Charging::EvenIfRefused => Self::EvenIfRefused,
            Charging::IfFits => Self::IfFits,
        }
    }
}

fn options((evaluate, charge): (ImportedEvaluate, Charging), merge_domains: bool) -> EnvoyOptions {
    EnvoyOptions {
        merge_domains,
        each: evaluate == ImportedEvaluate::Each,
        charge: charge.into(),
        quota: false,
    }
}

/// Prints the translation.
pub(super) fn run(args: &ImportEnvoyArgs) -> Result<(), Failure> {
    let folder = config_file::read_all(&args.path)?;
    let options = options((args.evaluate, args.charge), args.merge_domains);
    let name = args.path.display().to_string();
    let imported = envoy(&name, &folder.files, options).map_err(Failure::input)?;
    show(&imported, &folder.passed_over)
}
