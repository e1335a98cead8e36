//! What the log hears of policy that changes.

use super::composer::ReloadError;
use super::source::{SourceError, SourceNote};
use crate::environment::FlagEnvironment;
use tidegate_policy::config::ConfigProblem;
use tidegate_policy::{Config, ConfigErrors};
use tracing::{error, info, warn};

/// The most that a status tells of what is wrong.
const TOLD_MAX: usize = 512;

/// What took effect that the file does not say, and what is odd: from a composition.
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

    /// Tells what was not told `before`: a source may change every minute, and the file beside it is as
    /// odd as it was.
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

    /// Lets what is odd be told again, for whoever asks once more.
    pub(super) fn forget_warnings(&mut self) {
        self.warnings.clear();
    }
}

fn told(warning: &ConfigProblem) -> String {
    warning.to_string().trim_end().to_owned()
}

/// Tells what there is to know about a translation.
pub(super) fn notes(notes: &[SourceNote]) {
    for SourceNote { text, is_warning } in notes {
        if *is_warning {
            warn!("{text}");
        } else {
            info!("{text}");
        }
    }
}

/// Tells that a source says something else, and that it is served.
pub(super) fn applied(source: &str, version: &str) {
    info!(source, version, "policy of this source is served");
}

/// Tells that what `source` says cannot be served, and everything that is wrong with it.
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

/// Tells that a source cannot be asked.
pub(super) fn failed(source: &str, trouble: &SourceError) {
    warn!(
        source,
        error = %trouble,
        "this source of policy cannot be asked: what it said before is served on"
    );
}

/// Tells that a source that could not be asked answers again.
pub(super) fn back(source: &str) {
    info!(source, "this source of policy answers again");
}

/// What a status tells of a refusal, in one line.
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
