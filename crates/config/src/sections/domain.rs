//! `domain`: the name of a policy in Envoy's rate limit service.

use crate::environment::expand;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::syntax::{NodeKind, TextSpan};
use std::collections::BTreeMap;
use tidegate_policy::text::ConfigFault;

/// The longest domain, in characters.
const DOMAIN_MAX: usize = 256;

/// Reads a domain.
pub(crate) fn parse(text: &str) -> Result<String, ConfigFault> {
    let is_long = text.chars().nth(DOMAIN_MAX).is_some();
    if text.is_empty() || is_long || text.chars().any(char::is_control) {
        let fault = ConfigFault::new(format!("{} cannot be a domain", ConfigFault::quote(text)));
        return Err(fault.help("use 1 to 256 printable characters, as Envoy's `domain` has them"));
    }
    Ok(text.to_owned())
}

/// Reports domains that two policies share. A policy without a domain uses its name.
pub(crate) fn refuse_shared(reader: &mut ConfigReader<'_>, policies: &[ConfigValue<'_>]) {
    let mut seen: BTreeMap<String, TextSpan> = BTreeMap::new();
    let mut later = Vec::new();
    for policy in policies {
        match (field(policy, "domain"), field(policy, "name")) {
            (Some(domain), _) => later.push(domain),
            // Duplicate names are already reported.
            (None, Some(name)) => {
                if let Some(text) = text(reader, &name) {
                    seen.insert(text, name.node.place);
                }
            }
            (None, None) => {}
        }
    }
    for domain in later {
        let Some(text) = text(reader, &domain) else {
            continue;
        };
        if let Some(place) = seen.get(&text) {
            let message = format!("two policies have the domain {}", ConfigFault::quote(&text));
            let known = "the default domain is the policy's name";
            let help = match reader.line_of(*place) {
                Some(line) => format!("the other is on {line}; {known}"),
                None => known.to_owned(),
            };
            reader.error(domain.spot(), ConfigFault::new(message).help(help));
        } else {
            seen.insert(text, domain.node.place);
        }
    }
}

/// Returns the text of a value that is already read, with its variables replaced.
fn text(reader: &ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<String> {
    let environment = reader.environment_at(value.node.place);
    let text = expand(value.node.as_text()?, environment).ok()?;
    Some(text.trim().to_owned())
}

/// Returns the value of the field `name` of this map.
fn field<'v>(value: &ConfigValue<'v>, name: &str) -> Option<ConfigValue<'v>> {
    let NodeKind::Map(entries) = &value.node.kind else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key.text == name)?;
    Some(value.child(&entry.key, &entry.value))
}
