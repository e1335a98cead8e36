//! What must stand in no key, log or message as it was sent.

use super::escape::push_hex;
use std::sync::LazyLock;

/// What the names of headers and attributes contain that carry secrets.
const SECRET_WORDS: &[&str] = &[
    "api-key",
    "api_key",
    "apikey",
    "auth",
    "bearer",
    "cookie",
    "credential",
    "jwt",
    "passw",
    "secret",
    "session",
    "signature",
    "token",
];

/// Whether a header or attribute of this name is taken for a secret, case-blind.
///
/// Wrong on the safe side: a harmless `x-author` merely shows as a hash.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.as_bytes();
    SECRET_WORDS.iter().any(|word| {
        name.windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Appends `#` and 128 bits of BLAKE3 over `value`, as 32 digits.
///
/// Keyed by `secret` where there is one: without it, who reads the store can still try likely
/// values. `label` keeps one value apart from itself in another part of a key. It holds no `:`.
pub(super) fn push_fingerprint(
    text: &mut String,
    label: &str,
    value: &str,
    secret: Option<&[u8; 32]>,
) {
    text.push('#');
    push_hex(text, &fingerprint(label, value.as_bytes(), secret));
}

/// Puts the same in the place of what has been appended already, from `start` on.
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

/// The 128 bits themselves.
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
