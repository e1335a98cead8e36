//! `block`: how long a limit blocks a client after the first refusal.

use super::duration;
use super::fault::ConfigFault;
use super::reader::ConfigReader;
use super::table::FieldReader;
use crate::limit::Band;

/// Reads `block`; `None` if the limit has none. `waits` is true if the limit queues requests, which
/// excludes a block.
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

/// Reads a length of time; `0` is no block.
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
