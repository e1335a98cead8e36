//! The settings of a program by their full names, in any layout of the file. As in Spring, `a.b: 1` is
//! the same as `a: { b: 1 }`, and case and dashes are ignored.

use super::document::ImportedFile;
use super::map::plain;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, NodeKind};

/// The maximum nesting depth. Deeper values are not settings.
const DEPTH_MAX: usize = 16;

/// A setting.
#[derive(Debug)]
pub(super) struct Property<'v> {
    /// The full name, in the form in which it is compared.
    name: String,
    /// The full name, as written.
    pub(super) written: String,
    pub(super) value: ConfigValue<'v>,
    taken: bool,
}

/// All settings of a file.
#[derive(Debug, Default)]
pub(super) struct Properties<'v>(Vec<Property<'v>>);

impl<'v> Properties<'v> {
    /// Returns the settings of a file; none if it is not a map.
    pub(super) fn of(root: &ConfigValue<'v>) -> Self {
        let mut all = Self::default();
        all.add(root, "", 0);
        all
    }

    fn add(&mut self, value: &ConfigValue<'v>, path: &str, depth: usize) {
        let NodeKind::Map(entries) = &value.node.kind else {
            return;
        };
        for entry in entries {
            let dot = if path.is_empty() { "" } else { "." };
            let written = format!("{path}{dot}{}", entry.key.text);
            let child = value.child(&entry.key, &entry.value);
            if let (NodeKind::Map(_), true) = (&child.node.kind, depth < DEPTH_MAX) {
                self.add(&child, &written, depth.saturating_add(1));
            } else {
                self.0.push(Property {
                    name: plain(&written),
                    written,
                    value: child,
                    taken: false,
                });
            }
        }
    }

    /// Returns the value of a setting, unless it is empty, and marks it as used.
    pub(super) fn take(&mut self, name: &str) -> Option<ConfigValue<'v>> {
        let name = plain(name);
        let mut found = None;
        for property in self.0.iter_mut().filter(|it| it.name == name) {
            property.taken = true;
            found = found.or_else(|| Some(property.value.clone()));
        }
        found.filter(|value| !super::map::is_nothing(value.node))
    }

    /// Returns true if there is a setting whose name begins with `prefix`.
    pub(super) fn has(&self, prefix: &str) -> bool {
        let prefix = plain(prefix);
        self.0.iter().any(|it| it.name.starts_with(&prefix))
    }

    /// Returns the unused settings whose names begin with `prefix`.
    pub(super) fn left(&self, prefix: &str) -> impl Iterator<Item = &Property<'v>> {
        let prefix = plain(prefix);
        let is_left = move |it: &&Property<'v>| !it.taken && it.name.starts_with(&prefix);
        self.0.iter().filter(is_left)
    }

    /// Returns all settings.
    pub(super) fn all(&self) -> &[Property<'v>] {
        &self.0
    }
}

impl Property<'_> {
    /// Returns the last segment of the name, in the form in which it is compared, and the segments
    /// before it.
    pub(super) fn last(&self) -> (&str, &str) {
        match self.name.rsplit_once('.') {
            Some((before, last)) => (last, before),
            None => (&self.name, ""),
        }
    }

    /// Returns true if the name begins with `prefix`.
    pub(super) fn is_of(&self, prefix: &str) -> bool {
        self.name.starts_with(&plain(prefix))
    }
}

/// Translates a text with Spring's `${NAME:default}` into Tidegate's syntax. Reports a setting that is
/// not a single value.
pub(super) fn placed(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<String> {
    let text = document.text(value)?;
    let mut ours = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        ours.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            return refuse(document, value, text);
        };
        let (name, default) = match inside.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_variable(name) || default.is_some_and(|it| it.contains(['$', '{'])) {
            return refuse(document, value, text);
        }
        ours.push_str("${");
        ours.push_str(name);
        if let Some(default) = default {
            ours.push_str(":-");
            ours.push_str(default);
        }
        ours.push('}');
        rest = after;
    }
    ours.push_str(rest);
    Some(ours)
}

/// Returns a text with the defaults of its variables; `None` if one has no default.
pub(super) fn by_default(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, after) = after.split_once('}')?;
        let (_, default) = inside.split_once(':')?;
        plain.push_str(before);
        plain.push_str(default.strip_prefix('-').unwrap_or(default));
        rest = after;
    }
    plain.push_str(rest);
    Some(plain)
}

fn refuse(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>, text: &str) -> Option<String> {
    let message = format!(
        "{} is not supported: {} is more than a variable with a default",
        value.name(),
        ConfigFault::quote(text)
    );
    let fault = ConfigFault::new(message).help("write the value, or `${NAME:default}`");
    document.error(value.spot(), fault);
    None
}

fn is_variable(name: &str) -> bool {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts_well && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::by_default;

    #[test]
    fn defaults_replace_unset_variables() {
        assert_eq!(by_default("a"), Some("a".to_owned()));
        assert_eq!(by_default("${A:b}:${C:d}"), Some("b:d".to_owned()));
        assert_eq!(by_default("${A:-b}"), Some("b".to_owned()));
        assert_eq!(by_default("${A}"), None);
    }
}
