//! Headers and attributes: objects of strings.

use super::{PAIRS_MAX, Texts};
use crate::wire::fault::Fault;
use crate::wire::json::{Reader, Result};
use std::borrow::Cow;

/// Reads headers: each a string, or a list of them where it was sent several times.
pub(super) fn headers<'a>(reader: &mut Reader<'a>, headers: &mut Texts<'a>) -> Result<()> {
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

/// Reads attributes: each a string, and none twice, for then it would be anybody's guess which
/// one counts.
pub(super) fn attributes<'a>(reader: &mut Reader<'a>, attributes: &mut Texts<'a>) -> Result<()> {
    if reader.null()? {
        return Ok(());
    }
    reader.object(|reader, name| {
        if attributes.iter().any(|(other, _)| other == name) {
            return Err(Fault::new(reader.at(), "this attribute is there twice"));
        }
        if reader.null()? {
            return Ok(());
        }
        push(reader, attributes, name.clone())
    })
}

fn push<'a>(reader: &mut Reader<'a>, texts: &mut Texts<'a>, name: Cow<'a, str>) -> Result<()> {
    if texts.len() == PAIRS_MAX {
        let message = format!("more than {PAIRS_MAX} of them");
        return Err(Fault::new(reader.at(), message));
    }
    texts.push((name, reader.string()?));
    Ok(())
}
