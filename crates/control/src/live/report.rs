//! Log messages about configuration changes.

use super::composer::ReloadError;
use super::source::{SourceError, SourceNote};
use crate::environment::FlagEnvironment;
use tidegate_config::ConfigProblem;
use tidegate_config::{Config, ConfigErrors};
use tidegate_policy::text::counted;
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
            warnings: config.warnings().iter().map(text_of).collect(),
        }
    }

    /// Logs everything that `before` does not contain: a source may change every minute, while the
    /// warnings about the file stay the same.
    pub(super) fn log_changes_since(&self, before: &Self) {
        if !self.variables.is_empty() && self.variables != before.variables {
            info!(
                event = "environment_applied",
                variables = self.variables.join(", "),
                "environment variables applied"
            );
        }
        let is_told = |warning: &&String| before.warnings.contains(warning);
        for warning in self.warnings.iter().filter(|it| !is_told(it)) {
            warn!(event = "config_warning", "{warning}");
        }
    }

    /// Clears the warnings, so that a requested reload logs them again.
    pub(super) fn forget_warnings(&mut self) {
        self.warnings.clear();
    }
}

fn text_of(warning: &ConfigProblem) -> String {
    warning.to_string().trim_end().to_owned()
}

/// Logs the notes about a translation.
pub(super) fn notes(notes: &[SourceNote]) {
    for SourceNote { text, is_warning } in notes {
        if *is_warning {
            warn!(event = "import_warning", "{text}");
        } else {
            info!(event = "import_note", "{text}");
        }
    }
}

/// Logs that a new version of a source is served.
pub(super) fn applied(source: &str, version: &str) {
    info!(
        event = "source_loaded",
        source, version, "config source loaded"
    );
}

/// Logs that a version of `source` cannot be served, with all errors.
pub(super) fn refused(source: &str, configuration: &str, why: &ReloadError) {
    match why {
        ReloadError::Invalid(errors) => log_errors(errors),
        ReloadError::Unread(why) | ReloadError::Unservable(why) => {
            error!(event = "config_error", "{why}");
        }
        ReloadError::BuiltIn => warn!(event = "reload_ignored", "{why}"),
    }
    error!(
        event = "config_reload_failed",
        source, configuration, "config reload failed; keeping the previous config"
    );
}

fn log_errors(errors: &ConfigErrors) {
    for problem in errors.problems() {
        error!(event = "config_error", "{}", problem.to_string().trim_end());
    }
    let untold = errors.count().saturating_sub(errors.problems().len());
    if untold > 0 {
        let more = counted(untold, "more error", "more errors");
        error!(event = "config_error", "and {more}");
    }
}

/// Logs that a source cannot be loaded.
pub(super) fn failed(source: &str, trouble: &SourceError) {
    warn!(
        event = "source_unavailable",
        source,
        error = %trouble,
        "config source unavailable; keeping its last version"
    );
}

/// Logs that a source answers again.
pub(super) fn back(source: &str) {
    info!(
        event = "source_recovered",
        source, "config source available again"
    );
}

/// Returns a rejection in one line, for a status report.
pub(super) fn in_short(why: &ReloadError) -> String {
    let text = match why {
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
    text.chars().take(TOLD_MAX).collect()
}
