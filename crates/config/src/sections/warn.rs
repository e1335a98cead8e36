//! `warn`: the used shares of a band that raise an alert.

use crate::language::reader::ConfigReader;
use crate::language::table::FieldReader;
use tidegate_policy::WarnShares;
use tidegate_policy::text::ConfigFault;

/// Reads `warn`: one share or several, in percent.
pub(crate) fn read(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<WarnShares> {
    let value = fields.get("warn")?;
    let items = reader.one_or_many(&value);
    let shares = items.iter().map(|item| reader.parse(item, percent));
    let shares: Option<Vec<u8>> = shares.collect();
    let shares = WarnShares::new(&shares?);
    let valid = shares.map_err(|why| {
        let fault = ConfigFault::new(format!("`warn` is not valid: {why}"));
        let help = format!(
            "list at most {} shares, from the lowest to the highest: `warn: [80%, 100%]`",
            WarnShares::MAX
        );
        reader.error(value.spot(), fault.help(help));
    });
    valid.ok()
}

fn percent(text: &str) -> Result<u8, ConfigFault> {
    let number = text.strip_suffix('%').map(str::trim_end);
    let percent = number.and_then(|number| number.parse::<u8>().ok());
    let percent = percent.filter(|percent| (1..=100).contains(percent));
    percent.ok_or_else(|| {
        let fault = ConfigFault::new(format!(
            "{} is not a share of a band",
            ConfigFault::quote(text)
        ));
        fault.help("expected 1% to 100%, for example `warn: 95%`")
    })
}
