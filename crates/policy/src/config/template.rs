//! `template`: the names of a limit's keys in the open layout.

use super::fault::ConfigFault;
use super::key;
use super::reader::{ConfigReader, ConfigValue};
use super::syntax::NodeKind;
use crate::limit::KeyPart;
use crate::template::{Template, TemplatePiece};

/// The longest template, in bytes: the name is sent with every request.
const TEMPLATE_MAX: usize = 128;

/// The placeholders, for messages.
const KNOWN: &str = "expected {policy}, {limit}, {key}, {subject}, {band}, or a part of the key: {ip}, {user}, {api-key}, {route}, {host}, {method}, {path}, {header:NAME}, {attr:NAME}, {descriptor}, {descriptor:NAME}";

/// Reads a template on its own, outside a configuration.
pub(crate) fn parse_alone(text: &str) -> Result<Template, String> {
    parse(text).map_err(ConfigFault::into_sentence)
}

/// Reads a template.
pub(super) fn read(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Template> {
    if matches!(value.node.kind, NodeKind::Map(_)) {
        let fault = ConfigFault::new("`template` is a map; expected text")
            .help("quote it, for YAML takes a brace for a map: \"{subject}\"");
        reader.error(value.spot(), fault);
        return None;
    }
    reader.parse(value, parse)
}

pub(super) fn parse(text: &str) -> Result<Template, ConfigFault> {
    let belongs = |c: char| c.is_ascii_graphic();
    if text.is_empty() || text.len() > TEMPLATE_MAX || !text.chars().all(belongs) {
        let message = format!("{} cannot be a template", ConfigFault::quote(text));
        return Err(ConfigFault::new(message).help(format!(
            "use up to {TEMPLATE_MAX} visible ASCII characters, for example `ratelimit:{{limit}}:{{key}}`"
        )));
    }
    let pieces = pieces(text)?;
    check_separators(text, &pieces)?;
    Ok(Template::new(text.to_owned(), pieces))
}

fn pieces(text: &str) -> Result<Vec<TemplatePiece>, ConfigFault> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = doubled(rest) {
            plain.push(first);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let (inside, after) = after.split_once('}').ok_or_else(|| unbalanced(text))?;
            if !plain.is_empty() {
                pieces.push(TemplatePiece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(placeholder(inside)?);
            rest = after;
        } else if first == '}' {
            return Err(unbalanced(text));
        } else {
            plain.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    if !plain.is_empty() {
        pieces.push(TemplatePiece::Text(plain));
    }
    Ok(pieces)
}

/// Returns the text after a doubled brace, which stands for a literal brace.
fn doubled(text: &str) -> Option<&str> {
    text.strip_prefix("{{").or_else(|| text.strip_prefix("}}"))
}

fn unbalanced(text: &str) -> ConfigFault {
    ConfigFault::new(format!(
        "{} has a brace without its partner",
        ConfigFault::quote(text)
    ))
    .help("write {NAME} for a placeholder, {{ and }} for braces themselves")
}

fn placeholder(inside: &str) -> Result<TemplatePiece, ConfigFault> {
    Ok(match inside {
        "policy" => TemplatePiece::Policy,
        "limit" => TemplatePiece::Limit,
        "band" => TemplatePiece::Band,
        "subject" => TemplatePiece::Subject,
        "key" => TemplatePiece::Key,
        name => match key::part(name) {
            Ok(KeyPart::Global) | Err(_) => {
                let name = ConfigFault::quote(&format!("{{{name}}}"));
                return Err(ConfigFault::new(format!("{name} is not a placeholder")).help(KNOWN));
            }
            Ok(part) => TemplatePiece::part(part),
        },
    })
}

/// Checks that two placeholders have a character between them that neither can contain. Otherwise `a`
/// and `bc` would share a key with `ab` and `c`.
fn check_separators(text: &str, pieces: &[TemplatePiece]) -> Result<(), ConfigFault> {
    let mut is_apart = true;
    for piece in pieces {
        if let TemplatePiece::Text(text) = piece {
            is_apart |= text.chars().any(separates);
        } else if is_apart {
            is_apart = false;
        } else {
            let message = format!(
                "{} has two placeholders with nothing between them that tells where one ends",
                ConfigFault::quote(text)
            );
            return Err(ConfigFault::new(message).help("put a `:` between them"));
        }
    }
    Ok(())
}

/// Returns true if no name and no value contains this character.
fn separates(c: char) -> bool {
    !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-' | '~' | '%' | '#')
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn what_is_not_a_template_says_why() {
        for (text, message) in [
            ("", "cannot be a template"),
            ("a b", "cannot be a template"),
            ("é", "cannot be a template"),
            ("a:{client}", "not a placeholder"),
            ("a:{global}", "not a placeholder"),
            ("a:{}", "not a placeholder"),
            ("a:{key", "without its partner"),
            ("a:key}", "without its partner"),
            ("a:{{{key}}", "without its partner"),
            ("{limit}{key}", "nothing between"),
            ("{limit}-{key}", "nothing between"),
            ("{limit}.{{{key}.{band}}}", "nothing between"),
        ] {
            let said = parse(text).unwrap_err().message;
            assert!(said.contains(message), "{text}: {said}");
        }
    }
}
