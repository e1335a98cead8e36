//! `replaces`: limits that do not apply if another limit does.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::syntax::NodeKind;
use tidegate_policy::limit::Limit;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::closest;

/// Resolves the names under `replaces` of each limit in `items` to indexes of `limits`. Both are in the
/// order written. Limits that could not be read are `None`.
pub(crate) fn resolve(
    reader: &mut ConfigReader<'_>,
    items: &[ConfigValue<'_>],
    limits: &mut [Option<Limit>],
) {
    for (item, number) in items.iter().zip(0..) {
        let NodeKind::Map(entries) = &item.node.kind else {
            continue;
        };
        let Some(entry) = entries.iter().find(|entry| entry.key.text == "replaces") else {
            continue;
        };
        let value = item.child(&entry.key, &entry.value);
        let mut replaced = Vec::new();
        for name in reader.one_or_many(&value) {
            if matches!(name.node.kind, NodeKind::Map(_) | NodeKind::List(_)) {
                let fault = ConfigFault::new("a limit is replaced by its name");
                reader.error(name.spot(), fault.help("write the name alone: [small]"));
                continue;
            }
            let Some(text) = reader.text(&name) else {
                continue;
            };
            let found = named(limits, text.trim());
            match check(limits, number, &replaced, found, text.trim()) {
                Ok(found) => replaced.push(found),
                Err(fault) => reader.error(name.spot(), fault),
            }
        }
        if let Some(Some(limit)) = limits.get_mut(number) {
            limit.replaces = replaced;
        }
    }
}

fn named(limits: &[Option<Limit>], name: &str) -> Option<usize> {
    let mut limits = limits.iter();
    limits.position(|limit| limit.as_ref().is_some_and(|limit| limit.name == name))
}

/// Checks that the limit with index `number` may replace the limit `found`.
fn check(
    limits: &[Option<Limit>],
    number: usize,
    replaced: &[usize],
    found: Option<usize>,
    name: &str,
) -> Result<usize, ConfigFault> {
    let quoted = ConfigFault::quote(name);
    match found {
        Some(found) if found == number => Err(ConfigFault::new("a limit cannot replace itself")
            .help("name another limit of this policy, or remove `replaces`")),
        Some(found) if replaced.contains(&found) => {
            Err(ConfigFault::new(format!("duplicate {quoted}")).help("write it once"))
        }
        Some(found) => Ok(found),
        None => {
            let others = limits
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number);
            let names = others.filter_map(|(_, limit)| Some(limit.as_ref()?.name.as_str()));
            let help = match closest(name, names) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "name another limit of the same policy".to_owned(),
            };
            Err(ConfigFault::new(format!("this policy has no limit {quoted}")).help(help))
        }
    }
}
