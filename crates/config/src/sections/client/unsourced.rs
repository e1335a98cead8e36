//! Identities that limits count by but that have no source in `client`.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::sections::key;
use crate::syntax::NodeKind;
use tidegate_policy::client::Client;
use tidegate_policy::limit::KeyPart;
use tidegate_policy::text::ConfigFault;

/// Warns about limits that count by an identity without a source in `client`, if other identities have
/// one. If none has, check requests carry the identities, and nothing is wrong. Limits that are rules
/// of `FluxGate` are the exception: their authors rely on headers that `FluxGate` reads.
pub(crate) fn warn_about_unsourced(
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
    let mut reported = Vec::new();
    for item in looked_at(policies, guards) {
        let part = item.node.as_text().and_then(|text| key::part(text).ok());
        let Some(part) = part.filter(|part| !client.knows(part)) else {
            continue;
        };
        // Warn once for each part.
        if !reported.contains(&part) {
            warn(reader, &item, &part);
            reported.push(part);
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
        parts.extend(field(&guard, "deny").or_else(|| field(&guard, "allow")));
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
        "`client` has no source of the {what}: only requests to /v1/check can send it"
    ));
    let help = format!("add one, for example `client.{setting}: {{ header: … }}`");
    reader.warn(value.spot(), fault.help(help));
}

/// Returns the value of the field `name` of this map.
pub(crate) fn field<'v>(value: &ConfigValue<'v>, name: &str) -> Option<ConfigValue<'v>> {
    let NodeKind::Map(entries) = &value.node.kind else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key.text == name)?;
    Some(value.child(&entry.key, &entry.value))
}

/// Returns the items of this list.
pub(crate) fn children<'v>(value: &ConfigValue<'v>) -> Vec<ConfigValue<'v>> {
    match &value.node.kind {
        NodeKind::List(items) => value.items(items),
        _ => Vec::new(),
    }
}
