//! Reads a file of variables. Messages show only names: any value may be a secret.

use crate::SourceFile;
use crate::document::{ImportErrors, ImportedFile};
use crate::note::ImportNotes;
use tidegate_policy::text::ConfigFault;

/// The maximum number of lines that are read.
const LINES_MAX: usize = 10_000;

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImportedVariable {
    pub(super) name: String,
    /// The value, without the quotes around it.
    pub(super) value: String,
    pub(super) line: usize,
}

/// Reads a file. If a variable is set twice, the later value applies.
pub(super) fn read(
    file: &SourceFile,
    notes: &mut ImportNotes,
    wrong: &mut ImportErrors,
) -> Vec<ImportedVariable> {
    let mut variables: Vec<ImportedVariable> = Vec::new();
    let text = file.text.trim_start_matches('\u{feff}');
    for (at, written) in text.lines().take(LINES_MAX).enumerate() {
        let number = at.saturating_add(1);
        let line = written.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match variable(line, number) {
            Ok(variable) => {
                let twin = variables.iter().position(|it| it.name == variable.name);
                if let Some(twin) = twin {
                    let first = variables.remove(twin);
                    let text = format!("duplicate `{}`: line {number} is used", first.name);
                    notes.add((&file.name, first.line), text);
                }
                variables.push(variable);
            }
            Err(fault) => add_error(file, number, fault, wrong),
        }
    }
    if text.lines().nth(LINES_MAX).is_some() {
        let fault = ConfigFault::new(format!("there are more than {LINES_MAX} lines"));
        let fault = fault.help("use a file with only the variables of the collector");
        add_error(file, LINES_MAX.saturating_add(1), fault, wrong);
    }
    variables
}

/// Adds an error in a line to `wrong`, without quoting the line.
pub(super) fn add_error(
    file: &SourceFile,
    line: usize,
    fault: ConfigFault,
    wrong: &mut ImportErrors,
) {
    let unseen = SourceFile {
        name: file.name.clone(),
        text: String::new(),
    };
    ImportedFile::add_error(&unseen, line, fault, wrong);
}

fn variable(line: &str, number: usize) -> Result<ImportedVariable, ConfigFault> {
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let help = "write NAME=value";
    let Some((name, value)) = line.split_once('=') else {
        return Err(ConfigFault::new("this line has no `=`").help(help));
    };
    let name = name.trim_end();
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !starts_well || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(ConfigFault::new("the text before `=` is not a variable name").help(help));
    }
    let value = unquoted(value.trim()).ok_or_else(|| {
        ConfigFault::new(format!(
            "the quotes around the value of `{name}` are not closed"
        ))
    })?;
    Ok(ImportedVariable {
        name: name.to_owned(),
        value,
        line: number,
    })
}

/// Returns the value without quotes and without a trailing comment; `None` if a quote is not closed.
fn unquoted(value: &str) -> Option<String> {
    for quote in ['"', '\''] {
        let Some(inside) = value.strip_prefix(quote) else {
            continue;
        };
        let (inside, _) = inside.split_once(quote)?;
        return Some(inside.to_owned());
    }
    if value.starts_with('#') {
        return Some(String::new());
    }
    let end = value.find(" #").or_else(|| value.find("\t#"));
    let value = end.and_then(|end| value.get(..end)).unwrap_or(value);
    Some(value.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, variable};
    use crate::{SourceFile, collector};

    #[test]
    fn an_env_line_is_a_name_and_a_value() {
        for (line, name, value) in [
            ("A=b", "A", "b"),
            ("export A=b", "A", "b"),
            ("A = b c ", "A", "b c"),
            ("A=", "A", ""),
            ("A=\"b # c\" # d", "A", "b # c"),
            ("A='b'", "A", "b"),
            ("A=b # c", "A", "b"),
            ("A=b#c", "A", "b#c"),
            ("A= # nothing", "A", ""),
            ("A=redis://:p=w@h", "A", "redis://:p=w@h"),
        ] {
            let read = variable(line, 1).unwrap();
            assert_eq!((read.name.as_str(), read.value.as_str()), (name, value));
        }
        for line in ["A", "1A=b", "A B=c", "=b", "A=\"b"] {
            assert!(variable(line, 1).is_err(), "{line}");
        }
    }

    #[test]
    fn lines_beyond_the_bound_were_silently_skipped() {
        let file = |blank: usize| SourceFile {
            name: ".env".to_owned(),
            text: format!("{}BLACKLIST_THRESHOLD=5000\n", "\n".repeat(blank)),
        };
        let imported = collector(&file(LINES_MAX - 1)).expect("it is read to the end");
        assert!(imported.to_yaml().contains("threshold: 5000"));
        let error = collector(&file(LINES_MAX)).expect_err("it is too long");
        let error = error.to_string();
        assert!(error.contains("more than 10000 lines"), "{error}");
    }
}
