//! Default rates of plans for identities that clients can invent.

use super::unsourced::{children, field};
use crate::language::reader::{ConfigReader, ConfigValue};
use tidegate_core::LimitMode;
use tidegate_policy::client::{Client, IdentitySource, Trust};
use tidegate_policy::limit::{KeyPart, Limit};
use tidegate_policy::plan::UnknownSubject;
use tidegate_policy::policy::{Evaluate, Policy};
use tidegate_policy::slot_group::part_as_written;
use tidegate_policy::text::ConfigFault;

/// Warns about limits that give a default rate to unknown subjects of a plan, if clients can invent
/// such subjects and no limit counts them by address. Each invented subject gets a full bucket.
pub(crate) fn warn_about_invented(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    policies: &[Policy],
    client: &Client,
) {
    // After an error, `policies` may lack policies that are written.
    if reader.has_errors() {
        return;
    }
    for (policy, value) in policies.iter().zip(children(value)) {
        // In a `first` policy one limit decides, so no other limit protects it.
        let is_first = policy.evaluate == Evaluate::First;
        if !is_first && policy.limits.iter().any(is_by_address) {
            continue;
        }
        let values = field(&value, "limits");
        let values = values.iter().flat_map(children);
        for (limit, value) in policy.limits.iter().zip(values) {
            if let Some(part) = invented(limit, client) {
                warn(reader, &value, part, is_first);
            }
        }
    }
}

/// Returns the identity that a client can invent to get the default rate of `limit`, if there is one.
fn invented<'l>(limit: &'l Limit, client: &Client) -> Option<&'l KeyPart> {
    let plan = limit.plan.as_ref()?;
    // If the key does not contain the subject, an invented subject opens no other bucket.
    let is_meant = plan.unknown == UnknownSubject::Band
        && is_enforced(limit)
        && limit.key.contains(&plan.subject)
        && is_chosen_by_client(client, &plan.subject);
    is_meant.then_some(&plan.subject)
}

/// Returns true if a limit is enforced and counts by address only.
fn is_by_address(limit: &Limit) -> bool {
    is_enforced(limit) && limit.key == [KeyPart::Ip] && !limit.is_unlimited()
}

fn is_enforced(limit: &Limit) -> bool {
    limit.enabled && limit.mode == LimitMode::Enforce
}

fn warn(reader: &mut ConfigReader<'_>, limit: &ConfigValue<'_>, part: &KeyPart, is_first: bool) {
    let rate = field(limit, "rate");
    let Some(value) = rate.and_then(|rate| field(&rate, "default")) else {
        return;
    };
    let fault = ConfigFault::new(format!(
        "clients can send any value of `{}`, and each value unknown to the plan gets its own \
         bucket at this rate",
        part_as_written(part)
    ));
    let help = if is_first {
        "write `default: refuse`; or `default: skip`, and a limit with `key: ip` after this one"
    } else {
        "add a limit with `key: ip` to this policy, or write `default: refuse`"
    };
    reader.warn(value.spot(), fault.help(help));
}

/// Returns true if a client can send any value as this part of a key. Verified tokens and headers
/// of trusted proxies are not the client's choice. A part without a source comes from callers of
/// `/v1/check`.
fn is_chosen_by_client(client: &Client, part: &KeyPart) -> bool {
    let sources = match part {
        KeyPart::Header(_) => return true,
        KeyPart::User => client.user.as_slice(),
        KeyPart::ApiKey => client.api_key.as_slice(),
        KeyPart::Attr(name) => {
            let mut attributes = client.attributes.iter();
            let found = attributes.find(|(known, _)| known == name);
            found.map_or(&[][..], |(_, sources)| sources)
        }
        _ => return false,
    };
    sources.iter().any(|source| match source {
        IdentitySource::Header { trust, .. } => *trust == Trust::Anyone,
        IdentitySource::Cookie(_) | IdentitySource::Query(_) | IdentitySource::Segment(_) => true,
        IdentitySource::Claim(_) => false,
    })
}
