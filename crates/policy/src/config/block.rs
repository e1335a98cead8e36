//! `block`: for how long the first refusal closes a limit to whoever was refused.

use super::duration;
use super::fault::ConfigFault;
use super::reader::ConfigReader;
use super::table::FieldReader;
use crate::limit::Band;

/// Reads the length of the block of a limit for which requests may wait; `None` if it has none.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    waits: bool,
) -> Option<Band> {
    let value = fields.get("block")?;
    let block = reader.parse(&value, length)??;
    if waits {
        let fault =
            ConfigFault::new("a request that waits comes again by itself: it cannot be blocked")
                .help("remove `block`, or `on_refusal: wait`");
        reader.error(value.key_spot(), fault);
    }
    Some(block)
}

/// A length of time; `0` is none at all.
fn length(text: &str) -> Result<Option<Band>, ConfigFault> {
    if text.trim() == "0" {
        return Ok(None);
    }
    match duration::parse(text)? {
        0 => Ok(None),
        length_us => Band::block(text.trim(), length_us)
            .map(Some)
            .map_err(|message| {
                ConfigFault::new(message).help("for example `5m`; 0 is no block at all")
            }),
    }
}
