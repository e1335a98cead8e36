//! A cost, as JSON: a whole number, or a map of units to whole numbers.

use super::fault::WireFault;
use super::json::{JsonReader, JsonResult};
use super::schema::whole;
use serde_json::{Value, json};
use smallvec::SmallVec;
use std::borrow::Cow;
use tidegate::CostMap;
use tidegate_policy::unit::UNITS_MAX;

/// Reads a number or a map.
pub(crate) fn read<'a>(reader: &mut JsonReader<'a>) -> JsonResult<CostMap<'a>> {
    if reader.peek() != Some(b'{') {
        return reader.whole().map(CostMap::Number);
    }
    let mut units = SmallVec::<[(Cow<'a, str>, u64); 4]>::new();
    reader.object(|reader, unit| {
        if units.iter().any(|(known, _)| known == unit) {
            return Err(WireFault::new(reader.at(), "duplicate unit"));
        }
        if units.len() == UNITS_MAX {
            let message = format!("more than {UNITS_MAX} units");
            return Err(WireFault::new(reader.at(), message));
        }
        let amount = reader.whole()?;
        units.push((unit.clone(), amount));
        Ok(())
    })?;
    Ok(CostMap::Units(units))
}

/// Returns the schema of a number or a map.
pub(crate) fn schema() -> Value {
    schema_of(&["integer", "object"])
}

/// Returns the schema of a number, a map, or `null`.
pub(crate) fn schema_or_null() -> Value {
    schema_of(&["integer", "object", "null"])
}

/// Returns the schema of hits: like a cost, but a number may be negative.
pub(crate) fn hits_schema() -> Value {
    let mut schema = schema_or_null();
    for bound in ["minimum", "maximum"] {
        schema.as_object_mut().map(|schema| schema.remove(bound));
    }
    schema
}

fn schema_of(types: &[&str]) -> Value {
    json!({
        "type": types,
        "minimum": 0,
        "maximum": u64::MAX,
        "maxProperties": UNITS_MAX,
        "additionalProperties": whole(0),
    })
}
