//! Keys that verify signatures.

use super::algorithm::SignatureAlgorithm;
use super::{jwks, pem};
use crate::text::Secret;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use ring::{error, hmac};
use std::fmt;

/// A key of one kind. Its kind decides which algorithms it verifies; the token does not.
#[derive(Clone, Debug)]
pub struct VerificationKey {
    /// The key's `kid`, if it has one.
    pub(super) id: Option<String>,
    /// The only algorithm of the key, if it specifies one.
    pub(super) only: Option<SignatureAlgorithm>,
    pub(super) material: Material,
}

#[derive(Clone)]
pub(super) enum Material {
    /// A secret that is shared with the issuer of tokens.
    Hmac(Secret),
    /// Modulus and exponent, without leading zeros.
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// A point, uncompressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl VerificationKey {
    /// Creates a key from a shared secret.
    pub fn secret(secret: Secret) -> Self {
        Self::of(Material::Hmac(secret))
    }

    /// Reads a public key in PEM. The error is the reason why the text holds none.
    pub fn from_pem(text: &str) -> Result<Self, String> {
        pem::read(text).map(Self::of)
    }

    /// Reads the public keys of a JWK set. The error is the reason why the text holds none.
    pub fn set_from_json(text: &str) -> Result<Vec<Self>, String> {
        jwks::read(text)
    }

    fn of(material: Material) -> Self {
        Self {
            id: None,
            only: None,
            material,
        }
    }

    /// Returns true if the key can verify signatures of this algorithm.
    ///
    /// The key decides, never the token: a token that names `HS256` is not verified with a public key as its secret.
    pub fn fits(&self, algorithm: SignatureAlgorithm) -> bool {
        self.only.is_none_or(|only| only == algorithm)
            && self.material.algorithms().contains(&algorithm)
    }

    /// Returns the kind of the key as text for messages.
    pub fn kind(&self) -> &'static str {
        self.material.kind()
    }
}

impl Material {
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Hmac(_) => "a shared secret",
            Self::Rsa { .. } => "an RSA key",
            Self::P256(_) => "a P-256 key",
            Self::P384(_) => "a P-384 key",
            Self::Ed25519(_) => "an Ed25519 key",
        }
    }

    const fn algorithms(&self) -> &'static [SignatureAlgorithm] {
        use SignatureAlgorithm::{
            EdDsa, Es256, Es384, Hs256, Hs384, Hs512, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512,
        };
        match self {
            Self::Hmac(_) => &[Hs256, Hs384, Hs512],
            Self::Rsa { .. } => &[Rs256, Rs384, Rs512, Ps256, Ps384, Ps512],
            Self::P256(_) => &[Es256],
            Self::P384(_) => &[Es384],
            Self::Ed25519(_) => &[EdDsa],
        }
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// Returns true if `signature` over `message` is valid under `key` and `algorithm`.
pub(super) fn signature_holds(
    key: &VerificationKey,
    algorithm: SignatureAlgorithm,
    message: &[u8],
    signature: &[u8],
) -> bool {
    if !key.fits(algorithm) {
        return false;
    }
    let verified = match &key.material {
        Material::Hmac(secret) => hmac_algorithm(algorithm).map(|digest| {
            let key = hmac::Key::new(digest, secret.expose().as_bytes());
            hmac::verify(&key, message, signature)
        }),
        Material::Rsa { modulus, exponent } => rsa_parameters(algorithm).map(|parameters| {
            let key = RsaPublicKeyComponents {
                n: modulus,
                e: exponent,
            };
            key.verify(parameters, message, signature)
        }),
        Material::P256(point) => Some(public_key(
            &ECDSA_P256_SHA256_FIXED,
            point,
            message,
            signature,
        )),
        Material::P384(point) => Some(public_key(
            &ECDSA_P384_SHA384_FIXED,
            point,
            message,
            signature,
        )),
        Material::Ed25519(point) => Some(public_key(&ED25519, point, message, signature)),
    };
    matches!(verified, Some(Ok(())))
}

fn public_key(
    algorithm: &'static dyn VerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Result<(), error::Unspecified> {
    UnparsedPublicKey::new(algorithm, key).verify(message, signature)
}

fn hmac_algorithm(algorithm: SignatureAlgorithm) -> Option<hmac::Algorithm> {
    Some(match algorithm {
        SignatureAlgorithm::Hs256 => hmac::HMAC_SHA256,
        SignatureAlgorithm::Hs384 => hmac::HMAC_SHA384,
        SignatureAlgorithm::Hs512 => hmac::HMAC_SHA512,
        _ => return None,
    })
}

fn rsa_parameters(algorithm: SignatureAlgorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        SignatureAlgorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        SignatureAlgorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
        SignatureAlgorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
        SignatureAlgorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
        SignatureAlgorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
        SignatureAlgorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// Builds an RSA key. Fails if the key is too weak, too large or malformed.
pub(super) fn rsa(modulus: &[u8], exponent: &[u8]) -> Result<Material, String> {
    let (modulus, exponent) = (without_zeros(modulus), without_zeros(exponent));
    let unused_bits = modulus.first().map_or(0, |first| first.leading_zeros());
    let bits = (modulus.len() * 8).saturating_sub(unused_bits as usize);
    if !(2048..=8192).contains(&bits) {
        return Err(format!(
            "the RSA key has {bits} bits; expected 2048 to 8192"
        ));
    }
    let is_odd = |number: &[u8]| number.last().is_some_and(|last| last & 1 == 1);
    if !is_odd(modulus) || !is_odd(exponent) || exponent == [1] || exponent.len() > 4 {
        return Err("this is not a usable RSA key".to_owned());
    }
    Ok(Material::Rsa {
        modulus: modulus.to_vec(),
        exponent: exponent.to_vec(),
    })
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let start = number.iter().position(|byte| *byte != 0);
    number
        .get(start.unwrap_or(number.len())..)
        .unwrap_or_default()
}
