//! Names, numbers and tokens.

use super::ConfigFault;
use super::duration;
use std::ops::RangeInclusive;

/// The longest name, in bytes: names appear in headers, metrics and keys.
const NAME_MAX: usize = 64;

/// The longest method or header name, in bytes.
const TOKEN_MAX: usize = 256;

/// Reads the name of a policy, a limit or a band.
pub fn name(text: &str) -> Result<String, ConfigFault> {
    let help = "use up to 64 letters, digits, `-`, `_` and `.`, beginning with a letter or digit";
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let starts_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    if starts_well && text.len() <= NAME_MAX && text.chars().all(belongs) {
        Ok(text.to_owned())
    } else {
        Err(ConfigFault::new(format!("{} cannot be a name", ConfigFault::quote(text))).help(help))
    }
}

/// Reads a whole number within a range.
pub fn whole(text: &str, range: &RangeInclusive<u64>) -> Result<u64, ConfigFault> {
    let number = duration::number(text);
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            let quoted = ConfigFault::quote(text);
            match (*range.start(), *range.end()) {
                (_, u64::MAX) => ConfigFault::new(format!("{quoted} is not a whole number")),
                (from, to) => ConfigFault::new(format!(
                    "{quoted} is not a whole number from {from} to {to}"
                )),
            }
        })
}

/// Reads the name of a header and returns it in lower case.
pub fn header_name(text: &str) -> Result<String, ConfigFault> {
    if is_token(text) {
        Ok(text.to_ascii_lowercase())
    } else {
        let message = format!(
            "{} cannot be the name of a header",
            ConfigFault::quote(text)
        );
        Err(ConfigFault::new(message).help("for example `X-Tier`"))
    }
}

/// Reads a method and returns it in upper case.
pub fn method(text: &str) -> Result<String, ConfigFault> {
    if is_token(text) && text != "*" {
        Ok(text.to_ascii_uppercase())
    } else {
        Err(
            ConfigFault::new(format!("{} cannot be a method", ConfigFault::quote(text)))
                .help("for example `GET`; leave `method` out for any method"),
        )
    }
}

/// Reads a token (RFC 9110).
pub fn token(text: &str) -> Option<String> {
    is_token(text).then(|| text.to_owned())
}

/// Returns true if `text` is a token (RFC 9110) of at most [`TOKEN_MAX`] bytes.
fn is_token(text: &str) -> bool {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.len() <= TOKEN_MAX && text.bytes().all(belongs)
}
