//! From JSON to the message.

use super::schema::{Field, Kind, Message};
use crate::wire::fault::Fault;
use crate::wire::json::{Reader, Result};
use crate::wire::protobuf::write;

/// The largest whole number up to which a `double` has all others.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads `text`, which has to be one `message`.
pub(super) fn message(text: &[u8], message: &'static Message) -> Result<Vec<u8>> {
    let mut reader = Reader::new(text)?;
    let mut out = Vec::with_capacity(text.len());
    object(&mut reader, message, &mut out)?;
    reader.end()?;
    Ok(out)
}

fn object(reader: &mut Reader<'_>, message: &'static Message, out: &mut Vec<u8>) -> Result<()> {
    let mut seen = 0_u32;
    reader.object(|reader, name| {
        let mut fields = message.fields.iter();
        let known = fields.find(|field| name == field.name || name == field.snake);
        let Some(field) = known else {
            return Err(Fault::new(reader.at(), unknown(message)));
        };
        let bit = 1_u32.checked_shl(field.number).unwrap_or_default();
        if seen & bit != 0 {
            return Err(Fault::new(reader.at(), "this field is there twice"));
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

fn unknown(message: &Message) -> String {
    let known: Vec<_> = message.fields.iter().map(|field| field.name).collect();
    format!("there is no such field; there are {}", known.join(", "))
}

fn value(reader: &mut Reader<'_>, field: &Field, out: &mut Vec<u8>) -> Result<()> {
    let number = field.number;
    match field.kind {
        Kind::Text => write::bytes(out, number, reader.string()?.as_bytes()),
        Kind::U32 => write::number(out, number, whole(reader, u32::MAX.into())?),
        Kind::WrappedU64 => {
            let value = whole(reader, u64::MAX)?;
            write::message(out, number, |out| write::number(out, 1, value));
        }
        Kind::Bool => write::number(out, number, boolean(reader)?.into()),
        Kind::Enum(names) => write::number(out, number, one_of(reader, names)?),
        Kind::Message(message) => {
            let mut inner = Vec::new();
            object(reader, message, &mut inner)?;
            write::element(out, number, &inner);
        }
        // Nothing that is asked holds these.
        Kind::Bytes | Kind::Duration => reader.skip()?,
    }
    Ok(())
}

/// A whole number, which may be written as text, as `1.0` or as `1e3`.
fn whole(reader: &mut Reader<'_>, max: u64) -> Result<u64> {
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
        Fault::new(at, message)
    })
}

/// A number with a fraction or an exponent that is whole all the same.
fn rounded(text: &str) -> Option<u64> {
    let value: f64 = text.parse().ok()?;
    let is_whole = value.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&value);
    // Written out it is digits alone.
    is_whole.then(|| format!("{value:.0}").parse().ok())?
}

fn boolean(reader: &mut Reader<'_>) -> Result<bool> {
    let is_true = reader.peek() == Some(b't');
    if !is_true && reader.peek() != Some(b'f') {
        return Err(reader.expected("true or false"));
    }
    reader.skip().map(|()| is_true)
}

fn one_of(reader: &mut Reader<'_>, names: &[(u32, &str)]) -> Result<u64> {
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
            Err(Fault::new(at, message))
        }
    }
}
