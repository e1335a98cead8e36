//! `key`: the parts of the bucket key.

use super::descriptor;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::header_name;
use crate::language::words::KEY;
use crate::tables::KEY_PARTS_MAX;
use tidegate_policy::limit::KeyPart;
use tidegate_policy::text::ConfigFault;

/// The longest name of an attribute, in bytes.
const ATTRIBUTE_MAX: usize = 64;

/// Reads a key: a part, or a list of parts.
pub(crate) fn read(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Vec<KeyPart> {
    let items = reader.one_or_many(value);
    if items.len() > KEY_PARTS_MAX {
        let fault = ConfigFault::new(format!("a key has at most {KEY_PARTS_MAX} parts"));
        reader.error(value.key_spot(), fault);
        return Vec::new();
    }
    let mut parts: Vec<KeyPart> = Vec::new();
    for item in &items {
        let Some(part) = reader.parse(item, part) else {
            continue;
        };
        if part == KeyPart::Global && items.len() > 1 {
            let fault = ConfigFault::new("`global` cannot be combined with other key parts");
            reader.error(
                item.spot(),
                fault.help("remove `global`, or the other parts"),
            );
        } else if parts.contains(&part) {
            let fault = ConfigFault::new("duplicate key part");
            reader.error(item.spot(), fault.help("remove it"));
        } else {
            parts.push(part);
        }
    }
    parts
}

/// Reads a key part in the syntax of the configuration, such as `ip`, `token` or `header:X-Tenant`.
/// Returns `None` for any other text.
pub fn read_part(text: &str) -> Option<KeyPart> {
    part(text).ok()
}

/// Reads one part of a key.
pub fn part(text: &str) -> Result<KeyPart, ConfigFault> {
    if let Some(part) = KEY.get(text) {
        return Ok(part());
    }
    match text.split_once(':') {
        Some(("header", name)) => header_name(name).map(KeyPart::Header),
        Some(("attr", name)) => attribute_name(name).map(KeyPart::Attr),
        Some(("descriptor", name)) => descriptor::key_part(name),
        Some(("attribute", name)) => {
            Err(unknown(text).help(format!("did you mean `attr:{name}`?")))
        }
        None if text.contains(',') => {
            let parts: Vec<&str> = text.split(',').map(str::trim).collect();
            let help = format!("write a list: [{}]", parts.join(", "));
            Err(unknown(text).help(help))
        }
        _ => Err(unknown(text).help(suggestion(text))),
    }
}

fn unknown(text: &str) -> ConfigFault {
    ConfigFault::new(format!("{} is not a key", ConfigFault::quote(text)))
}

fn suggestion(text: &str) -> String {
    match text {
        "header" => "name the header: `header:X-Tenant`".to_owned(),
        "attr" | "attribute" => "name the attribute: `attr:project`".to_owned(),
        _ => {
            let suggestion = KEY.suggestion(text);
            if suggestion.starts_with("did") {
                suggestion
            } else {
                format!("{suggestion}, or `header:NAME`, `attr:NAME` or `descriptor:NAME`")
            }
        }
    }
}

/// Reads the name of an attribute.
pub(crate) fn attribute_name(text: &str) -> Result<String, ConfigFault> {
    let belongs = |c: char| c.is_ascii_graphic();
    if !text.is_empty() && text.len() <= ATTRIBUTE_MAX && text.chars().all(belongs) {
        Ok(text.to_owned())
    } else {
        let message = format!(
            "{} cannot be the name of an attribute",
            ConfigFault::quote(text)
        );
        Err(ConfigFault::new(message)
            .help("use up to 64 visible ASCII characters, for example `attr:project`"))
    }
}
