//! The inputs of a configuration: a file, the files of envoyproxy/ratelimit, or both; and the sources that
//! the file lists.

use crate::config_file;
use crate::failure::Failure;
use crate::live::{self, SourceNote};
use std::fmt;
use std::iter;
use std::path::Path;
use tidegate_policy::config::Environment;
use tidegate_policy::import::{EnvoyOptions, envoy};
use tidegate_policy::source::{ComposedConfig, NamedText, PolicySource, SourcePart};
use tidegate_policy::statsd::Statsd;
use tidegate_policy::{Config, ConfigErrors};

/// The inputs of a configuration. They can be read repeatedly.
#[derive(Clone, Copy, Debug)]
pub struct ConfigInput<'a> {
    /// The configuration file.
    pub file: Option<&'a Path>,
    /// The files of envoyproxy/ratelimit, and the options of their translation.
    pub envoy: Option<(&'a Path, EnvoyOptions)>,
}

/// The texts of all inputs, as read.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigTexts {
    /// The name and the text of the file.
    file: Option<(String, String)>,
    /// The name and the text of the translation.
    translated: Option<(String, String)>,
    /// The texts of the sources that the file lists, for commands that query them once.
    told: Vec<SourceText>,
    /// Notes about the translation.
    notes: Vec<SourceNote>,
}

/// The text of a source that the file lists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceText {
    /// The name in messages.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) is_translated: bool,
    pub(crate) is_separable: bool,
}

/// The reason why an input cannot be used.
#[derive(Debug)]
pub enum Unusable {
    /// It cannot be read.
    Unread(Failure),
    /// Its content is invalid.
    Wrong(ConfigErrors),
}

// === impl ConfigInput ===

impl ConfigInput<'_> {
    /// Returns the name for people.
    pub fn name(&self) -> String {
        let envoy = self.envoy.map(|(path, _)| path.display().to_string());
        let file = self.file.map(|path| path.display().to_string());
        match (file, envoy) {
            (Some(file), Some(envoy)) => format!("{file} and {envoy}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "built-in".to_owned(),
        }
    }

    /// Returns true if there is nothing to read, so that the built-in policy is served.
    pub fn is_built_in(&self) -> bool {
        self.file.is_none() && self.envoy.is_none()
    }

    /// Reads the files, and translates those of envoyproxy/ratelimit. Does not query the sources that the
    /// file lists.
    pub(crate) fn read_files(&self) -> Result<ConfigTexts, Unusable> {
        let mut texts = ConfigTexts {
            file: None,
            translated: None,
            told: Vec::new(),
            notes: Vec::new(),
        };
        if let Some(path) = self.file {
            texts.file = Some((path.display().to_string(), config_file::read(path)?));
        }
        if let Some((path, options)) = self.envoy {
            let name = path.display().to_string();
            let folder = config_file::read_all(path)?;
            let imported = envoy(&name, &folder.files, options)?;
            let passed_over = folder.passed_over.into_iter();
            texts.notes = passed_over.map(SourceNote::remark).collect();
            texts.notes.extend(SourceNote::of(&imported));
            texts.translated = Some((format!("{name}, translated"), imported.to_yaml()));
        }
        Ok(texts)
    }

    /// Reads the files, and queries the sources that the file lists, once.
    pub fn read(&self, environment: &dyn Environment) -> Result<ConfigTexts, Unusable> {
        let mut texts = self.read_files()?;
        let sources = texts.sources(environment)?;
        if !sources.is_empty() {
            let (told, notes) = live::ask_once(sources)?;
            texts.told = told;
            texts.notes.extend(notes);
        }
        Ok(texts)
    }

    /// Reads and parses the configuration. Returns it with the notes.
    pub fn load(&self, environment: &dyn Environment) -> Result<(Config, Vec<String>), Unusable> {
        let texts = self.read(environment)?;
        let config = texts.parse(environment)?;
        let notes = texts.notes.into_iter().map(|note| note.text);
        Ok((config, notes.collect()))
    }

    /// Does the same for callers that can do without sources: if a required source does not respond, returns
    /// the configuration of the file alone, and the reason.
    pub(crate) fn load_anyway(
        &self,
        environment: &dyn Environment,
    ) -> Result<(Config, Option<Failure>), Unusable> {
        let mut texts = self.read_files()?;
        let sources = texts.sources(environment)?;
        let away = match live::ask_once(sources) {
            Ok((told, _)) => {
                texts.told = told;
                None
            }
            Err(why) => Some(why),
        };
        match (texts.parse(environment), away) {
            (Ok(config), away) => Ok((config, away)),
            // The errors in the file may be due to the missing source.
            (Err(_), Some(why)) => Err(why.into()),
            (Err(errors), None) => Err(errors.into()),
        }
    }
}

// === impl ConfigTexts ===

impl ConfigTexts {
    /// Parses the texts, with the overrides of `environment`.
    pub fn parse(&self, environment: &dyn Environment) -> Result<Config, ConfigErrors> {
        let told = self.told.iter().map(|told| SourcePart {
            named: NamedText {
                name: &told.name,
                text: &told.text,
            },
            is_translated: told.is_translated,
            is_separable: told.is_separable,
            is_trusted: false,
        });
        let told: Vec<SourcePart<'_>> = told.collect();
        self.compose(&told, environment).map(|it| it.config)
    }

    /// Parses the texts together with `parts`, the texts of sources.
    pub(crate) fn compose(
        &self,
        parts: &[SourcePart<'_>],
        environment: &dyn Environment,
    ) -> Result<ComposedConfig, ConfigErrors> {
        let mut all: Vec<SourcePart<'_>> = Vec::new();
        if let (Some(_), Some((name, text))) = (&self.file, &self.translated) {
            all.push(SourcePart {
                named: NamedText { name, text },
                is_translated: true,
                is_separable: false,
                is_trusted: true,
            });
        }
        let before = all.len();
        all.extend(parts);
        let mut composed = Config::compose(self.own(), &all, environment)?;
        if self.translated.is_some() {
            // Keep dashboards of envoyproxy/ratelimit working: it sends statistics by default.
            composed.config.statsd.get_or_insert_with(Statsd::envoy);
        }
        // Indices refer to `parts`; nothing is left out of the texts before them.
        for it in &mut composed.left_out {
            it.part = it.part.saturating_sub(before);
        }
        Ok(composed)
    }

    /// Returns the sources that the file lists.
    pub(crate) fn sources(
        &self,
        environment: &dyn Environment,
    ) -> Result<Vec<PolicySource>, ConfigErrors> {
        Config::sources_of(self.own(), environment)
    }

    /// Returns the names, in messages, of the texts that are composed before those of the sources.
    pub(crate) fn names(&self) -> Vec<String> {
        let own = self.own().name.to_owned();
        let translated = self.translated.as_ref().filter(|_| self.file.is_some());
        let translated = translated.map(|(name, _)| name.clone());
        iter::once(own).chain(translated).collect()
    }

    /// Returns the text to which all others are added.
    fn own(&self) -> NamedText<'_> {
        match (&self.file, &self.translated) {
            (Some((name, text)), _) | (None, Some((name, text))) => NamedText { name, text },
            (None, None) => NamedText {
                name: "built-in",
                text: Config::BUILT_IN,
            },
        }
    }

    /// Returns the notes about the translation.
    pub(crate) fn notes(&self) -> &[SourceNote] {
        &self.notes
    }
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
