//! Imports configurations of other limiters.
//!
//! A translation is text: `tidegate import` prints the text that `tidegate serve --envoy-config`
//! serves, and the same reader parses it as any file. So it has a single meaning, and people can
//! inspect it.
//!
//! | module | contents |
//! |---|---|
//! | `envoy` | the files of envoyproxy/ratelimit |
//! | `limitador` | the file of limitador |
//! | `traefik_plugin` | the settings and limits of a Traefik plugin |
//! | `fluxgate` | the rules and settings of `FluxGate` |
//! | `gateway` | the settings, policies and routes of an API gateway |
//! | `collector` | the variables of an event collector |
//! | `nginx` | the limits of nginx |
//! | `traefik_ratelimit` | the `RateLimit` middlewares and routers of Traefik |
//! | `draft`, `names` | policies and limits before they are written, and their names |
//! | `scopes` | rules of which only the most specific one applies |
//! | `yaml`, `text`, `base` | the text |
//! | `note` | notes on settings without a counterpart, and on differences |
//! | `document`, `map`, `properties`, `json` | a foreign file, read with positions: its maps, its settings by their full names, and JSON |

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
mod nginx;
mod note;
mod properties;
mod scopes;
mod text;
mod traefik_plugin;
mod traefik_ratelimit;
mod yaml;

pub use collector::collector;
pub use envoy::{EnvoyOptions, envoy};
pub use fluxgate::{
    RuleSetRecord, fluxgate, fluxgate_collection, fluxgate_rule_sets, fluxgate_rules,
};
pub use gateway::gateway;
pub use limitador::limitador;
pub use nginx::nginx;
pub use note::ImportNote;
pub use tidegate_config::compose::NamedText;
pub use traefik_plugin::{LimitsOptions, traefik_plugin, traefik_plugin_limits};
pub use traefik_ratelimit::traefik_ratelimit;
pub use yaml::ENVOY_BASE;

use draft::PolicyDraft;
use tidegate_config::{Config, ConfigErrors, Environment, NoEnvironment};

/// A file of another limiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name of the file in messages.
    pub name: String,
    /// The contents of the file.
    pub text: String,
}

/// A translated configuration.
#[derive(Debug)]
pub struct ImportedConfig {
    /// The origin of the translation, for the first line of the text.
    from: String,
    /// All sections except the policies, as text.
    base: String,
    policies: Vec<PolicyDraft>,
    notes: Vec<ImportNote>,
}

impl ImportedConfig {
    /// Returns the complete configuration, with the listeners that the other limiter has.
    pub fn to_yaml(&self) -> String {
        yaml::write(&self.from, &self.base, &self.policies, &self.notes)
    }

    /// Returns only the policies, as a live source provides them for a configuration that has
    /// everything else.
    pub fn to_part(&self) -> String {
        yaml::write(&self.from, "", &self.policies, &[])
    }

    /// Checks that the policies are a valid configuration. An error with a position in the translation
    /// of `name` should have been found before.
    fn checked(self, name: &str) -> Result<Self, ConfigErrors> {
        if !self.policies.is_empty() {
            let part = self.to_part();
            Config::parse(&part, &format!("{name}, translated"), &NoEnvironment)?;
        }
        Ok(self)
    }

    /// Checks the whole translation, with these values for its variables.
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
        // Tidegate wrote the text: no value begins a word like this.
        words.into_iter().any(|word| word == "mongodb:")
    }

    /// Returns the notes on settings without a counterpart and on differences, in the order of the
    /// files.
    pub fn notes(&self) -> &[ImportNote] {
        &self.notes
    }
}

/// An environment with these variables, in which all files exist. With it, a translation that refers to
/// variables can be validated.
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
