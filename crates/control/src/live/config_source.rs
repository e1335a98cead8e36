//! The inputs of a configuration: a file, the files of envoyproxy/ratelimit, or both; the sources that the
//! file lists; and one in addition.

use super::config_file;
use crate::failure::Failure;
use crate::live::{self, SourceNote};
use std::fmt;
use std::iter;
use std::path::Path;
use tidegate_config::Environment;
use tidegate_config::compose::{ComposedConfig, NamedText, SourcePart, has_documents};
use tidegate_config::source::PolicySource;
use tidegate_config::statsd::Statsd;
use tidegate_config::{Config, ConfigErrors};
use tidegate_import::{ENVOY_BASE, EnvoyOptions, envoy};
use tidegate_policy::listen::Listener;

/// The inputs of a configuration. They can be read repeatedly.
#[derive(Clone, Copy, Debug)]
pub struct ConfigInput<'a> {
    /// The configuration file.
    pub file: Option<&'a Path>,
    /// The files of envoyproxy/ratelimit, and the options of their translation.
    pub envoy: Option<(&'a Path, EnvoyOptions)>,
    /// The text of a source in addition to those that the file lists, and its name in messages.
    pub source: Option<NamedText<'a>>,
}

/// The texts of all inputs, as read.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigTexts {
    /// The name and the text of the file.
    file: Option<(String, String)>,
    /// The name and the text of the translation.
    translated: Option<(String, String)>,
    /// The name and the text of a source in addition to those that the file lists.
    source: Option<(String, String)>,
    /// The texts of the sources that the file lists, for commands that query them once.
    told: Vec<SourceText>,
    /// True if one of these did not respond.
    is_incomplete: bool,
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
pub enum InputError {
    /// It cannot be read.
    Unread(Failure),
    /// Its content is invalid.
    Wrong(ConfigErrors),
}

/// The policy that is served while there is no other.
const NOTHING: &str = "none";

/// Returns the text of a policy without limits: a configuration needs at least one policy.
pub(crate) fn without_limits(name: &str) -> String {
    format!("policies: [{{ name: {name}, limits: [{{ name: none, mode: off, rate: 1/s }}] }}]\n")
}

// === impl ConfigInput ===

impl ConfigInput<'_> {
    /// Returns the name for people.
    pub fn name(&self) -> String {
        let envoy = self.envoy.map(|(path, _)| path.display().to_string());
        let file = self.file.map(|path| path.display().to_string());
        let source = self.source.map(|source| source.name.to_owned());
        let names: Vec<String> = [file, envoy, source].into_iter().flatten().collect();
        if names.is_empty() {
            return "built-in".to_owned();
        }
        names.join(" and ")
    }

    /// Returns true if there is nothing to read, so that the built-in policy is served.
    pub fn is_built_in(&self) -> bool {
        self.file.is_none() && self.envoy.is_none() && self.source.is_none()
    }

    /// Reads the files, and translates those of envoyproxy/ratelimit. Does not query the sources that the
    /// file lists.
    pub(crate) fn read_files(&self) -> Result<ConfigTexts, InputError> {
        let mut texts = ConfigTexts {
            file: None,
            translated: None,
            source: self
                .source
                .map(|it| (it.name.to_owned(), it.text.to_owned())),
            told: Vec::new(),
            is_incomplete: false,
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
    ///
    /// # Errors
    ///
    /// [`InputError::Unread`] if a file or a source cannot be read. [`InputError::Wrong`] if files of
    /// envoyproxy/ratelimit cannot be translated, or if the list of sources is invalid.
    pub fn read(&self, environment: &dyn Environment) -> Result<ConfigTexts, InputError> {
        let mut texts = self.read_files()?;
        let sources = texts.sources(environment)?;
        if !sources.is_empty() {
            let count = sources.len();
            let (told, notes) = live::ask_once(sources)?;
            texts.is_incomplete = told.len() < count;
            texts.told = told;
            texts.notes.extend(notes);
        }
        Ok(texts)
    }

    /// Reads and parses the configuration. Returns it with the notes.
    ///
    /// # Errors
    ///
    /// [`InputError::Unread`] if something cannot be read, [`InputError::Wrong`] with all errors of the composition.
    pub fn load(&self, environment: &dyn Environment) -> Result<(Config, Vec<String>), InputError> {
        let texts = self.read(environment)?;
        let config = texts.parse(environment)?;
        let notes = texts.notes.into_iter().map(|note| note.text);
        Ok((config, notes.collect()))
    }

    /// Does the same for callers that can do without sources: if a required source does not respond, returns
    /// the configuration of the file alone, and the reason.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load), except for a source that does not respond. If the file alone is invalid, the
    /// error is that of the missing source, because the errors may be due to it.
    pub fn load_anyway(
        &self,
        environment: &dyn Environment,
    ) -> Result<(Config, Option<Failure>), InputError> {
        let mut texts = self.read_files()?;
        let sources = texts.sources(environment)?;
        let count = sources.len();
        let away = match live::ask_once(sources) {
            Ok((told, _)) => {
                texts.is_incomplete = told.len() < count;
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

    /// Reads the files, and returns the admin listener. Does not query the sources that the file lists.
    pub fn admin_listener(&self, environment: &dyn Environment) -> Result<Listener, InputError> {
        let texts = self.read_files()?;
        Ok(Config::admin_listener_of(texts.own(), environment)?)
    }
}

// === impl ConfigTexts ===

impl ConfigTexts {
    /// Parses the texts, with the overrides of `environment`.
    ///
    /// # Errors
    ///
    /// All errors of all texts, each with the name of its text and its line.
    pub fn parse(&self, environment: &dyn Environment) -> Result<Config, ConfigErrors> {
        let source_parts = self.told.iter().map(|it| SourcePart {
            named: NamedText {
                name: &it.name,
                text: &it.text,
            },
            is_translated: it.is_translated,
            is_separable: it.is_separable,
            is_trusted: false,
        });
        let source_parts: Vec<SourcePart<'_>> = source_parts.collect();
        let composed = self.compose(&source_parts, self.is_incomplete, environment);
        composed.map(|it| it.config)
    }

    /// Parses the texts together with `parts`, the texts of sources. If `is_incomplete`, a source has not
    /// responded yet, and may be the only one with policies: without any, nothing is limited.
    pub(crate) fn compose(
        &self,
        parts: &[SourcePart<'_>],
        is_incomplete: bool,
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
        let nothing = without_limits(NOTHING);
        let mut texts = iter::once(self.own().text).chain(all.iter().map(|it| it.named.text));
        // The additional source may have no policies either.
        if (is_incomplete || self.source.is_some()) && !texts.any(has_documents) {
            all.push(SourcePart {
                named: NamedText {
                    name: NOTHING,
                    text: &nothing,
                },
                is_translated: true,
                is_separable: false,
                is_trusted: false,
            });
        }
        let mut composed = Config::compose(self.own(), &all, environment)?;
        if self.translated.is_some() || self.source.is_some() {
            // Keep dashboards of envoyproxy/ratelimit working: it sends statistics by default.
            composed.config.statsd.get_or_insert_with(Statsd::envoy);
        }
        // Indices refer to `parts`; nothing is left out of the texts before them.
        for it in &mut composed.left_out {
            it.part = it.part.saturating_sub(before);
        }
        Ok(composed)
    }

    /// Returns the sources that the file lists, and the additional one after them.
    pub(crate) fn sources(
        &self,
        environment: &dyn Environment,
    ) -> Result<Vec<PolicySource>, ConfigErrors> {
        let mut sources = Config::sources_of(self.own(), environment)?;
        if let Some((name, text)) = &self.source {
            sources.extend(Config::sources_of(NamedText { name, text }, environment)?);
        }
        Ok(sources)
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
                text: match &self.source {
                    Some(_) => ENVOY_BASE,
                    None => Config::BUILT_IN,
                },
            },
        }
    }

    /// Returns the notes about the translation.
    pub(crate) fn notes(&self) -> &[SourceNote] {
        &self.notes
    }
}

// === impl Unusable ===

impl From<Failure> for InputError {
    fn from(failure: Failure) -> Self {
        Self::Unread(failure)
    }
}

impl From<ConfigErrors> for InputError {
    fn from(errors: ConfigErrors) -> Self {
        Self::Wrong(errors)
    }
}

impl From<InputError> for Failure {
    fn from(unusable: InputError) -> Self {
        match unusable {
            InputError::Unread(failure) => failure,
            InputError::Wrong(errors) => Self::input(errors),
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(failure) => failure.fmt(f),
            Self::Wrong(errors) => errors.fmt(f),
        }
    }
}

impl std::error::Error for InputError {}
