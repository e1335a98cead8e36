//! Documents of others, told in our own language.

use crate::live::source::{Loaded, Note, Part, Version, Wrong};
use tidegate_policy::ConfigErrors;
use tidegate_policy::import::{Imported, LimitsOptions, fluxgate_rules, traefik_plugin_limits};
use tidegate_policy::source::Format;

/// A document, and how it is to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Foreign<'a> {
    /// What messages call it.
    pub(super) name: &'a str,
    pub(super) format: Format,
    /// What the policy is called that it becomes, where it is one.
    pub(super) policy: &'a str,
    pub(super) text: &'a str,
}

impl Foreign<'_> {
    /// It as a part in our language. Takes as long as reading it does.
    pub(super) fn load(&self, version: Version) -> Loaded {
        let imported = match self.format {
            Format::Tidegate => {
                return Loaded::Part(Part {
                    text: self.text.to_owned(),
                    version,
                    is_translated: false,
                    is_separable: false,
                    notes: Vec::new(),
                    flaw: None,
                    documents: None,
                });
            }
            Format::TraefikPlugin => self.limits(),
            Format::Fluxgate => fluxgate_rules(self.name, self.text),
        };
        match imported {
            Err(errors) => Loaded::Wrong(Wrong::new(version, errors.to_string())),
            Ok(imported) => Loaded::Part(Part {
                text: imported.to_part(),
                version,
                is_translated: true,
                is_separable: self.format == Format::Fluxgate,
                notes: Note::of(&imported),
                flaw: None,
                documents: None,
            }),
        }
    }

    fn limits(&self) -> Result<Imported, ConfigErrors> {
        let options = LimitsOptions {
            policy: self.policy.to_owned(),
        };
        traefik_plugin_limits(self.name, self.text, &options)
    }
}
