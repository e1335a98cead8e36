//! A public key in PEM.

use super::der::{BIT_STRING, INTEGER, OBJECT, SEQUENCE, bits, take, take_only};
use super::key::{Material, rsa};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// 1.2.840.113549.1.1.1
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// 1.2.840.10045.2.1
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// 1.2.840.10045.3.1.7
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// 1.3.132.0.34
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
/// 1.3.101.112
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// Reads the key. The error is the reason why the text holds none.
pub(super) fn read(text: &str) -> Result<Material, String> {
    let (label, body) = section(text).ok_or(
        "it is not PEM; expected a public key that begins with -----BEGIN PUBLIC KEY-----",
    )?;
    match label {
        "PUBLIC KEY" => spki(&decode(body)?),
        "RSA PUBLIC KEY" => pkcs1(&decode(body)?),
        "CERTIFICATE" => Err(
            "it holds a certificate; use its public key: openssl x509 -pubkey -noout".to_owned(),
        ),
        label if label.ends_with("PRIVATE KEY") => {
            Err("it holds a private key; use its public key: openssl pkey -pubout".to_owned())
        }
        _ => Err("it does not hold a public key".to_owned()),
    }
}

/// Returns the label and the body of the first section.
fn section(text: &str) -> Option<(&str, &str)> {
    let (_, after) = text.split_once("-----BEGIN ")?;
    let (label, after) = after.split_once("-----")?;
    let (body, after) = after.split_once("-----END ")?;
    after
        .strip_prefix(label)?
        .starts_with("-----")
        .then_some((label, body))
}

fn decode(body: &str) -> Result<Vec<u8>, String> {
    let digits: String = body.split_ascii_whitespace().collect();
    let decoded = STANDARD.decode(digits);
    decoded.map_err(|error| format!("its base64 is broken: {error}"))
}

/// Reads a `SubjectPublicKeyInfo` (RFC 5280, 4.1).
fn spki(der: &[u8]) -> Result<Material, String> {
    let parse = || {
        let mut info = take_only(der, SEQUENCE)?;
        let mut algorithm = take(&mut info, SEQUENCE)?;
        let kind = take(&mut algorithm, OBJECT)?;
        let key = bits(take_only(info, BIT_STRING)?)?;
        Some((kind, algorithm, key))
    };
    let (kind, parameters, key) = parse().ok_or("its public key is broken")?;
    match (kind, take_only(parameters, OBJECT)) {
        (RSA_ENCRYPTION, _) => pkcs1(key),
        (EC_PUBLIC_KEY, Some(P256)) => point(key, 32).map(Material::P256),
        (EC_PUBLIC_KEY, Some(P384)) => point(key, 48).map(Material::P384),
        (EC_PUBLIC_KEY, _) => Err("it is on a curve other than P-256 and P-384".to_owned()),
        (ED25519, _) if key.len() == 32 => Ok(Material::Ed25519(key.to_vec())),
        _ => Err("expected an RSA, P-256, P-384 or Ed25519 key, found another kind".to_owned()),
    }
}

/// Reads an `RSAPublicKey` (RFC 8017, A.1.1).
fn pkcs1(der: &[u8]) -> Result<Material, String> {
    let parse = || {
        let mut key = take_only(der, SEQUENCE)?;
        let modulus = take(&mut key, INTEGER)?;
        let exponent = take_only(key, INTEGER)?;
        Some((modulus, exponent))
    };
    let (modulus, exponent) = parse().ok_or("its RSA key is broken")?;
    rsa(modulus, exponent)
}

/// Checks an uncompressed point (SEC 1, 2.3.3) with coordinates of this length.
fn point(bytes: &[u8], coordinate: usize) -> Result<Vec<u8>, String> {
    if bytes.len() == 1 + 2 * coordinate && bytes.first() == Some(&4) {
        Ok(bytes.to_vec())
    } else {
        Err("its point is compressed; expected the uncompressed form".to_owned())
    }
}
