//! Headers and attributes: objects of strings.

use super::{NamedTexts, PAIRS_MAX};
use crate::wire::fault::WireFault;
use crate::wire::json::{JsonReader, JsonResult};
use std::borrow::Cow;

/// Reads headers: each a string, or a list of strings if the header was sent several times.
pub(super) fn headers<'a>(
    reader: &mut JsonReader<'a>,
    headers: &mut NamedTexts<'a>,
) -> JsonResult<()> {
    if reader.null()? {
        return Ok(());
    }
    reader.object(|reader, name| match reader.peek() {
        Some(b'"') => push(reader, headers, name.clone()),
        Some(b'[') => reader.list(|reader, _| push(reader, headers, name.clone())),
        Some(b'n') => reader.null().map(drop),
        _ => Err(reader.expected("a string or a list of strings")),
    })
}

/// Reads attributes: each a string, and none twice, because it would be ambiguous which one applies.
pub(super) fn attributes<'a>(
    reader: &mut JsonReader<'a>,
    attributes: &mut NamedTexts<'a>,
) -> JsonResult<()> {
    if reader.null()? {
        return Ok(());
    }
    reader.object(|reader, name| {
        if attributes.iter().any(|(other, _)| other == name) {
            return Err(WireFault::new(reader.at(), "duplicate attribute"));
        }
        if reader.null()? {
            return Ok(());
        }
        push(reader, attributes, name.clone())
    })
}

fn push<'a>(
    reader: &mut JsonReader<'a>,
    texts: &mut NamedTexts<'a>,
    name: Cow<'a, str>,
) -> JsonResult<()> {
    if texts.len() == PAIRS_MAX {
        let message = format!("more than {PAIRS_MAX} of them");
        return Err(WireFault::new(reader.at(), message));
    }
    texts.push((name, reader.string()?));
    Ok(())
}
