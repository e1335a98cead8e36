//! Log messages about configuration changes.

use super::composer::ReloadError;
use super::source::{SourceError, SourceNote};
use crate::environment::FlagEnvironment;
use tidegate_policy::config::ConfigProblem;
use tidegate_policy::{Config, ConfigErrors};
use tracing::{error, info, warn};

/// The maximum number of bytes of a problem in a status report.
const TOLD_MAX: usize = 512;

/// Variables that took effect, and warnings, of a composition.
#[derive(Debug, Default)]
pub(super) struct Oddities {
    pub(super) variables: Vec<String>,
    warnings: Vec<String>,
}

impl Oddities {
    pub(super) fn of(config: &Config, environment: &FlagEnvironment) -> Self {
        Self {
            variables: environment.taken(),
            warnings: config.warnings().iter().map(told).collect(),
        }
    }

    /// Logs everything that `before` does not contain: a source may change every minute, while the
    /// warnings about the file stay the same.
    pub(super) fn tell_since(&self, before: &Self) {
        if !self.variables.is_empty() && self.variables != before.variables {
            info!(
                variables = self.variables.join(", "),
                "environment variables took effect"
            );
        }
        let is_told = |warning: &&String| before.warnings.contains(warning);
        for warning in self.warnings.iter().filter(|it| !is_told(it)) {
            warn!("{warning}");
        }
    }

    /// Clears the warnings, so that a requested reload logs them again.
    pub(super) fn forget_warnings(&mut self) {
        self.warnings.clear();
    }
}

fn told(warning: &ConfigProblem) -> String {
    warning.to_string().trim_end().to_owned()
}

/// Logs the notes about a translation.
pub(super) fn notes(notes: &[SourceNote]) {
    for SourceNote { text, is_warning } in notes {
        if *is_warning {
            warn!("{text}");
        } else {
            info!("{text}");
        }
    }
}

/// Logs that a new version of a source is served.
pub(super) fn applied(source: &str, version: &str) {
    info!(source, version, "policy of this source is served");
}

/// Logs that a version of `source` cannot be served, with all errors.
pub(super) fn refused(source: &str, configuration: &str, why: &ReloadError) {
    match why {
        ReloadError::Invalid(errors) => complain(errors),
        ReloadError::Unread(why) | ReloadError::Unservable(why) => error!("{why}"),
        ReloadError::BuiltIn => warn!("{why}"),
    }
    error!(
        source,
        configuration, "the configuration was refused: what was served before is served on"
    );
}

fn complain(errors: &ConfigErrors) {
    for problem in errors.problems() {
        error!("{}", problem.to_string().trim_end());
    }
    let untold = errors.count().saturating_sub(errors.problems().len());
    if untold > 0 {
        error!("and {untold} more errors");
    }
}

/// Logs that a source cannot be loaded.
pub(super) fn failed(source: &str, trouble: &SourceError) {
    warn!(
        source,
        error = %trouble,
        "this source of policy cannot be asked: what it said before is served on"
    );
}

/// Logs that a source answers again.
pub(super) fn back(source: &str) {
    info!(source, "this source of policy answers again");
}

/// Returns a rejection in one line, for a status report.
pub(super) fn in_short(why: &ReloadError) -> String {
    let told = match why {
        ReloadError::Invalid(errors) => {
            let first = errors.problems().first().map(|problem| {
                let line = problem.line().map(|line| format!(":{line}"));
                let line = line.unwrap_or_default();
                format!("{}{line}: {}", problem.file(), problem.message())
            });
            let first = first.unwrap_or_else(|| errors.to_string());
            match errors.count() {
                0 | 1 => first,
                more => format!("{first} (and {} more)", more.saturating_sub(1)),
            }
        }
        why => why.to_string(),
    };
    told.chars().take(TOLD_MAX).collect()
}
