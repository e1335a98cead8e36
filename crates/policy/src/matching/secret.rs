//! Fingerprints. Keys contain them in place of values that no key, log or message may show in clear text.

use crate::patterns::escape::push_hex;
use std::sync::LazyLock;

/// Appends `#` and 128 bits of BLAKE3 over `value`, as 32 digits.
///
/// The hash is keyed by `secret` if there is one. Without it, a reader of the store can still try likely
/// values. `label` makes the hashes of one value differ between parts of a key. It contains no `:`.
pub(super) fn push_fingerprint(
    text: &mut String,
    label: &str,
    value: &str,
    secret: Option<&[u8; 32]>,
) {
    text.push('#');
    push_hex(text, &fingerprint(label, value.as_bytes(), secret));
}

/// Replaces the text from `start` on with its fingerprint.
pub(super) fn replace_by_fingerprint(
    text: &mut String,
    start: usize,
    label: &str,
    secret: Option<&[u8; 32]>,
) {
    let value = text.get(start..).unwrap_or_default();
    let hash = fingerprint(label, value.as_bytes(), secret);
    text.truncate(start);
    text.push('#');
    push_hex(text, &hash);
}

/// Returns the 128 bits of a fingerprint.
pub(super) fn fingerprint(label: &str, value: &[u8], secret: Option<&[u8; 32]>) -> [u8; 16] {
    static NO_SECRET: LazyLock<[u8; 32]> =
        LazyLock::new(|| blake3::derive_key("tidegate key part without key_secret", b""));
    let mut hasher = blake3::Hasher::new_keyed(secret.unwrap_or(&NO_SECRET));
    hasher.update(label.as_bytes());
    hasher.update(b":");
    hasher.update(value);
    let hash = hasher.finalize();
    *hash.as_bytes().first_chunk::<16>().unwrap_or(&[0; 16])
}
