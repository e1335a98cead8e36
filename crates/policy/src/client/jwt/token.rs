//! A token in its parts: `header.payload.signature`, each in base64url (RFC 7515, 7.1).

use super::algorithm::SignatureAlgorithm;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// A token, split into its parts.
pub(super) struct SplitToken<'a> {
    /// The part that the signature covers.
    pub(super) signed: &'a [u8],
    header: &'a [u8],
    pub(super) payload: &'a [u8],
    signature: &'a [u8],
}

/// The fields of a token's header.
pub(super) struct TokenHeader {
    /// Absent where the algorithm is unknown, such as `none`.
    pub(super) algorithm: Option<SignatureAlgorithm>,
    pub(super) key_id: Option<String>,
}

impl<'a> SplitToken<'a> {
    pub(super) fn split(text: &'a [u8]) -> Option<Self> {
        let is_dot = |byte: &u8| *byte == b'.';
        let last = text.iter().rposition(is_dot)?;
        let signed = text.get(..last)?;
        let signature = text.get(last + 1..)?;
        let first = signed.iter().position(is_dot)?;
        let payload = signed.get(first + 1..)?;
        if payload.contains(&b'.') {
            return None;
        }
        Some(Self {
            signed,
            header: signed.get(..first)?,
            payload,
            signature,
        })
    }

    /// Returns the header's fields. Returns `None` if the header is malformed, or has `crit`: no critical
    /// extension is supported.
    pub(super) fn head(&self) -> Option<TokenHeader> {
        let head = object(self.header)?;
        if head.contains_key("crit") {
            return None;
        }
        let key_id = match head.get("kid") {
            None => None,
            Some(id) => Some(id.as_str()?.to_owned()),
        };
        let algorithm = head.get("alg")?.as_str()?;
        Some(TokenHeader {
            algorithm: SignatureAlgorithm::named(algorithm),
            key_id,
        })
    }

    pub(super) fn signature(&self) -> Option<Vec<u8>> {
        URL_SAFE_NO_PAD.decode(self.signature).ok()
    }
}

/// Decodes a JSON object in base64url.
pub(super) fn object(part: &[u8]) -> Option<Map<String, Value>> {
    let json = URL_SAFE_NO_PAD.decode(part).ok()?;
    serde_json::from_slice(&json).ok()
}

/// Returns the token in the value of a header, after `Bearer` in any case. Only `Authorization` requires that
/// word, because it may hold other schemes.
pub(in crate::client) fn bearer<'a>(value: &'a [u8], header: &str) -> Option<&'a [u8]> {
    let value = value.trim_ascii();
    let (scheme, rest) = value.split_at_checked(7).unwrap_or((value, &[]));
    if scheme.eq_ignore_ascii_case(b"bearer ") {
        return Some(rest.trim_ascii());
    }
    (header != "authorization").then_some(value)
}
