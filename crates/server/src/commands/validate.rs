//! `tidegate validate`.

use super::{plans, print};
use crate::commands::import::EnvoyArgs;
use crate::environment::FlagEnvironment;
use crate::failure::Failure;
use clap::Args;
use std::fmt::Write;
use std::path::PathBuf;
use tidegate_policy::Config;
use tidegate_policy::config::{costs, explain, shadow};

/// The arguments of `tidegate validate`.
#[derive(Args, Debug)]
pub struct ValidateArgs {
    /// The configuration
    #[arg(value_name = "FILE", required_unless_present = "envoy_config")]
    pub file: Option<PathBuf>,
    /// Files of envoyproxy/ratelimit.
    #[command(flatten)]
    pub envoy: EnvoyArgs,
    /// Tell in plain words what it means
    #[arg(long)]
    pub explain: bool,
}

/// Validates a configuration: prints its warnings and the cost of a request in a shared store, or fails
/// with all errors.
pub fn run(args: &ValidateArgs) -> Result<(), Failure> {
    let source = args.envoy.source(args.file.as_deref());
    let loaded = source.load(&FlagEnvironment::new());
    let (config, notes) = loaded.map_err(Failure::from)?;
    let plans = plans::check(&config)?;
    let mut text = verdict(&source.name(), &config, plans.warnings.len());
    // An explanation mentions it already.
    if let (false, Some(shadow)) = (args.explain, shadow(&config)) {
        let _ = write!(text, "\n\n{shadow}");
    }
    for plan in plans.summaries.iter().chain(&plans.warnings) {
        let _ = write!(text, "\n\n{plan}");
    }
    for note in notes {
        let _ = write!(text, "\n\n{note}");
    }
    for warning in config.warnings() {
        let _ = write!(text, "\n\n{}", warning.to_string().trim_end());
    }
    if args.explain {
        let _ = write!(text, "\n\n{}", explain(&config).trim_end());
    } else {
        for cost in costs(&config) {
            let _ = write!(text, "\n\n{cost}");
        }
    }
    print::line(&text)
}

fn verdict(file: &str, config: &Config, of_plans: usize) -> String {
    let limits = config.written().map(|policy| policy.limits.len()).sum();
    let policies = counted(config.written().count(), "policy", "policies");
    let limits = counted(limits, "limit", "limits");
    let warnings = match config.warnings().len().saturating_add(of_plans) {
        0 => String::new(),
        count => format!(", {}", counted(count, "warning", "warnings")),
    };
    format!("{file} is valid: {policies}, {limits}{warnings}")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
