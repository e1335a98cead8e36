//! `client.cost`: the cost of a request, taken from one of its headers.

use super::table::{COST, COST_MAX};
use crate::client::CostRule;
use crate::config::fault::ConfigFault;
use crate::config::reader::ConfigReader;
use crate::config::scalar::{header_name, whole};
use crate::config::table::FieldReader;

/// Reads `cost`.
pub(super) fn read(reader: &mut ConfigReader<'_>, client: &FieldReader<'_>) -> Option<CostRule> {
    let value = client.get("cost")?;
    let fields = reader.fields(&value, &COST)?;
    let header = reader.setting(&fields, "header", header_name);
    let max = reader.setting(&fields, "max", |text| whole(text, &(1..=COST_MAX)));
    let default = reader.setting(&fields, "default", |text| whole(text, &(1..=COST_MAX)));
    if let (Some(max), Some(default), Some(value)) = (max, default, fields.get("default"))
        && default > max
    {
        let fault = ConfigFault::new(format!(
            "the default of {default} is more than `max`, {max}"
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
