//! A set of public keys in JSON (RFC 7517).

use super::algorithm::SignatureAlgorithm;
use super::key::{Material, VerificationKey, rsa};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The maximum number of keys. Sets are small, because keys change a few times a year.
const KEYS_MAX: usize = 64;

/// Returns the keys of a set that can verify signatures. Keys of other kinds are skipped, as RFC 7517, 5
/// requires. Fails if no key is left.
pub(super) fn read(text: &str) -> Result<Vec<VerificationKey>, String> {
    let set: Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let keys = set.get("keys").and_then(Value::as_array);
    let keys = keys.ok_or("it has no list `keys`, so it is not a JWK set")?;
    if keys.len() > KEYS_MAX {
        return Err(format!(
            "it has {} keys; at most {KEYS_MAX} are read",
            keys.len()
        ));
    }
    let mut read = Vec::new();
    let mut passed_over = None;
    for (nth, key) in keys.iter().enumerate() {
        match one(key).map_err(|why| format!("keys[{nth}]: {why}"))? {
            KeyVerdict::Yes(key) => read.push(key),
            KeyVerdict::No(why) => passed_over = Some(format!("; keys[{nth}] {why}")),
        }
    }
    if read.is_empty() {
        let why = passed_over.unwrap_or_default();
        return Err(format!("it has no key that verifies signatures{why}"));
    }
    Ok(read)
}

enum KeyVerdict {
    Yes(VerificationKey),
    No(&'static str),
}

fn one(jwk: &Value) -> Result<KeyVerdict, String> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    if text("use").is_some_and(|it| it != "sig") {
        return Ok(KeyVerdict::No("is not for signatures"));
    }
    let only = match text("alg").map(SignatureAlgorithm::named) {
        Some(None) => return Ok(KeyVerdict::No("uses an unsupported algorithm")),
        alg => alg.flatten(),
    };
    if jwk.get("d").is_some() {
        return Err("is a private key; use the public key here".to_owned());
    }
    let material = match (text("kty"), text("crv")) {
        (Some("RSA"), _) => rsa(&bytes(jwk, "n")?, &bytes(jwk, "e")?)?,
        (Some("EC"), Some("P-256")) => Material::P256(point(jwk, 32)?),
        (Some("EC"), Some("P-384")) => Material::P384(point(jwk, 48)?),
        (Some("OKP"), Some("Ed25519")) => Material::Ed25519(coordinate(jwk, "x", 32)?),
        (Some("oct"), _) => return Ok(KeyVerdict::No("is a shared secret; use `secret_file`")),
        (Some(_), _) => return Ok(KeyVerdict::No("has an unsupported key type")),
        (None, _) => return Err("`kty` is missing".to_owned()),
    };
    let key = VerificationKey {
        id: text("kid").map(str::to_owned),
        only,
        material,
    };
    if key.only.is_some_and(|only| !key.fits(only)) {
        return Err(format!("`alg` does not fit {}", key.kind()));
    }
    Ok(KeyVerdict::Yes(key))
}

fn bytes(jwk: &Value, name: &str) -> Result<Vec<u8>, String> {
    let text = jwk.get(name).and_then(Value::as_str);
    let text = text.ok_or_else(|| format!("`{name}` is missing"))?;
    let decoded = URL_SAFE_NO_PAD.decode(text);
    decoded.map_err(|error| format!("`{name}` is not base64url: {error}"))
}

fn coordinate(jwk: &Value, name: &str, length: usize) -> Result<Vec<u8>, String> {
    let bytes = bytes(jwk, name)?;
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(format!(
            "`{name}` has {} bytes; expected {length}",
            bytes.len()
        ))
    }
}

/// Returns an uncompressed point.
fn point(jwk: &Value, length: usize) -> Result<Vec<u8>, String> {
    let mut point = vec![4];
    point.extend(coordinate(jwk, "x", length)?);
    point.extend(coordinate(jwk, "y", length)?);
    Ok(point)
}
