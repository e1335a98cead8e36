//! Credentials and roles of administrators, and the audit log of their changes.

use ring::digest;
use std::fmt::{self, Write};

/// The administration of a server (`admin`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Administrators that authenticate with a token.
    pub tokens: Vec<AdminCredential>,
    /// Administrators that authenticate with the certificate of their connection.
    pub certificates: Vec<AdminCredential>,
    /// The audit trail of changes, in addition to the log.
    pub audit: Audit,
}

/// An administrator, identified by the hash of a token or of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminCredential {
    /// The administrator's name in logs.
    pub name: String,
    /// The administrator's permissions.
    pub role: AdminRole,
    /// The hash of the token or of the certificate.
    pub hash: Sha256,
}

/// The permissions of an administrator. Each role includes the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdminRole {
    /// May read everything.
    Read,
    /// May turn limits off and on, reset buckets, ban addresses, and reload.
    Operate,
    /// May change everything that can be changed.
    Admin,
}

impl AdminRole {
    /// Every role with its name in the configuration.
    pub const ALL: [(&'static str, Self); 3] = [
        ("read", Self::Read),
        ("operate", Self::Operate),
        ("admin", Self::Admin),
    ];

    /// Returns the role's name in the configuration.
    pub fn as_str(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(_, role)| *role == self)
            .map_or("", |(word, _)| word)
    }
}

/// The audit trail of changes, in addition to the log (`admin.audit`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// A file that receives one line of JSON per change.
    pub file: Option<String>,
    /// The key of a stream in the store's Redis that receives the changes.
    pub stream: Option<String>,
    /// The approximate number of changes that the stream keeps.
    pub max: Option<u64>,
}

impl Audit {
    /// The default approximate number of changes that a stream keeps.
    pub const MAX: u64 = 10_000;
}

/// A SHA-256 hash. The hash is no secret: its input has 256 bits of entropy and cannot be guessed.
///
/// ```
/// use tidegate_policy::admin::Sha256;
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
    fn a_hash_is_read_as_people_and_programs_write_it() {
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

    #[test]
    fn each_role_may_do_what_those_before_it_may() {
        assert!(AdminRole::Read < AdminRole::Operate && AdminRole::Operate < AdminRole::Admin);
        assert_eq!(AdminRole::Operate.as_str(), "operate");
    }
}
