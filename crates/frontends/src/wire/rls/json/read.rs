//! Conversion from JSON to a message.

use super::schema::{FieldType, MessageField, MessageSchema};
use crate::wire::fault::WireFault;
use crate::wire::json::{JsonReader, JsonResult};
use crate::wire::protobuf::write;

/// The largest whole number up to which a `double` represents every whole number.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Converts `text`, which has to be one `message`.
pub(super) fn message(text: &[u8], message: &'static MessageSchema) -> JsonResult<Vec<u8>> {
    let mut reader = JsonReader::new(text)?;
    let mut out = Vec::with_capacity(text.len());
    object(&mut reader, message, &mut out)?;
    reader.end()?;
    Ok(out)
}

fn object(
    reader: &mut JsonReader<'_>,
    message: &'static MessageSchema,
    out: &mut Vec<u8>,
) -> JsonResult<()> {
    let mut seen = 0_u32;
    reader.object(|reader, name| {
        let mut fields = message.fields.iter();
        let known = fields.find(|field| name == field.name || name == field.snake);
        let Some(field) = known else {
            return Err(WireFault::new(reader.at(), unknown(message)));
        };
        let bit = 1_u32.checked_shl(field.number).unwrap_or_default();
        if seen & bit != 0 {
            return Err(WireFault::new(reader.at(), "duplicate field"));
        }
        seen |= bit;
        if reader.null()? {
            return Ok(());
        }
        if field.is_list {
            return reader.list(|reader, _| value(reader, field, out));
        }
        value(reader, field, out)
    })
}

fn unknown(message: &MessageSchema) -> String {
    let known: Vec<_> = message.fields.iter().map(|field| field.name).collect();
    format!("unknown field; expected {}", known.join(", "))
}

fn value(reader: &mut JsonReader<'_>, field: &MessageField, out: &mut Vec<u8>) -> JsonResult<()> {
    let number = field.number;
    match field.kind {
        FieldType::Text => write::bytes(out, number, reader.string()?.as_bytes()),
        FieldType::U32 => write::number(out, number, whole(reader, u32::MAX.into())?),
        FieldType::WrappedU64 => {
            let value = whole(reader, u64::MAX)?;
            write::message(out, number, |out| write::number(out, 1, value));
        }
        FieldType::Bool => write::number(out, number, boolean(reader)?.into()),
        FieldType::Enum(names) => write::number(out, number, one_of(reader, names)?),
        FieldType::Message(message) => {
            let mut inner = Vec::new();
            object(reader, message, &mut inner)?;
            write::element(out, number, &inner);
        }
        // No request contains these.
        FieldType::Bytes | FieldType::Duration => reader.skip()?,
    }
    Ok(())
}

/// Reads a whole number, which may be written as text, as `1.0` or as `1e3`.
fn whole(reader: &mut JsonReader<'_>, max: u64) -> JsonResult<u64> {
    let is_text = reader.peek() == Some(b'"');
    let at = reader.at();
    let value = if is_text {
        reader.string()?.parse().ok()
    } else {
        let text = reader.number()?;
        text.parse().ok().or_else(|| rounded(text))
    };
    let value = value.filter(|value| *value <= max);
    value.ok_or_else(|| {
        let message = format!("expected a whole number from 0 to {max}");
        WireFault::new(at, message)
    })
}

/// Parses a number with a fraction or an exponent whose value is whole.
fn rounded(text: &str) -> Option<u64> {
    let value: f64 = text.parse().ok()?;
    let is_whole = value.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&value);
    // Formatted without a fraction it is digits alone.
    is_whole.then(|| format!("{value:.0}").parse().ok())?
}

fn boolean(reader: &mut JsonReader<'_>) -> JsonResult<bool> {
    let is_true = reader.peek() == Some(b't');
    if !is_true && reader.peek() != Some(b'f') {
        return Err(reader.expected("true or false"));
    }
    reader.skip().map(|()| is_true)
}

fn one_of(reader: &mut JsonReader<'_>, names: &[(u32, &str)]) -> JsonResult<u64> {
    if reader.peek() != Some(b'"') {
        return whole(reader, i32::MAX.unsigned_abs().into());
    }
    let at = reader.at();
    let name = reader.string()?;
    match names.iter().find(|(_, known)| *known == name) {
        Some((number, _)) => Ok((*number).into()),
        None => {
            let known: Vec<_> = names.iter().map(|(_, name)| *name).collect();
            let message = format!("expected one of {}", known.join(", "));
            Err(WireFault::new(at, message))
        }
    }
}
