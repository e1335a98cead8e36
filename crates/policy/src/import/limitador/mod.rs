//! The file of limitador: a list of limits, each with the namespace that it belongs to.
//!
//! | module | what it is |
//! |---|---|
//! | `expression` | conditions and variables, as far as they only compare entries |
//! | `limit` | one limit |
//! | `translate` | namespaces as policies |
//!
//! Of its expressions only those are understood that the language can say as well: an entry of the
//! first descriptor is equal to a text, several of these together, and an entry as such. All others
//! are refused, each where it stands, for a limit that applies to whom it should not is worse than none.

mod expression;
mod limit;
mod translate;

use super::document::{ImportErrors, ImportedFile};
use super::note::ImportNotes;
use super::yaml::ENVOY_BASE;
use super::{Imported, SourceFile};
use crate::config::{ConfigErrors, ConfigFault, ConfigValue, NodeKind};
use crate::limit::ChargeTime;

/// Translates the file of limitador. `charge` is when its limits charge a cost that does not fit.
/// Errors come all at once.
///
/// ```
/// use tidegate_policy::Charge;
/// use tidegate_policy::import::{SourceFile, limitador};
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
/// let yaml = limitador(&file, Charge::EvenIfRefused)?.to_yaml();
/// assert!(yaml.contains("match: { descriptor: { req.method: POST, user_id: \"\" } }"));
/// assert!(yaml.contains("key: descriptor:user_id"));
/// assert!(yaml.contains("rate: 5/60s"));
/// # Ok::<(), tidegate_policy::ConfigErrors>(())
/// ```
pub fn limitador(file: &SourceFile, charge: ChargeTime) -> Result<Imported, ConfigErrors> {
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
    Ok(Imported {
        from: format!("limitador: {}", file.name),
        base: ENVOY_BASE.to_owned(),
        policies,
        notes: notes.into_notes(),
    })
}

fn nothing() -> ConfigFault {
    ConfigFault::new("there are no limits here").help(
        "expected a list of limits, each with `namespace`, `max_value`, `seconds`, `conditions` and `variables`",
    )
}
