//! A band: a capacity, and a window in seconds.

use super::number::positive;
use crate::document::ImportedFile;
use crate::map::{ImportMap, ImportMapFields};
use tidegate_config::reading::ConfigValue;
use tidegate_core::Algorithm;
use tidegate_policy::band::Band;
use tidegate_policy::text::ConfigFault;

static BAND: ImportMapFields = ImportMapFields {
    what: "a band",
    fields: &["windowSeconds", "capacity", "label"],
};

/// A band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FluxgateBand {
    pub(super) capacity: u64,
    pub(super) seconds: u64,
    pub(super) label: Option<String>,
}

/// Reads a band; `None` after an error.
pub(super) fn read(
    document: &mut ImportedFile<'_>,
    value: &ConfigValue<'_>,
) -> Option<FluxgateBand> {
    let map = ImportMap::read(document, value, &BAND)?;
    let seconds = map.required(document, "windowSeconds", &BAND);
    let seconds = seconds.and_then(|value| positive(document, &value));
    let capacity = map.required(document, "capacity", &BAND);
    let capacity = capacity.and_then(|value| positive(document, &value));
    let band = FluxgateBand {
        label: map.text(document, "label").map(str::to_owned),
        seconds: seconds?,
        capacity: capacity?,
    };
    band.check(document, value)
}

impl FluxgateBand {
    /// Returns the band if Tidegate can count it, otherwise reports an error.
    pub(super) fn check(
        self,
        document: &mut ImportedFile<'_>,
        value: &ConfigValue<'_>,
    ) -> Option<Self> {
        match Band::parse(&self.rate(), Algorithm::TokenBucket) {
            Ok(_) => Some(self),
            Err(why) => {
                document.error(value.spot(), ConfigFault::new(why));
                None
            }
        }
    }

    /// Returns the rate in the syntax of the configuration. The whole capacity may be used at once, and
    /// refills evenly.
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
