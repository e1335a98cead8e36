//! Imports a Traefik plugin that limits requests by path and header: the JSON document of limits that
//! its keeper holds, and the `spec` with its settings, which may also contain the limits.
//!
//! | module | contents |
//! |---|---|
//! | `limits` | the document of limits, and a limit |
//! | `rule` | a rule of a limit |
//! | `translate` | limits as a policy |
//! | `spec` | the settings of the plugin |
//! | `embedded` | a document within a setting |
//! | `fallback` | the document of limits, rewritten |
//!
//! A request is counted by the first limit with a matching rule, in the order written, and by no other:
//! `evaluate: first`. All rules of a limit share one counter. At most *N* requests pass in any second,
//! whenever that second begins. The algorithm is `bucketed-window`, so that neither a boundary between
//! seconds nor a late tick lets more or fewer pass.

mod embedded;
mod fallback;
mod limits;
mod rule;
mod spec;
mod translate;

use super::document::{ImportErrors, ImportedFile};
use super::note::ImportNotes;
use super::{ImportedConfig, SourceFile, yaml};
use tidegate_config::ConfigErrors;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, NodeKind, YamlNode};

/// The comment above the policy of a fallback.
const FALLBACK: &str = "Until the keeper is reached for the first time, this `fallback` is used:";

/// The options of the translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsOptions {
    /// The name of the resulting policy.
    pub policy: String,
}

impl Default for LimitsOptions {
    /// Names the policy `traefik`.
    fn default() -> Self {
        Self {
            policy: "traefik".to_owned(),
        }
    }
}

/// Translates a document of limits from a keeper: `{"limits": [{"rules": […], "limit": N}]}`. Messages
/// call it `name`.
///
/// ```
/// use tidegate_import::{LimitsOptions, traefik_plugin_limits};
///
/// let text = r#"{ "limits": [{ "rules": [{ "urlpathpattern": "/pay$" },], "limit": 1000 }] }"#;
/// let imported = traefik_plugin_limits("keeper", text, &LimitsOptions::default())?;
/// let part = imported.to_part();
/// assert!(part.contains(r#"path: "/pay$""#));
/// assert!(part.contains("rate: 1000/s"));
/// assert!(imported.notes()[0].text().contains("comma"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns all errors found in the document.
pub fn traefik_plugin_limits(
    name: &str,
    text: &str,
    options: &LimitsOptions,
) -> Result<ImportedConfig, ConfigErrors> {
    let file = SourceFile {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    let found = read_limits(&file, &mut notes, &mut wrong);
    wrong.finish(name)?;
    let policy = translate::policy(&options.policy, &found, (name, 1), &mut notes);
    ImportedConfig {
        from: format!("limits of a Traefik plugin: {name}"),
        base: spec::base(),
        policies: vec![policy],
        notes: notes.into_notes(),
    }
    .checked(name)
}

/// Translates the plugin's configuration: its `spec`, anywhere in a file, or a document of limits
/// alone.
///
/// ```
/// use tidegate_import::{SourceFile, traefik_plugin};
///
/// let file = SourceFile {
///     name: "middleware.yaml".to_owned(),
///     text: "
/// spec:
///   ratelimitData: |
///     { \"limits\": [{ \"rules\": [{ \"headerkey\": \"Tier\", \"headerval\": \"free\" }], \"limit\": 5 }] }
/// "
///     .to_owned(),
/// };
/// let yaml = traefik_plugin(&file)?.to_yaml();
/// assert!(yaml.contains("headers: { tier: free }"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns all errors found in the file.
pub fn traefik_plugin(file: &SourceFile) -> Result<ImportedConfig, ConfigErrors> {
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    let (document, tree) = ImportedFile::open(file, "", nothing(), &mut notes);
    let is_spec = tree.as_ref().is_some_and(spec::is_in);
    if !is_spec {
        return traefik_plugin_limits(&file.name, &file.text, &LimitsOptions::default());
    }
    let spec = tree
        .as_ref()
        .map(|tree| spec::read(document, file, tree, &mut wrong));
    let spec = spec.unwrap_or_default();
    let found = match &spec.limits {
        Some(limits) => read_limits(limits, &mut notes, &mut wrong),
        None => limits::PluginLimits::default(),
    };
    wrong.finish(&file.name)?;
    let mut base = spec.base(&found);
    let name = LimitsOptions::default().policy;
    let mut policies = Vec::new();
    if spec.limits.is_some() || !spec.has_keeper() {
        let place = (file.name.as_str(), spec.line);
        policies.push(translate::policy(&name, &found, place, &mut notes));
    }
    if spec.has_keeper() {
        // The policies come from the keeper, and two cannot have the same name. So these are only
        // comments.
        base.push_str(&yaml::commented(FALLBACK, &policies));
        policies.clear();
    }
    Ok(ImportedConfig {
        from: format!("the settings of a Traefik plugin: {}", file.name),
        base,
        policies,
        notes: notes.into_notes(),
    })
}

/// Reads a document of limits and reports its errors.
fn read_limits(
    file: &SourceFile,
    notes: &mut ImportNotes,
    wrong: &mut ImportErrors,
) -> limits::PluginLimits {
    let (mut document, tree) = ImportedFile::open(file, "", nothing(), notes);
    document.note_loose_commas();
    let found = tree.map(|tree: YamlNode| {
        let root = ConfigValue::root(&tree);
        if let NodeKind::Null = tree.kind {
            document.error(root.spot(), nothing());
            return limits::PluginLimits::default();
        }
        limits::read(&mut document, &root)
    });
    document.close(wrong);
    found.unwrap_or_default()
}

fn nothing() -> ConfigFault {
    ConfigFault::new("no limits found").help(
        r#"expected { "limits": [ { "rules": [ { "urlpathpattern": "/api" } ], "limit": 10 } ] }"#,
    )
}
