//! Configurations of other limiters, told in our own language.
//!
//! A translation is text: what `tidegate import` prints is what `tidegate serve --envoy-config`
//! serves, read by the same reader as any file. So there is one meaning, and it can be looked at.
//!
//! | module | what it is |
//! |---|---|
//! | `envoy` | the files of envoyproxy/ratelimit |
//! | `limitador` | the file of limitador |
//! | `traefik_plugin` | the settings and limits of a Traefik plugin |
//! | `fluxgate` | the rules and settings of `FluxGate` |
//! | `gateway` | the settings, policies and routes of an API gateway |
//! | `collector` | the variables of an event collector |
//! | `draft`, `names` | policies and limits on their way to text, and what they are called |
//! | `yaml`, `text`, `base` | the text |
//! | `note` | what has no counterpart, and what is otherwise here |
//! | `document`, `map`, `properties`, `json` | a foreign file, read with places: what its maps hold, its settings by their whole names, and what JSON is to others |

mod base;
mod collector;
mod document;
mod draft;
mod envoy;
mod fluxgate;
mod gateway;
mod json;
mod limitador;
mod map;
mod names;
mod note;
mod properties;
mod text;
mod traefik_plugin;
mod yaml;

pub use crate::source::NamedText;
pub use collector::collector;
pub use envoy::{EnvoyOptions, envoy};
pub use fluxgate::{
    RuleSetRecord, fluxgate, fluxgate_collection, fluxgate_rule_sets, fluxgate_rules,
};
pub use gateway::gateway;
pub use limitador::limitador;
pub use note::ImportNote;
pub use traefik_plugin::{LimitsOptions, traefik_plugin, traefik_plugin_limits};

use crate::config::{Config, ConfigErrors, Environment, NoEnvironment};
use draft::PolicyDraft;

/// A file of another limiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// What messages call it.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// What was translated.
#[derive(Debug)]
pub struct Imported {
    /// What it was translated from, for the first line of the text.
    from: String,
    /// Every section but the policies, as text.
    base: String,
    policies: Vec<PolicyDraft>,
    notes: Vec<ImportNote>,
}

impl Imported {
    /// The configuration: complete, with the doors that the other limiter has.
    pub fn to_yaml(&self) -> String {
        yaml::write(&self.from, &self.base, &self.policies, &self.notes)
    }

    /// The policies alone, for a configuration that has everything else: what a live source says.
    pub fn to_part(&self) -> String {
        yaml::write(&self.from, "", &self.policies, &[])
    }

    /// Itself, once its policies are known to be such as the language allows: what is told of `name`
    /// with a place there should have been found before.
    fn checked(self, name: &str) -> Result<Self, ConfigErrors> {
        if !self.policies.is_empty() {
            let part = self.to_part();
            Config::parse(&part, &format!("{name}, translated"), &NoEnvironment)?;
        }
        Ok(self)
    }

    /// The same of everything that it says, where these variables are set to something.
    fn checked_whole(self, name: &str, variables: &[(&str, &str)]) -> Result<Self, ConfigErrors> {
        let environment = AssumedEnvironment(variables);
        Config::parse(
            &self.to_yaml(),
            &format!("{name}, translated"),
            &environment,
        )?;
        Ok(self)
    }

    /// Returns true if the configuration reads from `MongoDB`, so that the program needs its driver.
    pub fn uses_mongodb(&self) -> bool {
        let words = self.base.split([' ', '\n']);
        // The text is ours: no value begins a word so.
        words.into_iter().any(|word| word == "mongodb:")
    }

    /// What has no counterpart, and what is otherwise here, in the order of the files.
    pub fn notes(&self) -> &[ImportNote] {
        &self.notes
    }
}

/// An environment in which these variables are set to something, and all files are there: of a
/// translation that asks for some, it is known that the rest is sound.
struct AssumedEnvironment<'a>(&'a [(&'a str, &'a str)]);

impl Environment for AssumedEnvironment<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let known = self.0.iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| (*value).to_owned())
    }

    fn file(&self, _path: &str) -> Result<String, String> {
        Ok(String::new())
    }
}
