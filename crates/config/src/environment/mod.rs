//! The environment of a configuration: variables, and the files that hold secrets.

pub(crate) mod defaults;
pub(crate) mod overrides;

use std::fmt;
use tidegate_policy::text::ConfigFault;

/// The largest value that variables may expand to, in bytes.
const EXPANDED_MAX: usize = 64 << 10;

/// The variables and files that a configuration refers to: `${NAME}`, the variables that override
/// settings, and `*_file`.
///
/// This crate never reads the environment of the process itself. So a test, a fuzzer or
/// `tidegate validate` on another machine controls its contents. A function from names to values is an
/// environment with variables and without files.
pub trait Environment {
    /// Returns the value of a variable, if it is set.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the contents of a file.
    ///
    /// # Errors
    ///
    /// Returns the reason if the file cannot be read.
    fn file(&self, path: &str) -> Result<String, String> {
        let _ = path;
        Err("this environment reads no files".to_owned())
    }

    /// Checks that a file can be read, without reading it yet. The file may be longer than those that
    /// [`file`](Self::file) reads.
    ///
    /// # Errors
    ///
    /// Returns the reason if the file cannot be read.
    fn has_file(&self, path: &str) -> Result<(), String> {
        self.file(path).map(drop)
    }

    /// Checks that lines can be appended to the file at a path. A missing file is fine: it is created
    /// when it is needed.
    ///
    /// # Errors
    ///
    /// Returns the reason if something other than a regular file is there.
    fn can_append(&self, path: &str) -> Result<(), String> {
        let _ = path;
        Ok(())
    }

    /// Returns default settings, for fields that the configuration does not set.
    fn defaults(&self) -> &[Setting] {
        &[]
    }

    /// Records that a variable took effect through one of the [`defaults`](Self::defaults).
    fn took(&self, variable: &str) {
        let _ = variable;
    }

    /// Returns true if variables are looked up. Otherwise no message suggests setting one.
    fn looks_up(&self) -> bool {
        true
    }
}

/// A default setting from an environment. The configuration and Tidegate's own variables take
/// precedence.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    /// The variables that it comes from. Messages name the first.
    pub variables: Vec<&'static str>,
    /// The path of the field, with its sections: `listen.grpc`.
    pub path: &'static str,
    /// The key of an entry, if the field is a map with arbitrary keys.
    pub key: Option<String>,
    /// The value. It may be a secret.
    pub text: String,
    /// True if it replaces a setting of the text. The text is then a translation that no one wrote for
    /// this server.
    pub replaces_text: bool,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting")
            .field("variables", &self.variables)
            .field("path", &self.path)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// An environment without variables and files, for self-contained text from any source. A configuration
/// that needs a variable or a file is rejected.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEnvironment;

/// The help for errors caused by [`NoEnvironment`].
const LOOK_UP: &str = "use an environment that has them, such as `tidegate::ProcessEnvironment`";

impl Environment for NoEnvironment {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn file(&self, _path: &str) -> Result<String, String> {
        Err(format!("this environment has no files; {LOOK_UP}"))
    }

    fn looks_up(&self) -> bool {
        false
    }
}

impl<F: Fn(&str) -> Option<String>> Environment for F {
    fn variable(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// Replaces `${NAME}` and `${NAME:-default}` in `text`; `$${` stands for `${` itself.
///
/// The value of a variable is taken literally: it is neither parsed as YAML nor expanded again.
pub(crate) fn expand(text: &str, environment: &dyn Environment) -> Result<String, ConfigFault> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let (inside, after) = after.split_once('}').ok_or_else(|| {
            ConfigFault::new("`${` is not closed").help("write ${NAME}, or $${ for a literal ${")
        })?;
        expanded.push_str(&look_up(inside, environment)?);
        if expanded.len() > EXPANDED_MAX {
            return Err(ConfigFault::new(
                "longer than 64 KiB once its variables are replaced",
            ));
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Returns the names of the variables that `text` refers to, in order.
pub(crate) fn variables(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_escaped = false;
    for (nth, part) in text.split("${").enumerate() {
        if nth > 0 && !is_escaped {
            let inside = part.split('}').next().unwrap_or_default();
            let name = inside.split(":-").next().unwrap_or_default();
            names.push(name.to_owned());
        }
        is_escaped = part.ends_with('$');
    }
    names
}

/// Returns the value for the text between the braces.
fn look_up(inside: &str, environment: &dyn Environment) -> Result<String, ConfigFault> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !starts_well || !name.chars().all(is_name) {
        let name = ConfigFault::quote(name);
        return Err(
            ConfigFault::new(format!("{name} is not the name of a variable"))
                .help("write ${NAME} or ${NAME:-default}; $${ is a literal ${"),
        );
    }
    match (environment.variable(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) if !environment.looks_up() => {
            let message = format!(
                "the variable `{name}` is unknown: this environment has no \
                variables"
            );
            let help = format!("{LOOK_UP}, or a default: ${{{name}:-value}}");
            Err(ConfigFault::new(message).help(help))
        }
        (None, None) => Err(
            ConfigFault::new(format!("the variable `{name}` is not set"))
                .help(format!("set it, or add a default: ${{{name}:-value}}")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{expand, variables};

    fn run(text: &str) -> Result<String, String> {
        let environment = |name: &str| match name {
            "HOST" => Some("db".to_owned()),
            "EMPTY" => Some(String::new()),
            "LOOP" => Some("${LOOP}".to_owned()),
            _ => None,
        };
        expand(text, &environment).map_err(|fault| fault.message)
    }

    #[test]
    fn variables_are_replaced_once() {
        for (text, expected) in [
            ("plain", "plain"),
            ("/pay$", "/pay$"),
            ("${HOST}", "db"),
            ("redis://${HOST}:${PORT:-6379}/0", "redis://db:6379/0"),
            ("${EMPTY}", ""),
            ("${EMPTY:-other}", "other"),
            ("${UNSET:-}", ""),
            ("$${HOST}", "${HOST}"),
            ("${LOOP}", "${LOOP}"),
        ] {
            assert_eq!(run(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn variables_are_named() {
        let named = |text: &str| variables(text).join(" ");
        assert_eq!(named("plain $5"), "");
        assert_eq!(named("redis://${HOST}:${PORT:-6379}/$${X}"), "HOST PORT");
        assert_eq!(named("${A"), "A");
    }

    #[test]
    fn unresolvable_variables_are_rejected() {
        for text in ["${UNSET}", "${HOST", "${}", "${9}", "${A B}", "${HOST:+x}"] {
            assert!(run(text).is_err(), "{text}");
        }
    }
}
