//! Identities that limits count by but that have no source in `client`.

use crate::client::Client;
use crate::config::fault::ConfigFault;
use crate::config::key;
use crate::config::reader::{ConfigReader, ConfigValue};
use crate::config::syntax::NodeKind;
use crate::limit::KeyPart;

/// Warns about limits that count by an identity without a source in `client`, if other identities have
/// one. If none has, check requests carry the identities, and nothing is wrong. Limits that are rules
/// of `FluxGate` are the exception: their authors rely on headers that `FluxGate` reads.
pub(in crate::config) fn warn_about_unsourced(
    reader: &mut ConfigReader<'_>,
    policies: &ConfigValue<'_>,
    guards: Option<&ConfigValue<'_>>,
    client: &Client,
    has_fluxgate: bool,
) {
    let has_none = client.user.is_empty() && client.attributes.is_empty();
    if reader.has_errors() || (has_none && !has_fluxgate) {
        return;
    }
    let mut told = Vec::new();
    for item in looked_at(policies, guards) {
        let part = item.node.as_text().and_then(|text| key::part(text).ok());
        let Some(part) = part.filter(|part| !client.knows(part)) else {
            continue;
        };
        // Warn once for each part.
        if !told.contains(&part) {
            warn(reader, &item, &part);
            told.push(part);
        }
    }
}

/// Returns the identities that guards look up and that limits count by.
fn looked_at<'v>(
    policies: &ConfigValue<'v>,
    guards: Option<&ConfigValue<'v>>,
) -> Vec<ConfigValue<'v>> {
    let mut parts = Vec::new();
    for guard in guards.into_iter().flat_map(children) {
        parts.extend(field(&guard, "refuse").or_else(|| field(&guard, "exempt")));
    }
    for policy in children(policies) {
        for limit in field(&policy, "limits").iter().flat_map(children) {
            match field(&limit, "key") {
                Some(value) if matches!(value.node.kind, NodeKind::List(_)) => {
                    parts.extend(children(&value));
                }
                value => parts.extend(value),
            }
        }
    }
    parts
}

fn warn(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>, part: &KeyPart) {
    let (what, setting) = match part {
        KeyPart::Attr(name) if name == "consumer" || name == "token" => {
            (name.as_str(), name.clone())
        }
        KeyPart::Attr(name) => (name.as_str(), format!("attributes.{name}")),
        KeyPart::ApiKey => ("API key", "api_key".to_owned()),
        _ => ("user", "user".to_owned()),
    };
    let fault = ConfigFault::new(format!(
        "nothing in `client` tells the {what} of a request: only a question to /v1/check can"
    ));
    let help = format!("say where it comes from, for example `client.{setting}: {{ header: … }}`");
    reader.warn(value.spot(), fault.help(help));
}

/// Returns the value of the field `name` of this map.
pub(super) fn field<'v>(value: &ConfigValue<'v>, name: &str) -> Option<ConfigValue<'v>> {
    let NodeKind::Map(entries) = &value.node.kind else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key.text == name)?;
    Some(value.child(&entry.key, &entry.value))
}

/// Returns the items of this list.
pub(super) fn children<'v>(value: &ConfigValue<'v>) -> Vec<ConfigValue<'v>> {
    match &value.node.kind {
        NodeKind::List(items) => value.items(items),
        _ => Vec::new(),
    }
}
