//! A subject that a caller passes as bytes, instead of through the parts of a key.

use super::key::{KeyRules, VALUE_BYTES_MAX};
use super::secret::fingerprint;
use smallvec::SmallVec;

/// The bytes below 128 that need no escape, one bit each. A table, because every byte of every name is
/// checked.
const PLAIN: [u64; 2] = [plain(0), plain(64)];

const fn plain(from: u8) -> u64 {
    let mut bits = 0;
    let mut nth = 0;
    while nth < 64 {
        let byte = from + nth;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-') {
            bits |= 1 << nth;
        }
        nth += 1;
    }
    bits
}

/// Returns true if a byte needs no escape.
#[inline]
fn is_plain(byte: u8) -> bool {
    let [low, high] = PLAIN;
    let bits = if byte < 64 { low } else { high };
    byte < 128 && bits >> (byte & 63) & 1 == 1
}

impl KeyRules {
    /// Appends `subject` to the name of a bucket so that nothing in it can end a part, a limit or a name: all
    /// bytes except letters, digits and `.` `_` `~` `-` are escaped. A subject of more than 64 bytes is
    /// written as `#` and a hash, keyed by [`secret`](Self::secret) if there is one, so that callers cannot
    /// fill the store with long names.
    ///
    /// `label` makes the hash differ from those of other kinds of subjects; it contains no `:`.
    ///
    /// ```
    /// use smallvec::SmallVec;
    /// use tidegate_policy::matching::KeyRules;
    ///
    /// let mut name: SmallVec<[u8; 64]> = SmallVec::from_slice(b"~cl/throttle/");
    /// KeyRules::default().push_subject(&mut name, "throttle", b"user:a/b");
    /// assert_eq!(name.as_slice(), b"~cl/throttle/user%3Aa%2Fb");
    /// ```
    #[inline]
    pub fn push_subject<const N: usize>(
        &self,
        name: &mut SmallVec<[u8; N]>,
        label: &str,
        subject: &[u8],
    ) {
        if subject.len() > VALUE_BYTES_MAX {
            return self.push_hashed(name, label, subject);
        }
        // Copy runs of plain bytes at once, up to the next byte that needs an escape.
        let mut rest = subject;
        while let Some(at) = rest.iter().position(|byte| !is_plain(*byte)) {
            let (plain, odd) = rest.split_at(at);
            name.extend_from_slice(plain);
            let Some((byte, behind)) = odd.split_first() else {
                break;
            };
            name.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
            rest = behind;
        }
        name.extend_from_slice(rest);
    }

    #[cold]
    fn push_hashed<const N: usize>(
        &self,
        name: &mut SmallVec<[u8; N]>,
        label: &str,
        subject: &[u8],
    ) {
        name.push(b'#');
        for byte in fingerprint(label, subject, self.secret.as_ref()) {
            let digits = [digit(byte >> 4), digit(byte & 15)];
            name.extend_from_slice(&digits.map(|digit| digit.to_ascii_lowercase()));
        }
    }
}

/// Returns the digit of a number below 16, in upper case as RFC 3986 recommends for escapes.
#[inline]
fn digit(number: u8) -> u8 {
    match number {
        0..=9 => b'0' + number,
        _ => b'A' + (number & 15) - 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::escape::is_value;

    fn spelt(subject: &[u8], secret: Option<[u8; 32]>) -> String {
        let rules = KeyRules {
            secret,
            ..KeyRules::default()
        };
        let mut name: SmallVec<[u8; 16]> = SmallVec::new();
        rules.push_subject(&mut name, "throttle", subject);
        String::from_utf8(name.to_vec()).expect("a name is text")
    }

    #[test]
    fn subject_escaping_is_injective() {
        for byte in 0..=u8::MAX {
            let spelling = spelt(&[byte], None);
            if is_value(byte) {
                assert_eq!(spelling.as_bytes(), [byte]);
            } else {
                assert_eq!(spelling, format!("%{byte:02X}"));
            }
        }
        assert_eq!(spelt(b"", None), "");
        assert_eq!(spelt(b"{a}b//c%2F", None), "%7Ba%7Db%2F%2Fc%252F");
    }

    #[test]
    fn long_subjects_are_hashed_with_the_secret() {
        assert_eq!(spelt(&[b'x'; 64], None), "x".repeat(64));
        let long = spelt(&[b'x'; 65], None);
        assert!(long.starts_with('#') && long.len() == 33, "{long}");
        assert_ne!(long, spelt(&[b'x'; 66], None));
        assert_ne!(long, spelt(&[b'x'; 65], Some([7; 32])));
        assert_eq!(long, long.to_lowercase());
    }
}
