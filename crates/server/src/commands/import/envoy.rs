//! `tidegate import envoy`, and the flags by which other commands read the same files.

use super::show;
use crate::peer::{self, EnvoySource, Peer};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgGroup, Args, ValueEnum};
use std::path::{Path, PathBuf};
use tidegate_config::compose::NamedText;
use tidegate_control::failure::Failure;
use tidegate_control::live::config_file;
use tidegate_control::live::config_source::ConfigInput;
use tidegate_import::{EnvoyOptions, envoy};
use tidegate_policy::ChargeTime;

/// The arguments of `tidegate import envoy`.
#[derive(Args, Debug)]
pub struct ImportEnvoyArgs {
    /// Folder with one YAML file per domain, or one such file
    #[arg(value_name = "DIR")]
    pub path: PathBuf,
    /// Evaluation of several limits that match one call
    #[arg(long, value_name = "HOW", value_enum, default_value_t = ImportedEvaluate::All)]
    pub evaluate: ImportedEvaluate,
    /// Charging of calls that do not fit
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ChargeCondition::EvenIfRefused)]
    pub charge: ChargeCondition,
    /// Merge files with the same domain, as with `MERGE_DOMAIN_CONFIG`
    #[arg(long)]
    pub merge_domains: bool,
}

/// Files of envoyproxy/ratelimit, for commands that take a configuration.
#[derive(Args, Clone, Debug, Default)]
#[command(group(ArgGroup::new("envoy").args(["envoy_config", "envoy_xds"]).multiple(true)))]
pub struct EnvoyArgs {
    /// Configuration of envoyproxy/ratelimit: a folder with one YAML file per domain, or one such file.
    /// With --config, its policies are appended. Without a value: the folder in `RUNTIME_ROOT`,
    /// `RUNTIME_SUBDIRECTORY` and `RUNTIME_APPDIRECTORY`. `serve` then also reads the other environment
    /// variables of envoyproxy/ratelimit
    #[arg(
        long,
        env = "TIDEGATE_ENVOY_CONFIG",
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = peer::FOLDER,
        value_parser = OsStringValueParser::new().map(peer::place)
    )]
    pub envoy_config: Option<EnvoySource>,
    /// xDS server that sends the configuration of envoyproxy/ratelimit, such as Envoy Gateway: HOST:PORT,
    /// or a URL with https:// for TLS. With --config, its policies are appended. Without a value: the
    /// server in `CONFIG_GRPC_XDS_SERVER_URL`. `serve` then also reads the other environment variables
    /// of envoyproxy/ratelimit
    #[arg(
        long,
        env = "TIDEGATE_ENVOY_XDS",
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = peer::xds::SERVER
    )]
    pub envoy_xds: Option<String>,
    /// Node id, by which the server of --envoy-xds finds the configuration. Default:
    /// `CONFIG_GRPC_XDS_NODE_ID`, else `default`
    #[arg(long, env = "TIDEGATE_ENVOY_XDS_NODE", value_name = "ID")]
    pub envoy_xds_node: Option<String>,
    /// Evaluation of several limits that match one call, for --envoy-config and --envoy-xds. Default: all
    #[arg(long, value_name = "HOW", value_enum, requires = "envoy")]
    pub evaluate: Option<ImportedEvaluate>,
    /// Charging of calls that do not fit, for --envoy-config and --envoy-xds. Default: even-if-refused
    #[arg(long, value_name = "WHEN", value_enum, requires = "envoy")]
    pub charge: Option<ChargeCondition>,
    /// Merge --envoy-config files, or --envoy-xds resources, with the same domain
    #[arg(long, requires = "envoy")]
    pub merge_domains: bool,
}

/// The evaluation of several limits that match one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportedEvaluate {
    /// Together: if one refuses, no limit is charged
    All,
    /// Separately, as envoyproxy/ratelimit does
    Each,
}

impl EnvoyArgs {
    /// Returns the input of a configuration, which may also have a `file`, and a `source`.
    pub fn input<'a>(
        &'a self,
        file: Option<&'a Path>,
        source: Option<&'a (String, String)>,
    ) -> ConfigInput<'a> {
        let options = self.options(&Peer::default());
        ConfigInput {
            file,
            envoy: self.files().map(|path| (path, options)),
            source: source.map(|(name, text)| NamedText { name, text }),
        }
    }

    /// Returns the folder, or the file.
    pub(crate) fn files(&self) -> Option<&Path> {
        match self.envoy_config.as_ref()? {
            EnvoySource::Files(path) => Some(path),
            EnvoySource::Xds => None,
        }
    }

    /// Returns the address of the xDS server.
    fn server(&self) -> Option<&str> {
        let of_environment = self.envoy_config == Some(EnvoySource::Xds);
        let address = self.envoy_xds.as_deref();
        address.or_else(|| of_environment.then_some(peer::xds::SERVER))
    }

    /// Reads the environment of envoyproxy/ratelimit, if its limits are served.
    pub(crate) fn peer(&self) -> Result<Peer, Failure> {
        match (self.files(), self.server()) {
            (None, None) => Ok(Peer::default()),
            (_, server) => Peer::of_process(server.is_some()),
        }
    }

    /// Returns the name and the text of the source that is the xDS server, for commands that load it once.
    pub(crate) fn source_once(&self) -> Result<Option<(String, String)>, Failure> {
        self.source(&Peer::default(), false)
    }

    /// Returns the name and the text of the source that is the xDS server. `waits` is true for a server,
    /// which waits for its first configuration.
    pub(crate) fn source(
        &self,
        peer: &Peer,
        waits: bool,
    ) -> Result<Option<(String, String)>, Failure> {
        let Some(server) = self.server() else {
            return Ok(None);
        };
        let node = self.envoy_xds_node.as_deref();
        let text = peer::xds::source((server, node), self.options(peer), waits)?;
        Ok(Some(("--envoy-xds".to_owned(), text)))
    }

    /// Returns the options of the translation: from these flags, else from `peer`.
    pub(crate) fn options(&self, peer: &Peer) -> EnvoyOptions {
        let charge = if peer.charge_if_fits {
            ChargeCondition::IfFits
        } else {
            ChargeCondition::EvenIfRefused
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
pub enum ChargeCondition {
    /// Refuse and charge calls that state their hits, because these may already be spent
    EvenIfRefused,
    /// Never charge refused calls; a cost sent after the response is lost
    IfFits,
}

impl From<ChargeCondition> for ChargeTime {
    fn from(charging: ChargeCondition) -> Self {
        match charging {
            ChargeCondition::EvenIfRefused => Self::EvenIfRefused,
            ChargeCondition::IfFits => Self::IfFits,
        }
    }
}

fn options(
    (evaluate, charge): (ImportedEvaluate, ChargeCondition),
    merge_domains: bool,
) -> EnvoyOptions {
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
