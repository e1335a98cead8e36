//! Imports an API gateway with a token bucket for each route and client. Its settings are
//! `gateway.ratelimit.*` in an `application.yml`. Its policies, routes and consumers are JSON from its
//! admin service.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | `gateway.*`, and the location of Redis |
//! | `items` | policies, routes and consumers |
//! | `pages` | the check that no item is missing |
//! | `translate` | the configuration |
//!
//! A policy becomes a Tidegate policy with a limit by route and address. A route with a policy also
//! gets the limits of consumers: both must allow, and a refusal charges neither.

mod items;
mod pages;
mod settings;
#[cfg(test)]
mod tests;
mod translate;

use super::document::{ImportErrors, ImportedFile};
use super::fluxgate::first_document;
use super::note::ImportNotes;
use super::properties::Properties;
use super::{ImportedConfig, SourceFile};
use items::Items;
use pages::Pages;
use settings::GatewaySettings;
use tidegate_config::ConfigErrors;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, NodeKind, YamlNode};

/// The contents of all files.
#[derive(Debug, Default)]
struct GatewayFiles {
    settings: Option<GatewaySettings>,
    items: Items,
    pages: Pages,
}

/// Translates files of the gateway: its `application.yml`, and lists of policies, routes and limits of
/// consumers from its admin service.
///
/// ```
/// use tidegate_import::{SourceFile, gateway};
///
/// let settings = SourceFile {
///     name: "application.yml".to_owned(),
///     text: "gateway: { ratelimit: { fallback-enabled: true, fallback-reduction: 0.5 } }".to_owned(),
/// };
/// let policies = SourceFile {
///     name: "rate-limits.json".to_owned(),
///     text: r#"{ "items": [{ "id": "1", "name": "standard", "requestsPerSecond": 10, "burstSize": 50 }] }"#
///         .to_owned(),
/// };
/// let yaml = gateway(&[settings, policies])?.to_yaml();
/// assert!(yaml.contains("local_share: 0.5"));
/// assert!(yaml.contains("rate: 10/s burst 50"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns the errors of all files together.
pub fn gateway(files: &[SourceFile]) -> Result<ImportedConfig, ConfigErrors> {
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let whole = names.join(", ");
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    let mut found = GatewayFiles::default();
    for file in files {
        let file = SourceFile {
            name: file.name.clone(),
            text: first_document(file, &mut notes),
        };
        let (mut document, tree) = ImportedFile::open(&file, "", nothing(), &mut notes);
        if let Some(tree) = &tree {
            read(&mut document, tree, &mut found);
        }
        document.close(&mut wrong);
    }
    found.items.settle();
    items::check(&found.items, &mut wrong);
    found.pages.check(&mut wrong);
    wrong.finish(&whole)?;
    let (base, policies) = translate::all(&found, &whole, &mut notes);
    ImportedConfig {
        from: format!("an API gateway: {whole}"),
        base,
        policies,
        notes: notes.into_notes(),
    }
    .checked_whole(&whole, &settings::ASKED_FOR)
}

/// Reads a document of any kind.
fn read(document: &mut ImportedFile<'_>, tree: &YamlNode, found: &mut GatewayFiles) {
    let root = ConfigValue::root(tree);
    let mut properties = Properties::of(&root);
    if properties.has("gateway.") || properties.has("spring.") {
        let later = settings::read(document, &mut properties);
        let earlier = found.settings.take().unwrap_or_default();
        found.settings = Some(later.or(earlier));
        return;
    }
    let list = match &tree.kind {
        NodeKind::List(_) => Some(root.clone()),
        NodeKind::Map(entries) => {
            let entry = entries.iter().find(|entry| entry.key.text == "items");
            entry.map(|entry| root.child(&entry.key, &entry.value))
        }
        _ => None,
    };
    match list {
        Some(list) => {
            let listed = document.items(&list);
            let total = pages::total(document, &root);
            found.pages.add(document, &listed, total);
            for item in &listed {
                items::read(document, item, &mut found.items);
            }
        }
        None => document.error(root.spot(), nothing()),
    }
}

fn nothing() -> ConfigFault {
    ConfigFault::new("no settings of the gateway found").help(
        "expected `gateway.ratelimit` of an application.yml, or a list of policies, routes or limits of consumers",
    )
}
