//! `block`: how long a limit blocks a client after the first refusal.

use crate::language::reader::ConfigReader;
use crate::language::table::FieldReader;
use tidegate_policy::limit::Band;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// Reads `block`; `None` if the limit has none. `waits` is true if the limit queues requests, which
/// excludes a block.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    waits: bool,
) -> Option<Band> {
    let value = fields.get("block")?;
    let block = reader.parse(&value, length)??;
    if waits {
        let fault = ConfigFault::new(
            "`block` conflicts with `on_refusal: wait`: a queued request is not \
                rejected",
        )
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
                ConfigFault::new(message).help("for example `5m`; `0` disables blocking")
            }),
    }
}
