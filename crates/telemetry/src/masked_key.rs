//! Masking of keys in logs.

use std::fmt;

/// A key that is displayed with its kind and the beginning of each value: enough to recognise a known value,
/// too little to learn an unknown one.
pub struct MaskedKey<'a>(pub &'a str);

/// The most characters of a value that are shown, and never more than half of it.
const SHOWN_MAX: usize = 4;

// The key may be a secret: shown like everywhere else.
impl fmt::Debug for MaskedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for MaskedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, part) in self.0.split(',').enumerate() {
            if nth > 0 {
                f.write_str(",")?;
            }
            // A part without a value, such as `global`, identifies no client.
            let Some((kind, value)) = part.split_once(':') else {
                f.write_str(part)?;
                continue;
            };
            let shown = SHOWN_MAX.min(value.chars().count() / 2);
            let shown: String = value.chars().take(shown).collect();
            write!(f, "{kind}:{shown}…")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::MaskedKey;

    #[test]
    fn masked_keys_are_comparable_and_not_readable() {
        for (key, masked) in [
            ("ip:192.0.2.1", "ip:192.…"),
            ("user:ann", "user:a…"),
            ("user:x", "user:…"),
            ("ip:2001:db8::,user:ann@example.com", "ip:2001…,user:ann@…"),
            ("global", "global"),
            ("", ""),
        ] {
            assert_eq!(MaskedKey(key).to_string(), masked);
        }
    }
}
