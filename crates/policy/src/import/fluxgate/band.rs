//! One band: how much, in how many seconds.

use super::number::positive;
use crate::config::{Fault, Value, parse_band};
use crate::import::document::Document;
use crate::import::map::{Known, Map};
use tidegate_core::Algorithm;

static BAND: Known = Known {
    what: "a band",
    fields: &["windowSeconds", "capacity", "label"],
};

/// A band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Band {
    pub(super) capacity: u64,
    pub(super) seconds: u64,
    pub(super) label: Option<String>,
}

/// Reads a band; `None` where something is wrong.
pub(super) fn read(document: &mut Document<'_>, value: &Value<'_>) -> Option<Band> {
    let map = Map::read(document, value, &BAND)?;
    let seconds = map.required(document, "windowSeconds", &BAND);
    let seconds = seconds.and_then(|value| positive(document, &value));
    let capacity = map.required(document, "capacity", &BAND);
    let capacity = capacity.and_then(|value| positive(document, &value));
    let band = Band {
        label: map.text(document, "label").map(str::to_owned),
        seconds: seconds?,
        capacity: capacity?,
    };
    band.check(document, value)
}

impl Band {
    /// The band, if the language can count it.
    pub(super) fn check(self, document: &mut Document<'_>, value: &Value<'_>) -> Option<Self> {
        match parse_band(&self.rate(), Algorithm::TokenBucket, None) {
            Ok(_) => Some(self),
            Err(why) => {
                document.error(value.spot(), Fault::new(why));
                None
            }
        }
    }

    /// As the language writes it: as much as fills the window may come at once, and comes back evenly.
    pub(super) fn rate(&self) -> String {
        let capacity = self.capacity;
        match self.seconds {
            1 => format!("{capacity}/s"),
            60 => format!("{capacity}/min"),
            3_600 => format!("{capacity}/h"),
            86_400 => format!("{capacity}/day"),
            seconds => format!("{capacity}/{seconds}s"),
        }
    }
}
