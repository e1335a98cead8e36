//! `client.cost`: the cost of a request, taken from its headers.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::{header_name, whole};
use crate::language::table::FieldReader;
use crate::syntax::NodeKind;
use crate::tables::client::{COST, COST_MAX};
use tidegate_policy::client::{CostRule, CostRules};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::unit::{UNITS_MAX, Unit};

/// Reads `cost`: one header, or one for each unit.
pub(super) fn read(reader: &mut ConfigReader<'_>, client: &FieldReader<'_>) -> CostRules {
    let Some(value) = client.get("cost") else {
        return CostRules::None;
    };
    match &value.node.kind {
        NodeKind::Map(entries)
            if entries
                .iter()
                .any(|entry| matches!(entry.value.kind, NodeKind::Map(_))) =>
        {
            read_units(reader, &value)
        }
        _ => rule(reader, &value).map_or(CostRules::None, CostRules::Number),
    }
}

/// Reads the headers of each unit.
fn read_units(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> CostRules {
    let mut rules = Vec::new();
    let NodeKind::Map(entries) = &value.node.kind else {
        return CostRules::None;
    };
    if entries.len() > UNITS_MAX {
        let fault = ConfigFault::new(format!("there are at most {UNITS_MAX} units"));
        reader.error(value.key_spot(), fault);
        return CostRules::None;
    }
    for entry in entries {
        let child = value.child(&entry.key, &entry.value);
        let unit = Unit::parse(&entry.key.text);
        let unit = unit.map_err(|fault| reader.error(child.key_spot(), fault));
        let rule = rule(reader, &child);
        rules.extend(unit.ok().zip(rule));
    }
    CostRules::Units(rules)
}

/// Reads one header.
fn rule(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<CostRule> {
    let fields = reader.fields(value, &COST)?;
    let header = reader.setting(&fields, "header", header_name);
    let max = reader.setting(&fields, "max", |text| whole(text, &(1..=COST_MAX)));
    let default = reader.setting(&fields, "default", |text| whole(text, &(1..=COST_MAX)));
    if let (Some(max), Some(default), Some(value)) = (max, default, fields.get("default"))
        && default > max
    {
        let fault = ConfigFault::new(format!(
            "`default` ({default}) is greater than `max` ({max})"
        ));
        reader.error(
            value.spot(),
            fault.help("raise `max`, or lower the default"),
        );
    }
    Some(CostRule {
        header: header?,
        max: max?,
        default: default.unwrap_or(1),
    })
}
