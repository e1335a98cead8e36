//! Lists: how many items they may have, and names that must differ.

use super::reader::{ConfigReader, ConfigValue};
use super::scalar::name;
use crate::syntax::TextSpan;
use std::collections::BTreeMap;
use tidegate_policy::text::ConfigFault;

/// Reports a list with more than `most` items.
pub(crate) fn refuse_too_many(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    count: usize,
    most: usize,
) {
    if count > most {
        let fault = ConfigFault::new(format!(
            "{} has {count} items; at most {most} are supported",
            value.name()
        ));
        reader.error(value.key_spot(), fault);
    }
}

/// Names that must differ, with the position of each.
#[derive(Debug)]
pub(crate) struct DistinctNames {
    what: &'static str,
    seen: BTreeMap<String, TextSpan>,
}

impl DistinctNames {
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            seen: BTreeMap::new(),
        }
    }

    /// Reads a name, and reports it if it was read before.
    pub(crate) fn read(
        &mut self,
        reader: &mut ConfigReader<'_>,
        value: &ConfigValue<'_>,
    ) -> Option<String> {
        let name = reader.parse(value, name)?;
        if let Some(first) = self.seen.get(&name) {
            let message = format!("duplicate name: two {} are named `{name}`", self.what);
            let help = match reader.line_of(*first) {
                Some(line) => format!("the first is on {line}; rename one of them"),
                None => "rename one of them".to_owned(),
            };
            reader.error(value.spot(), ConfigFault::new(message).help(help));
            return None;
        }
        self.seen.insert(name.clone(), value.node.place);
        Some(name)
    }
}
