//! Imports the variables of an event collector from a file: `NAME=value`, one per line.
//!
//! | module | contents |
//! |---|---|
//! | `env` | the file |
//! | `variables` | the known variables and their values |
//! | `translate` | the configuration |
//!
//! With `respond: { profile: collector }` the variables also apply [in the environment](tidegate_config).
//! The translation contains the same settings in a file, but no secrets: these stay in the environment.

mod env;
mod translate;
mod variables;

use super::document::ImportErrors;
use super::note::ImportNotes;
use super::{ImportedConfig, SourceFile};
use tidegate_config::ConfigErrors;

/// Translates a file of variables.
///
/// ```
/// use tidegate_import::{SourceFile, collector};
///
/// let file = SourceFile {
///     name: ".env".to_owned(),
///     text: "REDIS_URL=redis:6379\nBLACKLIST_THRESHOLD=5000\n".to_owned(),
/// };
/// let yaml = collector(&file)?.to_yaml();
/// assert!(yaml.contains("url: \"redis://redis:6379\""));
/// assert!(yaml.contains("threshold: 5000"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns all errors found in the file.
pub fn collector(file: &SourceFile) -> Result<ImportedConfig, ConfigErrors> {
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    let variables = env::read(file, &mut notes, &mut wrong);
    let variables_read = variables::read(file, &variables, &mut notes, &mut wrong);
    wrong.finish(&file.name)?;
    ImportedConfig {
        from: format!("the variables of an event collector: {}", file.name),
        base: translate::base(&variables_read),
        policies: Vec::new(),
        notes: notes.into_notes(),
    }
    .checked_whole(&file.name, &translate::ASKED_FOR)
}
