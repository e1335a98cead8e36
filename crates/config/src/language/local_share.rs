//! The share of a policy that one instance may grant while the store is unavailable.

use super::words::LOCAL_SHARE;
use tidegate_policy::store::LocalShare;
use tidegate_policy::text::ConfigFault;

/// Reads `auto`, or a decimal above 0 and up to 1.
pub(crate) fn parse(text: &str) -> Result<LocalShare, ConfigFault> {
    if let Some(word) = LOCAL_SHARE.get(text) {
        return Ok(word);
    }
    let refused = || {
        ConfigFault::new(format!("{} is not a share", ConfigFault::quote(text)))
            .help("expected a decimal above 0 and up to 1, for example `0.5`, or `auto`")
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 6 || text.len() > 8 {
        return Err(refused());
    }
    let millionths: u32 = format!("{whole}{fraction:0<6}")
        .parse()
        .map_err(|_| refused())?;
    match millionths {
        1..=1_000_000 => Ok(LocalShare::Millionths(millionths)),
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use tidegate_policy::store::LocalShare;

    #[test]
    fn shares_are_decimals_up_to_one() {
        for (text, millionths) in [
            ("0.5", 500_000),
            (".25", 250_000),
            ("1", 1_000_000),
            ("1.0", 1_000_000),
            ("0.000001", 1),
        ] {
            assert_eq!(
                parse(text),
                Ok(LocalShare::Millionths(millionths)),
                "{text}"
            );
        }
        assert_eq!(parse("auto"), Ok(LocalShare::Auto));
        for text in [
            "",
            ".",
            "0",
            "0.0",
            "1.1",
            "-0.5",
            "50%",
            "half",
            "0.0000001",
            "5e-1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
