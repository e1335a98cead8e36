//! `template`: the names of a limit's keys in the open layout.

use super::key;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::syntax::NodeKind;
use tidegate_policy::limit::KeyPart;
use tidegate_policy::template::{Template, TemplatePiece};
use tidegate_policy::text::ConfigFault;

/// The longest template, in bytes: the name is sent with every request.
const TEMPLATE_MAX: usize = 128;

/// The placeholders, for messages.
const KNOWN: &str = "expected {policy}, {limit}, {key}, {subject}, {band}, or a part of the key: {ip}, {user}, {api-key}, {route}, {host}, {method}, {path}, {header:NAME}, {attr:NAME}, {descriptor}, {descriptor:NAME}";

/// Reads a template.
pub(crate) fn read(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Template> {
    if matches!(value.node.kind, NodeKind::Map(_)) {
        let fault = ConfigFault::new("`template` is a map; expected text")
            .help("quote it, because a brace starts a map in YAML: \"{subject}\"");
        reader.error(value.spot(), fault);
        return None;
    }
    reader.parse(value, parse)
}

pub(crate) fn parse(text: &str) -> Result<Template, ConfigFault> {
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
        "{} has an unmatched brace",
        ConfigFault::quote(text)
    ))
    .help("write {NAME} for a placeholder, {{ and }} for literal braces")
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
            let message = format!("{} has two adjacent placeholders", ConfigFault::quote(text));
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
    use tidegate_policy::template::KeyOf;

    #[test]
    fn an_invalid_template_reports_the_reason() {
        for (text, message) in [
            ("", "cannot be a template"),
            ("a b", "cannot be a template"),
            ("é", "cannot be a template"),
            ("a:{client}", "not a placeholder"),
            ("a:{global}", "not a placeholder"),
            ("a:{}", "not a placeholder"),
            ("a:{key", "an unmatched brace"),
            ("a:key}", "an unmatched brace"),
            ("a:{{{key}}", "an unmatched brace"),
            ("{limit}{key}", "two adjacent placeholders"),
            ("{limit}-{key}", "two adjacent placeholders"),
            ("{limit}.{{{key}.{band}}}", "two adjacent placeholders"),
        ] {
            let error = parse(text).unwrap_err().message;
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    fn render(template: &str, subject: &str) -> String {
        let of = KeyOf {
            policy: "api-limits",
            limit: "per-ip-rule",
            subject,
            band: "100-per-minute",
        };
        parse(template).unwrap().render(&of)
    }

    #[test]
    fn rendered_keys_match_other_systems() {
        for (template, subject, key) in [
            (
                "fluxgate:{policy}:{limit}:{key}:{band}",
                "ip:192.168.1.100",
                "fluxgate:api-limits:per-ip-rule:192.168.1.100:100-per-minute",
            ),
            (
                "fluxgate:{policy}:{limit}:{key}:{band}",
                "global",
                "fluxgate:api-limits:per-ip-rule:global:100-per-minute",
            ),
            (
                "ratelimit:{route}:{ip}",
                "ip:192.168.1.100,route:550e8400-e29b-41d4-a716-446655440000",
                "ratelimit:550e8400-e29b-41d4-a716-446655440000:192.168.1.100",
            ),
            ("{subject}", "ip:192.168.1.1", "ip:192.168.1.1"),
            ("token:{user}", "user:abc123", "token:abc123"),
            ("rl:{{{key}}}:{limit}", "user:a", "rl:{a}:per-ip-rule"),
            ("x:{header:X-Tenant}", "header.x-tenant:acme", "x:acme"),
            ("x:{attr:project}", "attr.project:a1", "x:a1"),
        ] {
            assert_eq!(render(template, subject), key, "{template}");
        }
    }

    #[test]
    fn a_user_cannot_forge_the_key_of_another_client() {
        assert_eq!(render("x:{key}", "user~ip:192.0.2.1"), "x:~ip:192.0.2.1");
        assert_eq!(render("x:{key}", "user~unknown"), "x:~unknown");
        assert_eq!(render("x:{key}", "user:~unknown"), "x:%7Eunknown");
        assert_eq!(render("x:{user}", "user:~unknown"), "x:%7Eunknown");
        assert_eq!(render("x:{user}", "user~unknown"), "x:~unknown");
        assert_eq!(render("x:{ip}", "ip:2001:db8::/64"), "x:2001:db8::/64");
    }
}
