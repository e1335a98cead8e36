//! Tokens: the JWT of a request, and the verification of its claims.
//!
//! | module | contents |
//! |---|---|
//! | `algorithm` | signature algorithms |
//! | `key` | keys that verify signatures |
//! | `pem`, `der`, `jwks` | file formats of keys |
//! | `token` | a token split into its parts |
//! | `claims` | the claims of a token |
//! | `validity` | checks of time, issuer and audience |

mod algorithm;
mod claims;
mod der;
mod jwks;
mod key;
mod pem;
#[cfg(test)]
mod tests;
mod token;
mod validity;

pub use algorithm::SignatureAlgorithm;
pub(super) use claims::Claims;
pub use key::VerificationKey;
pub(super) use token::bearer;
pub use validity::Validity;

use super::text::only;
use super::{Headers, cookie};
use key::signature_holds;
use token::SplitToken;

/// The maximum length of a token. Longer tokens are rejected unread.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// The maximum number of tokens of one request that are verified.
const TOKENS_MAX: usize = 4;

/// The place of the token in a request, and the conditions for accepting it.
#[derive(Clone, Debug)]
pub struct Jwt {
    /// The place of the token in a request.
    pub place: TokenLocation,
    /// The proof that a token needs.
    pub proof: Proof,
    /// The claims that a token must have.
    pub validity: Validity,
}

/// The place where a request carries its token.
#[derive(Clone, Debug)]
pub enum TokenLocation {
    /// In a header, by lower-case name.
    Header(String),
    /// In a cookie.
    Cookie(String),
}

/// The proof that a token is genuine.
#[derive(Clone, Debug)]
pub enum Proof {
    /// One of these keys signed it, by one of these algorithms.
    Keys {
        /// The keys.
        keys: Vec<VerificationKey>,
        /// The algorithms that a token may use.
        algorithms: Vec<SignatureAlgorithm>,
    },
    /// The proxy that sent it has verified it.
    Proxy,
}

/// The reason why a token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    TooLong,
    Malformed,
    Algorithm,
    UnknownKey,
    Signature,
    Expired,
    NotYetValid,
    Issuer,
    Audience,
    /// A proxy should have verified the token, but the request did not come from a trusted proxy.
    NotFromProxy,
}

impl TokenError {
    /// Returns the reason as a metric label.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::TooLong => "too-long",
            Self::Malformed => "malformed",
            Self::Algorithm => "algorithm",
            Self::UnknownKey => "unknown-key",
            Self::Signature => "signature",
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::NotFromProxy => "not-from-proxy",
        }
    }
}

impl Jwt {
    /// Returns the request's token, if it carries exactly one.
    pub(super) fn find<'a>(&self, headers: impl Headers<'a>) -> Option<&'a [u8]> {
        match &self.place {
            TokenLocation::Header(name) => bearer(only(headers.values(name))?, name),
            TokenLocation::Cookie(name) => {
                let lines = headers.values("cookie");
                only(lines.flat_map(|line| cookie::values(line, name)))
            }
        }
        .filter(|token| !token.is_empty())
    }

    /// Returns the request's tokens if it carries several: the first few and the last, because an application
    /// would use one of these. The number is bounded because any client can cause this work.
    pub(super) fn find_several<'a>(&self, headers: impl Headers<'a>) -> Vec<&'a [u8]> {
        let mut tokens: Vec<&'a [u8]> = match &self.place {
            TokenLocation::Header(name) => headers.values(name).collect(),
            TokenLocation::Cookie(name) => {
                let lines = headers.values("cookie");
                lines.flat_map(|line| cookie::values(line, name)).collect()
            }
        };
        if tokens.len() < 2 {
            return Vec::new();
        }
        if let TokenLocation::Header(name) = &self.place {
            tokens = tokens.iter().filter_map(|it| bearer(it, name)).collect();
        }
        tokens.retain(|token| !token.is_empty());
        if tokens.len() > TOKENS_MAX {
            let last = tokens.pop();
            tokens.truncate(TOKENS_MAX.saturating_sub(1));
            tokens.extend(last);
        }
        tokens
    }

    /// Verifies a token and returns its claims. `trusted` is true if a trusted proxy sent the request.
    pub(super) fn claims(
        &self,
        token: &[u8],
        trusted: bool,
        now: &dyn Fn() -> u64,
    ) -> Result<Claims, TokenError> {
        #[cfg(debug_assertions)]
        crate::work::count_token();
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let token = SplitToken::split(token).ok_or(TokenError::Malformed)?;
        match &self.proof {
            Proof::Keys { keys, algorithms } => verify(&token, keys, algorithms)?,
            Proof::Proxy if trusted => {}
            Proof::Proxy => return Err(TokenError::NotFromProxy),
        }
        let claims = Claims::read(token.payload).ok_or(TokenError::Malformed)?;
        self.validity.check(&claims, now)?;
        Ok(claims)
    }
}

/// Checks that one of the keys signed the token, with an algorithm that is allowed and fits the key. The
/// algorithm that the token names can only narrow the choice.
fn verify(
    token: &SplitToken<'_>,
    keys: &[VerificationKey],
    allowed: &[SignatureAlgorithm],
) -> Result<(), TokenError> {
    let head = token.head().ok_or(TokenError::Malformed)?;
    let algorithm = head.algorithm.ok_or(TokenError::Algorithm)?;
    if !allowed.contains(&algorithm) {
        return Err(TokenError::Algorithm);
    }
    let fitting = || keys.iter().filter(|key| key.fits(algorithm));
    if fitting().next().is_none() {
        return Err(TokenError::Algorithm);
    }
    let named = |key: &&VerificationKey| key.id.as_ref() == head.key_id.as_ref();
    let unnamed = |key: &&VerificationKey| key.id.is_none();
    let key = match &head.key_id {
        Some(_) => fitting()
            .find(named)
            .or_else(|| only(fitting().filter(unnamed))),
        // Do not try all keys: any client could cause that work.
        None => only(fitting()),
    };
    let key = key.ok_or(TokenError::UnknownKey)?;
    let signature = token.signature().ok_or(TokenError::Malformed)?;
    if signature_holds(key, algorithm, token.signed, &signature) {
        Ok(())
    } else {
        Err(TokenError::Signature)
    }
}
