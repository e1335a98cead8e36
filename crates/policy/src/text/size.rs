//! Sizes in readable form: `512KiB`, `10 MiB`, `1GB`, `4096`.

use super::duration::{number, split};
use crate::text::ConfigFault;

/// Units, with their size in bytes and all their spellings.
const UNITS: [(u64, &[&str]); 7] = [
    (1, &["", "B", "byte", "bytes"]),
    (1_000, &["kB", "KB", "k"]),
    (1 << 10, &["KiB", "Ki"]),
    (1_000_000, &["MB", "M"]),
    (1 << 20, &["MiB", "Mi"]),
    (1_000_000_000, &["GB", "G"]),
    (1 << 30, &["GiB", "Gi"]),
];

/// Reads a size and returns it in bytes.
pub fn parse(text: &str) -> Result<u64, ConfigFault> {
    let refused = || {
        ConfigFault::new(format!("{} is not a size", ConfigFault::quote(text))).help(
            "expected a whole number and a unit, for example `512KiB`, `10MiB` or `1GiB`, or `unlimited`",
        )
    };
    let (digits, unit) = split(text, |c| c.is_ascii_digit() || c == '_');
    let count = number(digits).ok_or_else(refused)?;
    let unit = UNITS
        .iter()
        .find(|(_, names)| names.contains(&unit.trim_start()));
    let (bytes, _) = unit.ok_or_else(refused)?;
    count
        .checked_mul(*bytes)
        .ok_or_else(|| ConfigFault::new(format!("{} is too large", ConfigFault::quote(text))))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_parsed_in_common_notation() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("512KiB", 512 << 10),
            ("10 MiB", 10 << 20),
            ("10MB", 10_000_000),
            ("1Gi", 1 << 30),
            ("1_000k", 1_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "-1", "1.5MiB", "10 miles", "10m", "10 Mi B"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let too_large = parse("99999999999GiB").unwrap_err();
        assert!(too_large.message.contains("too large"));
    }
}
