//! The expiry date of a certificate.
//!
//! Read from its DER by hand: it is the fifth field of the first, and crates that parse whole certificates
//! add nine dependencies. The validity of the certificate is checked by rustls and by clients.

/// Returns the expiry of a certificate in RFC 3339; `None` if it cannot be read.
pub(crate) fn expiry(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = Der(certificate).next(SEQUENCE)?;
    let (_, mut fields) = certificate.next(SEQUENCE)?;
    // The version; certificates of version 1 have none.
    if let Some((rest, _)) = fields.next(VERSION) {
        fields = rest;
    }
    // Serial number, signature algorithm, issuer.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        (fields, _) = fields.next(tag)?;
    }
    let (_, validity) = fields.next(SEQUENCE)?;
    let (not_after, _) = validity.time()?;
    let (_, text) = not_after.time()?;
    Some(text)
}

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// A sequence of values.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl Der<'_> {
    /// Returns the rest after the next value, and its content; `None` if its tag is not `tag`, or it is cut
    /// off.
    fn next(self, tag: u8) -> Option<(Self, Self)> {
        let (found, rest) = self.0.split_first()?;
        let (first, mut rest) = rest.split_first()?;
        let mut length = usize::from(*first);
        if length >= 0x80 {
            // This many bytes of length follow. More than four would not fit in memory.
            let (bytes, behind) = rest.split_at_checked(length & 0x7f)?;
            if *found != tag || bytes.is_empty() || bytes.len() > 4 {
                return None;
            }
            length = bytes
                .iter()
                .fold(0, |all, byte| all << 8 | usize::from(*byte));
            rest = behind;
        }
        let (content, rest) = rest.split_at_checked(length)?;
        (*found == tag).then_some((Self(rest), Self(content)))
    }

    /// Returns the rest after the next value, which is a time, and the time.
    fn time(self) -> Option<(Self, String)> {
        // Of two-digit years, those below 50 mean this century (RFC 5280, 4.1.2.5.1).
        if let Some((rest, text)) = self.next(UTC_TIME) {
            let text = str::from_utf8(text.0).ok()?;
            let century = if text < "50" { "20" } else { "19" };
            return Some((rest, spelled(&format!("{century}{text}"))?));
        }
        let (rest, text) = self.next(GENERALIZED_TIME)?;
        Some((rest, spelled(str::from_utf8(text.0).ok()?)?))
    }
}

/// Converts `20261117022500Z` to RFC 3339.
fn spelled(text: &str) -> Option<String> {
    let digits = text.strip_suffix('Z')?;
    if digits.len() != 14 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    Some(format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 2, 28);
        let signed = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        signed.der().to_vec()
    }

    #[test]
    fn both_ways_of_writing_a_time_are_read() {
        for year in [1999, 2031, 2049, 2050, 2100, 9999] {
            let expiry = expiry(&certificate(year)).unwrap();
            assert_eq!(expiry, format!("{year}-02-28T00:00:00Z"));
        }
    }

    #[test]
    fn truncated_and_damaged_certificates_are_rejected() {
        let whole = certificate(2031);
        for end in 0..whole.len() {
            assert_eq!(expiry(&whole[..end]), None, "{end}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                damaged[at] = byte;
                // Any result will do: the certificate is no longer the same.
                expiry(&damaged);
            }
        }
    }
}
