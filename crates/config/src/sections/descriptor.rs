//! `descriptor` in `match`: patterns for the descriptors that a proxy sends, and the key parts that
//! read their entries.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::FieldReader;
use crate::syntax::NodeKind;
use crate::tables::ENTRIES_MAX;
use tidegate_policy::limit::{Condition, KeyPart, Limit};
use tidegate_policy::matching::{DescriptorPattern, EntryPattern};
use tidegate_policy::policy::Policy;
use tidegate_policy::text::ConfigFault;

/// The longest key of an entry, in bytes.
const NAME_MAX: usize = 256;

/// The longest value of an entry, or pattern for one, in bytes.
const VALUE_MAX: usize = 1024;

/// Reads the `descriptor` of a condition. A list matches exactly these entries; a map matches
/// descriptors that contain them.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
) -> Option<DescriptorPattern> {
    let value = fields.get("descriptor")?;
    match &value.node.kind {
        NodeKind::List(_) => {
            let items = reader.list(&value);
            refuse_too_many(reader, &value, items.len());
            let items = items.iter().take(ENTRIES_MAX);
            let entries = items.filter_map(|item| in_list(reader, item));
            Some(DescriptorPattern::Exactly(entries.collect()))
        }
        NodeKind::Map(_) => Some(DescriptorPattern::Holds(in_map(reader, &value))),
        NodeKind::Text(text) => {
            let shown = ConfigFault::quote(text);
            let fault =
                ConfigFault::new(format!("`descriptor` is {shown}; expected a list or a map"));
            let help = format!(
                "write [{text}] for descriptors with only this entry, {{ {text}: \"\" }} for \
                 descriptors that contain it"
            );
            reader.error(value.spot(), fault.help(help));
            None
        }
        _ => {
            reader.refuse_kind(&value, "a list of entries, or a map of them");
            None
        }
    }
}

/// Reads an entry of a list: its key, or a map from the key to a value.
fn in_list(reader: &mut ConfigReader<'_>, item: &ConfigValue<'_>) -> Option<EntryPattern> {
    match &item.node.kind {
        NodeKind::Map(entries) if entries.len() == 1 => in_map(reader, item).pop(),
        NodeKind::Map(_) => {
            let fault = ConfigFault::new("an entry of this list is one key and its value");
            let help = "write one item per entry, in order: [kind: sms, to]";
            reader.error(item.spot(), fault.help(help));
            None
        }
        NodeKind::List(_) => {
            let fault = ConfigFault::new("an entry of this list is a key, or a key and its value");
            reader.error(item.spot(), fault.help("for example [kind: sms, to]"));
            None
        }
        _ => {
            let name = reader.parse(item, name)?;
            warn_about_pair(reader, item, &name);
            Some(EntryPattern::new(name, ""))
        }
    }
}

/// Warns about `kind=sms`: it is a valid key, but was hardly intended as one.
fn warn_about_pair(reader: &mut ConfigReader<'_>, item: &ConfigValue<'_>, name: &str) {
    if let Some((key, value)) = name.split_once('=') {
        let fault = ConfigFault::new(format!(
            "{} is only a key; expected a key and a value",
            ConfigFault::quote(name)
        ));
        reader.warn(
            item.spot(),
            fault.help(format!("write {{ {key}: {value} }}")),
        );
    }
}

/// Reads the keys and values of a map.
fn in_map(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Vec<EntryPattern> {
    let NodeKind::Map(entries) = &value.node.kind else {
        return Vec::new();
    };
    if entries.is_empty() {
        let fault = ConfigFault::new("`descriptor` is an empty map");
        let help = "name an entry, for example { user: \"\" } for one with any value";
        reader.error(value.spot(), fault.help(help));
    }
    refuse_too_many(reader, value, entries.len());
    let mut read = Vec::new();
    for entry in entries.iter().take(ENTRIES_MAX) {
        let child = value.child(&entry.key, &entry.value);
        let name = match name(&entry.key.text) {
            Ok(name) => Some(name),
            Err(fault) => {
                reader.error(child.key_spot(), fault);
                None
            }
        };
        let value = match entry.value.kind {
            NodeKind::Null => {
                let fault = ConfigFault::new(format!("{} has no value", child.name()));
                let help = "write \"\" for any value; in a list, the key alone";
                reader.error(child.key_spot(), fault.help(help));
                None
            }
            NodeKind::List(_) | NodeKind::Map(_) => {
                let fault = ConfigFault::new(format!("{} has one value", child.name()));
                let help = "write one condition per value: one match is enough";
                reader.error(child.spot(), fault.help(help));
                None
            }
            _ => reader.text(&child),
        };
        let value = value.and_then(|text| reader.accept(&child, checked_value(text)));
        if let (Some(name), Some(value)) = (name, value) {
            read.push(EntryPattern::new(name, &value));
        }
    }
    read
}

fn refuse_too_many(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>, count: usize) {
    if count > ENTRIES_MAX {
        let fault = ConfigFault::new(format!(
            "a descriptor has at most {ENTRIES_MAX} entries; found {count}"
        ));
        reader.error(value.key_spot(), fault);
    }
}

/// Reads the key of an entry.
pub(crate) fn name(text: &str) -> Result<String, ConfigFault> {
    let quoted = ConfigFault::quote(text);
    if text.is_empty() || text.len() > NAME_MAX || text.chars().any(char::is_control) {
        let fault = ConfigFault::new(format!("{quoted} cannot be the key of an entry"));
        return Err(fault.help("use 1 to 256 printable characters, for example `remote_address`"));
    }
    if text.contains('*') {
        let fault = ConfigFault::new(format!("{quoted}: `*` is only allowed in values"));
        return Err(fault.help("write the exact key"));
    }
    Ok(text.to_owned())
}

fn checked_value(text: String) -> Result<String, ConfigFault> {
    if text.len() > VALUE_MAX || text.chars().any(char::is_control) {
        let fault = ConfigFault::new(format!("{} cannot be a value", ConfigFault::quote(&text)));
        return Err(fault.help("use up to 1024 printable characters"));
    }
    Ok(text)
}

/// Reads the text of a key part after `descriptor:`: an entry's key and, with `#`, its number among
/// entries with that key.
pub(crate) fn key_part(text: &str) -> Result<KeyPart, ConfigFault> {
    let numbered = text.rsplit_once('#');
    let numbered = numbered.filter(|(_, nth)| nth.bytes().all(|byte| byte.is_ascii_digit()));
    let (key, nth) = match numbered {
        Some((key, nth)) => (key, Some(nth)),
        None => (text, None),
    };
    let nth = match nth.map(|nth| (nth, nth.parse::<u8>())) {
        None => None,
        Some((_, Ok(number))) if (1..=ENTRIES_MAX).contains(&usize::from(number)) => Some(number),
        Some((nth, _)) => {
            let fault = ConfigFault::new(format!(
                "{} is not the number of an entry",
                ConfigFault::quote(nth)
            ));
            return Err(fault.help(format!(
                "count from 1 to {ENTRIES_MAX}: `descriptor:{key}#2`"
            )));
        }
    };
    let name = name(key)?;
    Ok(KeyPart::DescriptorEntry { name, nth })
}

/// Reports key parts that read a descriptor entry which `conditions` do not guarantee.
pub(crate) fn check_key(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    key: &[KeyPart],
    conditions: &[Condition],
) {
    let is_read = |part: &&KeyPart| part.is_of_descriptor();
    let Some(first) = key.iter().find(is_read) else {
        return;
    };
    if conditions.is_empty() || conditions.iter().any(|it| it.descriptor.is_none()) {
        let name = match first {
            KeyPart::DescriptorEntry { name, .. } => name,
            _ => "user",
        };
        let fault = ConfigFault::new("`key` uses a descriptor, but `match` selects none");
        let help = format!(
            "add one to every condition: `descriptor: [{name}]`, or `descriptor: {{ {name}: \"\" \
             }}` for descriptors that contain it"
        );
        reader.error(value.key_spot(), fault.help(help));
        return;
    }
    if key.contains(&KeyPart::Descriptor) && key.iter().filter(is_read).count() > 1 {
        let fault = ConfigFault::new("`descriptor` already includes all entries");
        reader.error(value.spot(), fault.help("remove it, or the single entries"));
    }
    let patterns = conditions.iter().filter_map(|it| it.descriptor.as_ref());
    let mut checked = patterns.flat_map(|pattern| key.iter().map(move |part| (part, pattern)));
    if let Some(fault) = checked.find_map(|(part, pattern)| unreadable(part, pattern)) {
        reader.error(value.spot(), fault);
    }
}

/// Explains why a descriptor that matches `pattern` never has this part of a key.
fn unreadable(part: &KeyPart, pattern: &DescriptorPattern) -> Option<ConfigFault> {
    let KeyPart::DescriptorEntry { name, nth } = part else {
        return None;
    };
    let quoted = ConfigFault::quote(name);
    let DescriptorPattern::Exactly(entries) = pattern else {
        let fault = ConfigFault::new("entries are numbered only if `match` has a list of entries");
        let help = format!("write `descriptor:{name}`, or a list of entries in `match`");
        return nth.map(|_| fault.help(help));
    };
    let there = entries.iter().filter(|entry| entry.name == *name).count();
    match (there, nth) {
        (0, _) => {
            let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
            let fault = ConfigFault::new(format!("no descriptor in `match` has an entry {quoted}"));
            Some(fault.help(format!("it has {}", names.join(", "))))
        }
        (2.., None) => {
            let fault =
                ConfigFault::new(format!("the descriptor in `match` has {there} of {quoted}"));
            Some(fault.help(format!(
                "write its number: `descriptor:{name}#1` is the first"
            )))
        }
        (_, Some(nth)) if usize::from(*nth) > there => {
            let fault = ConfigFault::new(format!(
                "the descriptor in `match` has {there} of {quoted}, but the key uses number {nth}"
            ));
            Some(fault.help("count from 1, in the order of the list"))
        }
        _ => None,
    }
}

/// Reports a limit with conditions for single descriptors as well as for whole requests. It would apply
/// once for each matching descriptor, and once more for the request.
pub(crate) fn refuse_mixed(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    conditions: &[Condition],
) {
    let is_exact = |it: &Condition| {
        it.descriptor
            .as_ref()
            .is_some_and(DescriptorPattern::is_exact)
    };
    let exact = conditions.iter().filter(|it| is_exact(it)).count();
    if exact > 0 && exact < conditions.len() {
        let fault = ConfigFault::new(
            "some conditions match single descriptors, others match whole requests",
        );
        let help = "write two limits: one with the lists of entries, one with the rest";
        reader.error(value.key_spot(), fault.help(help));
    }
}

/// Reports a limit with the name of the hidden override limit if the policy counts descriptors. Their
/// buckets could be confused.
pub(crate) fn refuse_override(
    reader: &mut ConfigReader<'_>,
    items: &[ConfigValue<'_>],
    limits: &[Option<Limit>],
) {
    let is_described = |limit: &Limit| {
        limit.counts_by_descriptor() || limit.conditions.iter().any(|it| it.descriptor.is_some())
    };
    if !limits.iter().flatten().any(is_described) {
        return;
    }
    for (item, limit) in items.iter().zip(limits) {
        let is_taken = |limit: &Limit| limit.name == Policy::override_name();
        let name = item.node.get("name");
        if let (true, Some(name)) = (limit.as_ref().is_some_and(is_taken), name) {
            let fault = ConfigFault::new("`override` is reserved for limits sent with descriptors");
            let spot = (name.place, format!("{}.name", item.path));
            reader.error(spot, fault.help("give this limit another name"));
        }
    }
}
