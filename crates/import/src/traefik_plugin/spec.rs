//! The settings of the plugin, anywhere in a file.
//!
//! With a keeper, the limits come from there, and the limits in the settings apply until it has been
//! reached: a [source](tidegate_config::source) with a fallback. Without a keeper, there are only the limits in
//! the settings.

use super::embedded;
use super::fallback;
use super::limits::PluginLimits;
use crate::SourceFile;
use crate::base::SectionWriter;
use crate::document::{ImportErrors, ImportedFile, line};
use crate::properties::{Properties, Property};
use crate::text::{escaped, quote};
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_config::reading::{ConfigValue, parse_http_url};
use tidegate_policy::text::{ConfigFault, NodeKind, YamlNode, duration};

/// The settings, in the form in which they are compared, and as written.
const WORDS: [(&str, &str); 11] = [
    ("keeperratelimitkey", "keeperRateLimitKey"),
    ("keeperurl", "keeperURL"),
    ("keeperreqtimeout", "keeperReqTimeout"),
    ("keeperadminpassword", "keeperAdminPassword"),
    ("keeperusername", "keeperUsername"),
    ("keeperpassword", "keeperPassword"),
    ("keepersettingsendpoint", "keeperSettingsEndpoint"),
    ("keeperreloadinterval", "keeperReloadInterval"),
    ("ratelimitdata", "ratelimitData"),
    ("ratelimitdebug", "ratelimitDebug"),
    ("ratelimitpath", "ratelimitPath"),
];

/// The ranges of the refresh interval and of the timeout of a source.
const REFRESHES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_hours(24);
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_mins(10);

/// The contents of the settings.
#[derive(Debug, Default)]
pub(super) struct PluginSpec {
    /// The document of limits in the settings.
    pub(super) limits: Option<SourceFile>,
    /// The line where the settings begin.
    pub(super) line: usize,
    /// The fields of the keeper, in the syntax of the configuration.
    keeper: Option<Vec<(&'static str, String)>>,
}

/// Returns true if a file contains settings of the plugin.
pub(super) fn is_in(tree: &YamlNode) -> bool {
    let properties = Properties::of(&ConfigValue::root(tree));
    properties.all().iter().any(is_known)
}

fn is_known(property: &Property<'_>) -> bool {
    let (last, _) = property.last();
    WORDS.iter().any(|(word, _)| *word == last)
}

/// Reads the settings.
pub(super) fn read(
    mut document: ImportedFile<'_>,
    file: &SourceFile,
    tree: &YamlNode,
    wrong: &mut ImportErrors,
) -> PluginSpec {
    let properties = Properties::of(&ConfigValue::root(tree));
    let known = || properties.all().iter().filter(|it| is_known(it));
    let parent = known().next().map_or("", |it| it.last().1).to_owned();
    let elsewhere = known().find(|it| it.last().1 != parent);
    if let Some(other) = elsewhere {
        let fault = ConfigFault::new("the settings of a second plugin start here");
        let help = "import one at a time: Traefik applies the settings of the last one to all";
        document.error(other.value.key_spot(), fault.help(help));
    }
    let mut settings = PluginSettings {
        document: &mut document,
        properties: &properties,
        parent: &parent,
    };
    let spec = PluginSpec {
        line: known().next().map_or(1, |it| line(it.value.node.place)),
        limits: settings.limits(file),
        keeper: settings.keeper(),
    };
    settings.note_others();
    document.close(wrong);
    spec
}

/// The settings of a plugin.
struct PluginSettings<'s, 'a, 'v> {
    document: &'s mut ImportedFile<'a>,
    properties: &'s Properties<'v>,
    parent: &'s str,
}

impl<'v> PluginSettings<'_, '_, 'v> {
    /// Returns the value of a setting, unless it is blank.
    fn get(&self, word: &str) -> Option<ConfigValue<'v>> {
        let word = word.to_ascii_lowercase();
        let mut all = self.properties.all().iter();
        let found = all.find(|it| it.last() == (word.as_str(), self.parent))?;
        let says_nothing = match &found.value.node.kind {
            NodeKind::Null => true,
            NodeKind::Text(text) => text.trim().is_empty(),
            _ => false,
        };
        (!says_nothing).then(|| found.value.clone())
    }

    fn text(&mut self, word: &str) -> Option<(&'v str, ConfigValue<'v>)> {
        let value = self.get(word)?;
        Some((self.document.text(&value)?, value))
    }

    fn limits(&mut self, file: &SourceFile) -> Option<SourceFile> {
        let (text, value) = self.text("ratelimitData")?;
        Some(embedded::document(file, &value, text))
    }

    /// Returns the fields of a keeper; `None` if there is none.
    fn keeper(&mut self) -> Option<Vec<(&'static str, String)>> {
        let Some((url, at)) = self.text("keeperURL") else {
            for word in [
                "keeperRateLimitKey",
                "keeperReqTimeout",
                "keeperReloadInterval",
            ] {
                if let Some(value) = self.get(word) {
                    let text = format!("`{word}` is skipped: it needs `keeperURL`");
                    self.document.note(value.node.place, text);
                }
            }
            return None;
        };
        let url = parse_http_url(url);
        let url = url.map_err(|fault| fault.help("for example `https://keeper.internal:8080`"));
        let url = self.accept(&at, url);
        let key = self.field("keeperRateLimitKey", "key", Self::sound);
        if self.get("keeperRateLimitKey").is_none() {
            let fault = ConfigFault::new("`keeperURL` needs `keeperRateLimitKey`");
            let help = "set it to the key of the limits in the keeper";
            self.document.error(at.key_spot(), fault.help(help));
        }
        let fields = [
            url.map(|url| ("url", quote(&escaped(&url)))),
            key,
            self.field("keeperSettingsEndpoint", "path", Self::sound),
            self.field("keeperUsername", "user", Self::sound),
            self.password(),
            self.field("keeperReloadInterval", "refresh", |text| {
                within(text, &REFRESHES)
            }),
            self.field("keeperReqTimeout", "timeout", |text| {
                within(text, &TIMEOUTS)
            }),
        ];
        Some(fields.into_iter().flatten().collect())
    }

    /// Translates a setting into a field, if it is set and valid.
    fn field(
        &mut self,
        word: &str,
        field: &'static str,
        read: impl FnOnce(&str) -> Result<String, ConfigFault>,
    ) -> Option<(&'static str, String)> {
        let (text, value) = self.text(word)?;
        let read = self.accept(&value, read(text))?;
        Some((field, read))
    }

    /// Translates the password into a variable. A password is never copied: a printed translation shows
    /// it to others.
    fn password(&mut self) -> Option<(&'static str, String)> {
        let words = ["keeperAdminPassword", "keeperPassword"];
        let (word, value) = words
            .iter()
            .find_map(|word| Some((word, self.get(word)?)))?;
        let text = format!(
            "`{word}` is not copied: set the variable KEEPER_PASSWORD, or use `password_file`"
        );
        self.document.note(value.node.place, text);
        Some(("password", quote("${KEEPER_PASSWORD}")))
    }

    /// Notes settings without a counterpart, and those that the plugin does not know.
    fn note_others(&mut self) {
        for (word, why) in [
            ("ratelimitDebug", "use `--log-level debug`"),
            ("ratelimitPath", "the plugin does not use it either"),
        ] {
            if let Some(value) = self.get(word) {
                let text = format!("`{word}` is skipped: {why}");
                self.document.note(value.node.place, text);
            }
        }
        let beside = self.properties.all().iter();
        let beside = beside.filter(|it| it.last().1 == self.parent && !is_known(it));
        for property in beside {
            let text = format!(
                "`{}` is skipped: it is not a setting of the plugin",
                property.written
            );
            self.document.note(property.value.node.place, text);
        }
    }

    /// Checks a key or a part of a URL: at most 512 bytes, without control characters.
    fn sound(text: &str) -> Result<String, ConfigFault> {
        if text.len() <= 512 && !text.chars().any(char::is_control) {
            return Ok(quote(&escaped(text.trim())));
        }
        let fault = ConfigFault::new(format!("{} is not supported", ConfigFault::quote(text)));
        Err(fault.help("use up to 512 printable characters"))
    }

    fn accept(
        &mut self,
        value: &ConfigValue<'_>,
        read: Result<String, ConfigFault>,
    ) -> Option<String> {
        read.map_err(|fault| self.document.error(value.spot(), fault))
            .ok()
    }
}

fn within(text: &str, range: &RangeInclusive<Duration>) -> Result<String, ConfigFault> {
    let length = duration(text).map_err(ConfigFault::new)?;
    if range.contains(&length) {
        return Ok(text.trim().to_owned());
    }
    let (from, to) = (range.start(), range.end());
    let fault = ConfigFault::new(format!(
        "{} is too short or too long",
        ConfigFault::quote(text)
    ));
    Err(fault.help(format!("expected {from:?} to {}s", to.as_secs())))
}

// === impl PluginSpec ===

impl PluginSpec {
    /// Returns true if limits come from a keeper.
    pub(super) fn has_keeper(&self) -> bool {
        self.keeper.is_some()
    }

    /// Returns all sections except the policies; `found` holds the limits in the settings.
    pub(super) fn base(&self, found: &PluginLimits) -> String {
        let mut base = begin();
        if let Some(keeper) = &self.keeper {
            base.section("sources").item_of("keeper");
            let of_source = |field: &str| matches!(field, "refresh" | "timeout");
            for (field, value) in keeper.iter().filter(|(field, _)| !of_source(field)) {
                base.field(field, value);
            }
            if self.limits.is_some() {
                base.block("fallback", &fallback::lines(found));
            }
            base.end_of_map();
            for (field, value) in keeper.iter().filter(|(field, _)| of_source(field)) {
                base.field(field, value);
            }
        }
        base.finish()
    }
}

/// Returns the listeners and responses of a plugin without a keeper.
pub(super) fn base() -> String {
    begin().finish()
}

fn begin() -> SectionWriter {
    let mut base = SectionWriter::default();
    base.section("listen").field("http", "127.0.0.1:8080");
    base.section("respond").field("profile", "traefik-plugin");
    base
}
