//! Reserving: charging an estimate now, and settling it by what was used in the end.
//!
//! | module | what it is |
//! |---|---|
//! | this one | what a limiter keeps for it, which is next to nothing |
//! | `reserve` | charging an estimate, and the id that tells of it |
//! | `parts` | what was charged of a question, and where |
//! | `settle` | commit and refund: once, however often they are sent |
//! | `mark` | what makes that so |
//! | `reservation`, `settled` | what comes of both |
//! | `payload` | what an id carries |
//! | `bytes` | how it is written |
//! | `seal` | how it is kept from being read, and from being made up |
//! | `keys` | by which secret |
//!
//! To reserve is to check: the same asks, the same step of the store, and nothing more is written.
//! What was charged travels in the id. To settle is one step for each bucket: take the reservation's
//! *mark* in that bucket's own group of keys and, if it was free, give back or charge the difference.
//! So it happens at most once, at whichever instance and however often it is sent, and nobody has to
//! clean up after those who never settle.

mod bytes;
mod keys;
mod mark;
mod parts;
mod payload;
mod reservation;
mod reserve;
mod seal;
mod settle;
mod settled;

pub(crate) use payload::ChargeHome;
pub use reservation::Reservation;
pub use settled::{SettleError, SettleState, SettledReservation};

use keys::ReservationSeals;

/// What a limiter keeps for reservations.
#[derive(Debug)]
pub(crate) struct ReservationState {
    keys: ReservationSeals,
    /// The number of this limiter among all that ever were: by it an id says whose own buckets it has
    /// charged. Never 0.
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
