//! `tidegate validate`.

use super::print;
use crate::commands::import::EnvoyArgs;
use crate::styles::{GOOD, WARN, paint, problem};
use clap::Args;
use std::fmt::Write;
use std::path::PathBuf;
use tidegate_config::Config;
use tidegate_config::{costs, explain, shadow};
use tidegate_control::environment::FlagEnvironment;
use tidegate_control::failure::Failure;
use tidegate_control::sources::once;
use tidegate_policy::text::counted;

/// The arguments of `tidegate validate`.
#[derive(Args, Debug)]
pub struct ValidateArgs {
    /// Configuration file
    #[arg(value_name = "FILE", required_unless_present = "envoy")]
    pub file: Option<PathBuf>,
    /// Files of envoyproxy/ratelimit.
    #[command(flatten)]
    pub envoy: EnvoyArgs,
    /// Explain the configuration in plain words
    #[arg(long)]
    pub explain: bool,
}

/// Validates a configuration: prints its warnings and the cost of a request in a shared store, or fails
/// with all errors.
///
/// Queries the sources that the file lists, because their policies are part of the configuration. Opens no store
/// and no listener.
///
/// # Errors
///
/// [`Failure::Input`] with all errors, each with its file and line.
pub fn run(args: &ValidateArgs) -> Result<(), Failure> {
    let xds = args.envoy.source_once()?;
    let source = args.envoy.input(args.file.as_deref(), xds.as_ref());
    let loaded = source.load(&FlagEnvironment::new());
    let (config, notes) = loaded.map_err(Failure::from)?;
    let plans = once::check(&config)?;
    let mut text = verdict(&source.name(), &config, plans.warnings.len());
    // An explanation mentions it already.
    if let (false, Some(shadow)) = (args.explain, shadow(&config)) {
        let _ = write!(text, "\n\n{shadow}");
    }
    for plan in &plans.summaries {
        let _ = write!(text, "\n\n{plan}");
    }
    let warnings = config.warnings().iter().map(ToString::to_string);
    let odd = plans.warnings.iter().map(ToString::to_string);
    let odd = odd.chain(notes.iter().map(ToString::to_string));
    for warning in odd.chain(warnings) {
        let _ = write!(text, "\n\n{}", problem(warning.trim_end(), WARN));
    }
    if args.explain {
        let _ = write!(text, "\n\n{}", explain(&config).trim_end());
    } else {
        for cost in costs(&config) {
            let _ = write!(text, "\n\n{cost}");
        }
    }
    print::styled_line(&text)
}

fn verdict(file: &str, config: &Config, of_plans: usize) -> String {
    let limits: usize = config.written().map(|policy| policy.limits.len()).sum();
    let policies = counted(config.written().count(), "policy", "policies");
    let limits = counted(limits, "limit", "limits");
    let warnings = match config.warnings().len().saturating_add(of_plans) {
        0 => String::new(),
        count => {
            let count = counted(count, "warning", "warnings");
            format!(", {}", paint(WARN, &count))
        }
    };
    let valid = paint(GOOD, "valid");
    format!("{file} is {valid}: {policies}, {limits}{warnings}")
}
