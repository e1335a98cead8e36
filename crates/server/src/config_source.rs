//! Where a configuration comes from: a file, the files of envoyproxy/ratelimit, or both.

use crate::config_file;
use crate::failure::Failure;
use std::fmt;
use std::path::Path;
use tidegate_policy::config::Environment;
use tidegate_policy::import::{EnvoyOptions, Named, envoy};
use tidegate_policy::{Config, ConfigErrors};

/// Where a configuration comes from. It can be read again and again.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The configuration file.
    pub file: Option<&'a Path>,
    /// The files of envoyproxy/ratelimit, and how they are translated.
    pub envoy: Option<(&'a Path, EnvoyOptions)>,
}

/// What a source said when it was read.
#[derive(Debug)]
pub struct Texts {
    /// What the file is called, and says.
    file: Option<(String, String)>,
    /// What the translation is called, and says.
    translated: Option<(String, String)>,
    /// What there is to know about the translation.
    notes: Vec<String>,
}

/// Why a source cannot be used.
#[derive(Debug)]
pub enum Unusable {
    /// It cannot be read.
    Unread(Failure),
    /// What it says is wrong.
    Wrong(ConfigErrors),
}

// === impl Source ===

impl Source<'_> {
    /// What people call it.
    pub fn name(&self) -> String {
        let envoy = self.envoy.map(|(path, _)| path.display().to_string());
        let file = self.file.map(|path| path.display().to_string());
        match (file, envoy) {
            (Some(file), Some(envoy)) => format!("{file} and {envoy}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "built-in".to_owned(),
        }
    }

    /// Whether there is nothing to read, so that the built-in policy is served.
    pub fn is_built_in(&self) -> bool {
        self.file.is_none() && self.envoy.is_none()
    }

    /// Reads it, and translates what is to be translated.
    pub fn read(&self) -> Result<Texts, Unusable> {
        let mut texts = Texts {
            file: None,
            translated: None,
            notes: Vec::new(),
        };
        if let Some(path) = self.file {
            texts.file = Some((path.display().to_string(), config_file::read(path)?));
        }
        if let Some((path, options)) = self.envoy {
            let name = path.display().to_string();
            let folder = config_file::read_all(path)?;
            let imported = envoy(&name, &folder.files, options)?;
            texts.notes = folder.passed_over;
            texts
                .notes
                .extend(imported.notes().iter().map(ToString::to_string));
            texts.translated = Some((format!("{name}, translated"), imported.to_yaml()));
        }
        Ok(texts)
    }

    /// Reads it, and understands it.
    pub fn load(&self, environment: &dyn Environment) -> Result<(Config, Vec<String>), Unusable> {
        let texts = self.read()?;
        let config = texts.parse(environment)?;
        Ok((config, texts.notes))
    }
}

// === impl Texts ===

impl Texts {
    /// What they mean, with what `environment` says over it.
    pub fn parse(&self, environment: &dyn Environment) -> Result<Config, ConfigErrors> {
        match (&self.file, &self.translated) {
            (Some(own), Some(more)) => {
                Config::parse_with_policies(named(own), named(more), environment)
            }
            (Some((name, text)), None) | (None, Some((name, text))) => {
                Config::parse(text, name, environment)
            }
            (None, None) => Config::parse(Config::BUILT_IN, "built-in", environment),
        }
    }

    /// What there is to know about the translation.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

fn named((name, text): &(String, String)) -> Named<'_> {
    Named { name, text }
}

// === impl Unusable ===

impl From<Failure> for Unusable {
    fn from(failure: Failure) -> Self {
        Self::Unread(failure)
    }
}

impl From<ConfigErrors> for Unusable {
    fn from(errors: ConfigErrors) -> Self {
        Self::Wrong(errors)
    }
}

impl From<Unusable> for Failure {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Unread(failure) => failure,
            Unusable::Wrong(errors) => Self::input(errors),
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(failure) => failure.fmt(f),
            Self::Wrong(errors) => errors.fmt(f),
        }
    }
}

impl std::error::Error for Unusable {}
