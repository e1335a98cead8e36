//! Imports the file of limitador: a list of limits, each with its namespace.
//!
//! | module | contents |
//! |---|---|
//! | `expression` | conditions and variables, as far as they only compare entries |
//! | `limit` | a limit |
//! | `translate` | namespaces as policies |
//!
//! Only the expressions that Tidegate's configuration can also express are supported: an entry of the
//! first descriptor that equals a text, several of these combined, and an entry without a comparison.
//! All others are errors, each with its position. A limit that applies to the wrong requests is worse
//! than none.

mod expression;
mod limit;
mod translate;

use super::document::{ImportErrors, ImportedFile};
use super::note::ImportNotes;
use super::yaml::ENVOY_BASE;
use super::{ImportedConfig, SourceFile};
use tidegate_config::ConfigErrors;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::limit::ChargeTime;
use tidegate_policy::text::{ConfigFault, NodeKind};

/// Translates the file of limitador. `charge` sets the time at which its limits charge a cost that does
/// not fit.
///
/// ```
/// use tidegate_policy::ChargeTime;
/// use tidegate_import::{SourceFile, limitador};
///
/// let file = SourceFile {
///     name: "limits.yaml".to_owned(),
///     text: "
/// - namespace: shop
///   max_value: 5
///   seconds: 60
///   conditions: [\"descriptors[0]['req.method'] == 'POST'\"]
///   variables: [\"descriptors[0].user_id\"]
/// "
///     .to_owned(),
/// };
/// let yaml = limitador(&file, ChargeTime::EvenIfRefused)?.to_yaml();
/// assert!(yaml.contains("match: { descriptor: { req.method: POST, user_id: \"\" } }"));
/// assert!(yaml.contains("key: descriptor:user_id"));
/// assert!(yaml.contains("rate: 5/60s"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns all errors found in the file.
pub fn limitador(file: &SourceFile, charge: ChargeTime) -> Result<ImportedConfig, ConfigErrors> {
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    let (mut document, tree) = ImportedFile::open(file, "", nothing(), &mut notes);
    let mut policies = Vec::new();
    if let Some(tree) = &tree {
        let root = ConfigValue::root(tree);
        let items = document.items(&root);
        let says_nothing = match &tree.kind {
            NodeKind::Null => true,
            NodeKind::List(items) => items.is_empty(),
            _ => false,
        };
        if says_nothing {
            document.error(root.spot(), nothing());
        }
        let limits = items
            .iter()
            .filter_map(|item| limit::read(&mut document, item))
            .collect();
        policies = translate::policies(&mut document, limits, charge);
    }
    document.close(&mut wrong);
    wrong.finish(&file.name)?;
    Ok(ImportedConfig {
        from: format!("limitador: {}", file.name),
        base: ENVOY_BASE.to_owned(),
        policies,
        notes: notes.into_notes(),
    })
}

fn nothing() -> ConfigFault {
    ConfigFault::new("no limits found").help(
        "expected a list of limits, each with `namespace`, `max_value`, `seconds`, `conditions` and `variables`",
    )
}
