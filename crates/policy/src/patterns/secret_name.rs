//! Names of headers and attributes that carry secrets.

/// Words in the names of headers and attributes that carry secrets.
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

/// Returns true if a header or attribute with this name is treated as a secret. Case-insensitive.
///
/// False positives are harmless: an `x-author` is merely shown as a hash.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.as_bytes();
    SECRET_WORDS.iter().any(|word| {
        name.windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    })
}
