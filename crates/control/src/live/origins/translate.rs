//! Translation of other systems' documents into Tidegate's configuration language.

use crate::live::source::{LoadResult, LoadedPart, Revision, SourceDefect, SourceNote};
use tidegate_config::ConfigErrors;
use tidegate_config::source::DocumentFormat;
use tidegate_import::{ImportedConfig, LimitsOptions, fluxgate_rules, traefik_plugin_limits};

/// A document, and its format.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForeignDocument<'a> {
    /// The name in messages.
    pub(super) name: &'a str,
    pub(super) format: DocumentFormat,
    /// The name of the policy that it becomes, if it becomes one.
    pub(super) policy: &'a str,
    pub(super) text: &'a str,
}

impl ForeignDocument<'_> {
    /// Translates the document into a part. Parses it, which takes time.
    pub(super) fn load(&self, version: Revision) -> LoadResult {
        let imported = match self.format {
            DocumentFormat::Tidegate => {
                return LoadResult::Part(LoadedPart {
                    text: self.text.to_owned(),
                    version,
                    is_translated: false,
                    is_separable: false,
                    notes: Vec::new(),
                    flaw: None,
                    documents: None,
                });
            }
            DocumentFormat::TraefikPlugin => self.limits(),
            DocumentFormat::Fluxgate => fluxgate_rules(self.name, self.text),
        };
        match imported {
            Err(errors) => LoadResult::Wrong(SourceDefect::new(version, errors.to_string())),
            Ok(imported) => LoadResult::Part(LoadedPart {
                text: imported.to_part(),
                version,
                is_translated: true,
                is_separable: self.format == DocumentFormat::Fluxgate,
                notes: SourceNote::of(&imported),
                flaw: None,
                documents: None,
            }),
        }
    }

    fn limits(&self) -> Result<ImportedConfig, ConfigErrors> {
        let options = LimitsOptions {
            policy: self.policy.to_owned(),
        };
        traefik_plugin_limits(self.name, self.text, &options)
    }
}
