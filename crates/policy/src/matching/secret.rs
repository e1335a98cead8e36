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
    static NO_SECRET: LazyLock<[u8; 32]> =
        LazyLock::new(|| blake3::derive_key("tidegate key part without key_secret", b""));
    let mut hasher = blake3::Hasher::new_keyed(secret.unwrap_or(&NO_SECRET));
    hasher.update(label.as_bytes());
    hasher.update(b":");
    hasher.update(value.as_bytes());
    let hash = hasher.finalize();
    text.push('#');
    push_hex(
        text,
        hash.as_bytes().first_chunk::<16>().unwrap_or(&[0; 16]),
    );
}
