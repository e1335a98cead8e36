//! Seals, which encrypt and authenticate reservation ids.
//!
//! An id is `r1`, followed by 24 random bytes and the payload in URL-safe base64. The payload is encrypted
//! and authenticated by ChaCha20-Poly1305. Each id has its own key, derived from the seal and from those
//! bytes. So a seal may close any number of ids; random nonces alone, of which there are 2^96, would start to
//! repeat within the life of a seal that is never changed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;

/// The prefix of every id: the version of the format.
const VERSION: &str = "r1";

/// The context of key derivation, and the associated data of the payload.
const CONTEXT: &str = "tidegate reservation 1";

/// The context of the seal for permits.
const PERMIT_CONTEXT: &str = "tidegate permit 1";

const SALT_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// The maximum size of a payload.
pub(super) const PAYLOAD_BYTES_MAX: usize = 8 << 10;

/// The maximum length of an id: base64 turns three bytes into four characters.
const ID_BYTES_MAX: usize =
    VERSION.len() + (SALT_BYTES + PAYLOAD_BYTES_MAX + TAG_BYTES).div_ceil(3) * 4;

/// A secret that closes and opens ids.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seal([u8; 32]);

/// The unique token of a reservation, in the name of the mark that settling it leaves.
#[derive(Clone, Copy)]
pub(super) struct OnceToken([u8; 12]);

/// The contents of an id.
pub(super) struct UnsealedId {
    pub(super) payload: Vec<u8>,
    pub(super) mark: OnceToken,
}

impl Seal {
    /// Creates a random seal.
    pub(super) fn random() -> Self {
        Self(random())
    }

    /// Returns the seal derived from this secret, the same in every instance.
    pub(super) fn of_secret(secret: &[u8]) -> Self {
        Self(blake3::derive_key(CONTEXT, secret))
    }

    /// Creates a seal from the bytes that instances agreed on.
    pub(super) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the seal for ids of permits, which opens no reservation.
    pub(super) fn of_permits(self) -> Self {
        Self(blake3::derive_key(PERMIT_CONTEXT, &self.0))
    }

    /// Returns the bytes, to share them with other instances.
    pub(super) fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Returns the id that carries `payload`; `None` if that is too long.
    pub(super) fn close(self, payload: &[u8]) -> Option<String> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            return None;
        }
        let salt: [u8; SALT_BYTES] = random();
        let (key, _) = self.derive(&salt);
        let mut sealed = payload.to_vec();
        key.seal_in_place_append_tag(nonce(), aad(), &mut sealed)
            .ok()?;
        let mut bytes = salt.to_vec();
        bytes.append(&mut sealed);
        let mut id = VERSION.to_owned();
        URL_SAFE_NO_PAD.encode_string(&bytes, &mut id);
        Some(id)
    }

    /// Returns true if `id` has the form of an id, so that it is worth fetching the store's seal for it.
    pub(super) fn may_open(id: &str) -> bool {
        id.starts_with(VERSION) && id.len() <= ID_BYTES_MAX
    }

    /// Returns the contents of `id`; `None` if this seal did not close it.
    pub(super) fn open(self, id: &str) -> Option<UnsealedId> {
        if id.len() > ID_BYTES_MAX {
            return None;
        }
        let mut sealed = URL_SAFE_NO_PAD.decode(id.strip_prefix(VERSION)?).ok()?;
        let (salt, _) = sealed.split_first_chunk::<SALT_BYTES>()?;
        let (key, mark) = self.derive(salt);
        sealed.drain(..SALT_BYTES);
        let length = key.open_in_place(nonce(), aad(), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(UnsealedId {
            payload: sealed,
            mark,
        })
    }

    /// Returns the key of one id, and its token.
    fn derive(self, salt: &[u8; SALT_BYTES]) -> (LessSafeKey, OnceToken) {
        let mut derived = blake3::Hasher::new_keyed(&self.0)
            .update(salt)
            .finalize_xof();
        let (mut key, mut mark) = ([0; 32], [0; 12]);
        derived.fill(&mut key);
        derived.fill(&mut mark);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key);
        let key = key.expect("a key of this algorithm has 32 bytes");
        (LessSafeKey::new(key), OnceToken(mark))
    }
}

impl OnceToken {
    /// Returns the token in the form used in bucket names.
    pub(super) fn to_hex(self) -> String {
        let digits = |byte: &u8| format!("{byte:02x}");
        self.0.iter().map(digits).collect()
    }
}

/// Returns random bytes from the system.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system has random bytes");
    bytes
}

/// Returns the nonce, which is constant because every key closes one id.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn aad() -> Aad<&'static [u8]> {
    Aad::from(CONTEXT.as_bytes())
}

// Implemented by hand: it is a secret.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seal").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sealed_id_opens_only_with_the_same_seal(
            payload in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let seal = Seal::random();
            let id = seal.close(&payload).unwrap();
            prop_assert_eq!(&seal.open(&id).unwrap().payload, &payload);
            prop_assert!(Seal::random().open(&id).is_none());
            prop_assert!(id.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)));
        }

        #[test]
        fn a_modified_id_does_not_open(
            payload in prop::collection::vec(any::<u8>(), 0..100),
            at in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let seal = Seal::random();
            let id = seal.close(&payload).unwrap();
            let mut changed = id.clone().into_bytes();
            changed[at.index(id.len())] ^= 1 << bit;
            if let Ok(changed) = String::from_utf8(changed) {
                prop_assert!(seal.open(&changed).is_none());
            }
            prop_assert!(seal.open(&id[..at.index(id.len())]).is_none());
            let longer = id.clone() + "A";
            prop_assert!(seal.open(&longer).is_none());
        }

        #[test]
        fn a_forged_id_does_not_open(text in ".{0,400}", start in 0..3_usize) {
            let text = format!("{}{text}", &VERSION[..start.min(2)]);
            prop_assert!(Seal::random().open(&text).is_none());
        }
    }

    #[test]
    fn two_ids_look_unrelated_and_keep_their_marks() {
        let seal = Seal::of_secret(b"secret");
        let (one, other) = (seal.close(b"same").unwrap(), seal.close(b"same").unwrap());
        assert_ne!(one, other);
        let mark = |id: &str| seal.open(id).unwrap().mark.to_hex();
        assert_ne!(mark(&one), mark(&other));
        assert_eq!(mark(&one), mark(&one));
        assert_eq!(mark(&one).len(), 24);
        let again = Seal::of_secret(b"secret");
        assert!(again == seal && again.open(&one).is_some());
        assert!(Seal::of_secret(b"other") != seal);
    }

    #[test]
    fn an_oversized_id_is_rejected_without_reading_it() {
        let seal = Seal::random();
        let longest = seal.close(&vec![7; PAYLOAD_BYTES_MAX]).unwrap();
        assert!(seal.open(&longest).is_some() && longest.len() <= ID_BYTES_MAX);
        assert!(seal.close(&vec![7; PAYLOAD_BYTES_MAX + 1]).is_none());
        assert!(seal.open(&"r1".repeat(ID_BYTES_MAX)).is_none());
    }

    #[test]
    fn a_seal_is_not_shown() {
        let seal = Seal::from_bytes([0xab; 32]);
        assert_eq!(format!("{seal:?}"), "Seal(..)");
    }
}
