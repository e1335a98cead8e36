//! Reservations: an estimate is charged now, and settled later by the actual usage.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the state that a limiter keeps for reservations, which is next to nothing |
//! | `reserve` | the terms of a reservation, and its id |
//! | `parts` | the charges of a request, and their locations |
//! | `settle` | commit and refund: effective once, idempotent |
//! | `usage` | the usage by unit |
//! | `warned` | the `warn` shares that usage beyond the estimate reaches |
//! | `once` | the marks that make them idempotent |
//! | `reservation`, `settled` | the results of both |
//! | `payload` | the contents of an id |
//! | `bytes` | the encoding of an id |
//! | `seal` | encryption and authentication of an id |
//! | `keys` | the secrets for that |
//! | `acquired` | permits that end by themselves, and their ids |
//!
//! A reservation is a check: the same asks, the same atomic step of the store, and nothing more is written.
//! The id carries the charges. Settling is one atomic step per bucket: take the reservation's *mark* in that
//! bucket's own group of keys and, if it was free, refund or charge the difference. So it happens at most
//! once, at any instance and for any number of calls, and no cleanup is needed for reservations that are
//! never settled.

mod acquired;
mod bytes;
mod keys;
mod once;
mod parts;
mod payload;
mod reservation;
mod reserve;
mod seal;
mod settle;
mod settled;
mod usage;
mod warned;

pub use acquired::Acquisition;
pub(crate) use acquired::{PermitPayload, new_permit_id};
pub(crate) use parts::charges_of;
pub use reservation::Reservation;
pub(crate) use reserve::ReserveTerms;
pub use settled::{SettleError, SettleState, SettledReservation, SettledUnit};
pub use warned::ShareWarning;

use keys::ReservationSeals;

/// The state that a limiter keeps for reservations.
#[derive(Debug)]
pub(crate) struct ReservationState {
    keys: ReservationSeals,
    /// A random number that identifies this limiter among all limiters: an id uses it to name the limiter
    /// whose local buckets it charged. Never 0.
    instance: u64,
}

impl Default for ReservationState {
    fn default() -> Self {
        Self {
            keys: ReservationSeals::new(),
            instance: u64::from_le_bytes(seal::random()).max(1),
        }
    }
}

impl ReservationState {
    /// Returns the state of a limiter that continues another one's buckets; `None` if it cannot be read.
    pub(crate) fn from_note(note: &[u8]) -> Option<Self> {
        let own = note.try_into().ok()?;
        Some(Self {
            keys: ReservationSeals::sealed_by(own),
            ..Self::default()
        })
    }

    /// Returns what a limiter needs that continues with the buckets of this one: a secret.
    pub(crate) fn to_note(&self) -> Vec<u8> {
        self.keys.own_bytes().to_vec()
    }
}
