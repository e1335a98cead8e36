//! A reservation, as JSON.

use super::answer::{self, DecisionMember};
use tidegate::Reservation;

/// Writes a reservation: the fields of [a decision](answer::write) and, if it is allowed, `"reservation"`,
/// its id, and `"expires_ms"`, its lifetime.
pub fn write(reservation: &Reservation, out: &mut Vec<u8>) {
    answer::write(reservation.decision(), out);
    if let (Some(id), Some(ttl)) = (reservation.id(), reservation.expires_after()) {
        answer::add_id((DecisionMember::Reservation, id), ttl, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tidegate::{Limiter, Request};

    #[test]
    fn only_allowed_reservations_have_an_id() {
        let limiter = Limiter::from_yaml(
            "policies: [{ name: api, reserve: 90s, limits: [{ name: all, rate: 1/h }] }]",
        );
        let limiter = limiter.expect("a valid policy");
        let reserve = || {
            let reserved = limiter.reserve(&Request::new(), None).now_or_never();
            let reserved = reserved.expect("memory answers").expect("it may");
            let mut out = Vec::new();
            write(&reserved, &mut out);
            let text = String::from_utf8(out).expect("an answer is text");
            let id = reserved.id().map(str::to_owned);
            (text, id)
        };
        let (allowed, id) = reserve();
        let id = id.expect("there was room");
        assert_eq!(
            allowed,
            format!(
                r#"{{"allowed":true,"limit":"all","band":"1/h","remaining":0,"retry_after_ms":0,"reset_ms":3600000,"reservation":"{id}","expires_ms":90000}}"#
            )
        );
        let (refused, id) = reserve();
        assert!(id.is_none() && refused.starts_with(r#"{"allowed":false,"limit":"all""#));
        assert!(!refused.contains("reservation") && refused.ends_with('}'));
    }
}
