//! A secret that is written in the configuration, comes from a variable, or is stored in a file.

use super::reader::{ConfigReader, ConfigValue};
use super::table::FieldReader;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::Secret;

/// Reads the secret `name`, or the file named by `file_name`. No message shows the secret.
pub(crate) fn secret(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    name: &str,
    file_name: &str,
) -> Option<Secret> {
    let (written, file) = (fields.get(name), fields.get(file_name));
    if let (Some(_), Some(file)) = (&written, &file) {
        let fault = ConfigFault::new(format!("`{name}` and `{file_name}` are both set"));
        reader.error(file.key_spot(), fault.help("write one of the two"));
        return None;
    }
    if let Some(value) = written {
        let text = reader.text(&value)?;
        return reader.accept(&value, not_empty(&text, &format!("`{name}`")));
    }
    secret_file(reader, &file?)
}

/// Reads the file named by `value`. No message shows its contents.
pub(crate) fn secret_file(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
) -> Option<Secret> {
    let path = reader.text(value)?;
    let environment = reader.environment_at(value.node.place);
    let read = environment.file(&path).map_err(|why| {
        ConfigFault::new(format!(
            "{} cannot be read: {why}",
            ConfigFault::quote(&path)
        ))
    });
    let read =
        read.and_then(|text| not_empty(&text, &format!("the file {}", ConfigFault::quote(&path))));
    reader.accept(value, read)
}

/// Returns a secret without the line break at the end of a file.
fn not_empty(text: &str, what: &str) -> Result<Secret, ConfigFault> {
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(ConfigFault::new(format!("{what} is empty"))),
        text => Ok(Secret::new(text)),
    }
}
