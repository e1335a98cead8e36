//! A rule of a limit: the requests that it matches.

use crate::document::{ImportedFile, bad_value, line};
use crate::draft::ConditionDraft;
use crate::map::{ImportMap, ImportMapFields};
use crate::names;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::matching::PathPattern;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::scalar::header_name as parse_header_name;

static RULE: ImportMapFields = ImportMapFields {
    what: "a rule",
    fields: &["urlpathpattern", "headerkey", "headerval"],
};

/// A rule: a path pattern, a header and its value, or both.
#[derive(Debug)]
pub(super) struct PluginRule {
    path: Option<PathPattern>,
    /// The header, with its name in lower case, and its value.
    header: Option<(String, String)>,
    pub(super) line: usize,
}

/// Reads a rule; `None` after an error. An empty rule is an error too: a rule never matches every
/// request because its author forgot the condition.
pub(super) fn read(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<PluginRule> {
    let map = ImportMap::read(document, value, &RULE)?;
    let path = map.said("urlpathpattern");
    let written = path.is_some();
    let path = path.and_then(|value| pattern(document, &value));
    let header = header(document, &map);
    if written && path.is_none() {
        return None;
    }
    let header = header.ok()?;
    if path.is_none() && header.is_none() {
        let fault = ConfigFault::new("this rule is empty and would match every request");
        let help = "write `urlpathpattern`, or both `headerkey` and `headerval`; for every request, write \"/\"";
        document.error(value.spot(), fault.help(help));
        return None;
    }
    Some(PluginRule {
        path,
        header,
        line: line(value.node.place),
    })
}

fn pattern(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<PathPattern> {
    let text = document.text(value)?;
    let bad = bad_value(text);
    match (PathPattern::parse(text), bad) {
        (Ok(pattern), None) => Some(pattern),
        (Err(why), _) => {
            let help = "for example \"/api\", \"/api/*/users\" or \"/api/*/users$\"";
            document.error(value.spot(), ConfigFault::new(why).help(help));
            None
        }
        (Ok(_), Some(fault)) => {
            document.error(value.spot(), fault);
            None
        }
    }
}

/// Reads the header and its value; `None` if only one of them is set, which has no effect in the plugin
/// either.
fn header(
    document: &mut ImportedFile<'_>,
    map: &ImportMap<'_>,
) -> Result<Option<(String, String)>, ()> {
    let (key, value) = (map.said("headerkey"), map.said("headerval"));
    let (key, value) = match (key, value) {
        (None, None) => return Ok(None),
        (Some(key), Some(value)) => (key, value),
        (key, value) => {
            let missing = if key.is_none() {
                "headerkey"
            } else {
                "headerval"
            };
            let there = key.or(value).map_or(String::new(), |it| it.name());
            let text = format!("{there} is skipped: it needs `{missing}`");
            document.warn(map.value.node.place, text);
            return Ok(None);
        }
    };
    let name = document.text(&key).map(parse_header_name);
    let text = document.text(&value);
    let bad = text.and_then(bad_value);
    match (name, text, bad) {
        (Some(Ok(name)), Some(text), None) => Ok(Some((name, text.to_owned()))),
        (Some(Err(fault)), _, _) => {
            document.error(key.spot(), fault);
            Err(())
        }
        (_, _, Some(fault)) => {
            document.error(value.spot(), fault);
            Err(())
        }
        _ => Err(()),
    }
}

// === impl PluginRule ===

impl PluginRule {
    /// Returns a text that is the same for all rules that match the same requests.
    pub(super) fn identity(&self) -> String {
        let path = self.path.as_ref().map(PathPattern::spelt);
        let header = self.header.as_ref();
        let header = header.map(|(name, value)| format!("{name}\n{}", value.to_ascii_lowercase()));
        let parts = [path.unwrap_or_default(), header.unwrap_or_default()];
        parts.join("\n")
    }

    /// Makes up a name for the rule, before it is made to fit, such as `api.any.users.only.tier-free`.
    /// It is the same for all rules that match the same requests.
    pub(super) fn made_up(&self) -> String {
        let path = self.path.as_ref().map(|path| name_of(&path.spelt()));
        let header = self.header.as_ref().map(|(name, value)| {
            let value = value.to_ascii_lowercase();
            format!("{name}-{}", names::shown(name, &value))
        });
        let parts: Vec<String> = path.into_iter().chain(header).collect();
        parts.join(".")
    }

    /// Returns the condition of the configuration.
    pub(super) fn condition(&self) -> ConditionDraft {
        ConditionDraft {
            path: self.path.as_ref().map(|path| path.as_str().to_owned()),
            header: self.header.clone(),
            ..ConditionDraft::default()
        }
    }
}

/// Describes a pattern in words.
fn name_of(pattern: &str) -> String {
    let (path, is_whole) = match pattern.strip_suffix('$') {
        Some(path) => (path, true),
        None => (pattern, false),
    };
    let words: Vec<&str> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| match segment {
            "*" => "any",
            "**" => "all",
            text => text,
        })
        .collect();
    match (words.is_empty(), is_whole, path) {
        (true, true, "") => "no-path".to_owned(),
        (true, true, _) => "root".to_owned(),
        (true, false, _) => "everything".to_owned(),
        (false, true, _) => format!("{}-only", words.join("-")),
        (false, false, _) => words.join("-"),
    }
}
