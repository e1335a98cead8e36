//! `warn`: the used share of a band that raises an alert.

use super::fault::ConfigFault;
use super::reader::ConfigReader;
use super::table::FieldReader;

/// Reads `warn`, in percent.
pub(super) fn read(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<u8> {
    reader.setting(fields, "warn", |text| {
        let number = text.strip_suffix('%').map(str::trim_end);
        let percent = number.and_then(|number| number.parse::<u8>().ok());
        let percent = percent.filter(|percent| (1..=100).contains(percent));
        percent.ok_or_else(|| {
            let fault = ConfigFault::new(format!(
                "{} is not a part of a band",
                ConfigFault::quote(text)
            ));
            fault.help("expected 1% to 100%, for example `warn: 95%`")
        })
    })
}
