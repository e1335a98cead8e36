//! `mode` of limits, guards and routes.

use crate::language::reader::ConfigReader;
use crate::language::table::FieldReader;
use crate::language::words::{FLAG, MODE};
use tidegate_core::LimitMode;
use tidegate_policy::text::ConfigFault;

/// The state that `mode` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModeSetting {
    /// False for `mode: off`.
    pub(crate) enabled: bool,
    /// The mode; enforce for `mode: off`.
    pub(crate) mode: LimitMode,
}

impl ModeSetting {
    fn new(word: Option<LimitMode>) -> Self {
        Self {
            enabled: word.is_some(),
            mode: word.unwrap_or_default(),
        }
    }
}

/// Reads `mode`. Default: enforce.
pub(crate) fn read(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> ModeSetting {
    let word = reader.setting(fields, "mode", |word| MODE.parse(word));
    ModeSetting::new(word.unwrap_or(Some(LimitMode::Enforce)))
}

/// Reads `mode` of a limit, or `enabled`, which is another way to write `mode: off`.
pub(crate) fn read_of_limit(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
) -> ModeSetting {
    let word = reader.setting(fields, "mode", |word| match word {
        "quota" => Err(ConfigFault::new("`quota` is not a mode").help("use `combine: any`")),
        word => MODE.parse(word),
    });
    let setting = ModeSetting::new(word.unwrap_or(Some(LimitMode::Enforce)));
    let enabled = reader.setting(fields, "enabled", |word| FLAG.parse(word));
    let (Some(enabled), Some(value)) = (enabled, fields.get("enabled")) else {
        return setting;
    };
    if word.is_some() && enabled != setting.enabled {
        let fault = ConfigFault::new("`enabled` and `mode` contradict each other");
        reader.error(
            value.key_spot(),
            fault.help("remove `enabled`, or write `mode: off` alone"),
        );
    }
    ModeSetting {
        enabled: enabled && setting.enabled,
        ..setting
    }
}
