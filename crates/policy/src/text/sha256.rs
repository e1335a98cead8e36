//! SHA-256 hashes of tokens, certificates and documents.

use ring::digest;
use std::fmt::{self, Write};

/// A SHA-256 hash. The hash is no secret: its input has 256 bits of entropy and cannot be guessed.
///
/// ```
/// use tidegate_policy::text::Sha256;
///
/// let hash = Sha256::of(b"abc");
/// let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// assert_eq!(hash.to_string(), text);
/// assert_eq!(Sha256::parse(text), Some(hash));
/// // As `openssl x509 -fingerprint -sha256` writes it.
/// assert_eq!(Sha256::parse("BA:78:16"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// Returns the hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 32];
        let made = digest::digest(&digest::SHA256, bytes);
        // Both have 32 bytes.
        for (to, from) in hash.iter_mut().zip(made.as_ref()) {
            *to = *from;
        }
        Self(hash)
    }

    /// Parses 64 hexadecimal digits, with an optional `sha256:` prefix and optional colons between them.
    /// Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("sha256:").unwrap_or(text);
        let mut digits = text
            .chars()
            .filter(|c| *c != ':')
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
        let mut hash = [0; 32];
        for byte in &mut hash {
            let (high, low) = (digits.next()??, digits.next()??);
            *byte = high << 4 | low;
        }
        digits.next().is_none().then_some(Self(hash))
    }

    /// Returns the 32 bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        let mut text = String::new();
        for byte in self.0 {
            write!(text, "{byte:02x}")?;
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_parsed_in_common_notations() {
        let plain = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let pairs: Vec<&str> = (0..32).map(|nth| &plain[2 * nth..2 * nth + 2]).collect();
        let colons = pairs.join(":").to_uppercase();
        for text in [
            plain,
            &format!("sha256:{plain}"),
            &format!(" {plain}\n"),
            &colons,
        ] {
            assert_eq!(Sha256::parse(text), Some(Sha256::of(b"abc")), "{text}");
        }
        for text in [
            "",
            "sha256:",
            &plain[1..],
            &format!("{plain}0"),
            &format!("sha1:{plain}"),
            &plain.replace('b', "g"),
        ] {
            assert_eq!(Sha256::parse(text), None, "{text}");
        }
    }
}
