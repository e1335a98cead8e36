//! Settlements of reservations and their results, as JSON.

use super::fault::WireFault;
use super::json::{JsonReader, JsonResult, write_string};
use super::question::LIST_MAX;
use std::borrow::Cow;
use std::fmt;
use tidegate::{SettleError, SettledReservation};

/// A settlement of one reservation.
pub struct Settlement<'a> {
    /// The id of the reservation.
    pub reservation: Cow<'a, str>,
    /// The number of units used.
    pub actual: u64,
}

/// One settlement, or several sent together.
#[derive(Debug)]
pub enum ToSettle<'a> {
    /// One settlement.
    One(Settlement<'a>),
    /// A list, which gets a list in response. It may be empty.
    Several(Vec<Settlement<'a>>),
}

/// The operation, which determines the fields besides the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleVerb {
    /// Settles at the units used: `{"reservation","actual"}`.
    Commit,
    /// Refunds everything, because nothing was used: `{"reservation"}`.
    Refund,
}

impl<'a> ToSettle<'a> {
    /// Reads one settlement or a list of up to [`LIST_MAX`].
    ///
    /// ```
    /// use tidegate_server::wire::settle::{SettleVerb, ToSettle};
    ///
    /// let text = br#"{"reservation": "r1abc", "actual": 150}"#;
    /// let ToSettle::One(settlement) = ToSettle::read(text, SettleVerb::Commit)? else {
    ///     unreachable!("it is one");
    /// };
    /// assert_eq!((&*settlement.reservation, settlement.actual), ("r1abc", 150));
    ///
    /// let fault = ToSettle::read(br#"{"reservation": "r1abc"}"#, SettleVerb::Commit).unwrap_err();
    /// assert_eq!(fault.to_string(), "actual: expected a whole number, found none");
    /// # Ok::<(), Box<tidegate_server::wire::fault::WireFault>>(())
    /// ```
    pub fn read(text: &'a [u8], kind: SettleVerb) -> JsonResult<Self> {
        let mut reader = JsonReader::new(text)?;
        let read = if reader.peek() == Some(b'[') {
            let mut several = Vec::new();
            reader.list(|reader, nth| {
                if nth == LIST_MAX {
                    let message = format!("more than {LIST_MAX} reservations in one list");
                    return Err(WireFault::new(reader.at(), message));
                }
                several.push(one(reader, kind)?);
                Ok(())
            })?;
            Self::Several(several)
        } else {
            Self::One(one(&mut reader, kind)?)
        };
        reader.end()?;
        Ok(read)
    }
}

fn one<'a>(reader: &mut JsonReader<'a>, kind: SettleVerb) -> JsonResult<Settlement<'a>> {
    let start = reader.at();
    let (mut reservation, mut actual) = (None, None);
    reader.object(|reader, name| {
        let is_twice = match &**name {
            "reservation" => reservation.replace(reader.string()?).is_some(),
            "actual" if kind == SettleVerb::Commit => actual.replace(reader.whole()?).is_some(),
            "actual" => {
                let message = "nothing was used of what is refunded; else commit it";
                return Err(WireFault::new(reader.at(), message));
            }
            _ => return Err(WireFault::new(reader.at(), unknown(kind))),
        };
        if is_twice {
            return Err(WireFault::new(reader.at(), "this field is there twice"));
        }
        Ok(())
    })?;
    let missing = |name, what: &str| {
        let message = format!("expected {what}, found none");
        WireFault::new(start, message).within(name)
    };
    Ok(Settlement {
        reservation: reservation
            .ok_or_else(|| missing("reservation", "the id of a reservation"))?,
        actual: match kind {
            SettleVerb::Commit => actual.ok_or_else(|| missing("actual", "a whole number"))?,
            SettleVerb::Refund => 0,
        },
    })
}

fn unknown(kind: SettleVerb) -> &'static str {
    match kind {
        SettleVerb::Commit => "there is no such field; there are reservation, actual",
        SettleVerb::Refund => "there is no such field; there is reservation",
    }
}

/// Writes the result of settling: `{"state","estimate","actual"}`.
pub fn write(settled: &SettledReservation, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"state\":");
    write_string(settled.state().as_str(), out);
    for (name, number) in [
        (&b",\"estimate\":"[..], settled.estimate()),
        (&b",\"actual\":"[..], settled.actual()),
    ] {
        out.extend_from_slice(name);
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
    out.push(b'}');
}

/// Writes that one of a list could not be settled: `{"state":"unknown"}`, or `{"state":"unavailable"}` if the
/// same settlement may be sent again. A single settlement gets a status instead.
pub fn write_unsettled(error: &SettleError, out: &mut Vec<u8>) {
    out.extend_from_slice(match error {
        SettleError::Unknown => b"{\"state\":\"unknown\"}",
        _ => b"{\"state\":\"unavailable\"}",
    });
}

// Implemented by hand: the id is enough to settle.
impl fmt::Debug for Settlement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settlement")
            .field("actual", &self.actual)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str, kind: SettleVerb) -> String {
        let read = ToSettle::read(text.as_bytes(), kind);
        read.expect_err("it is wrong").to_string()
    }

    #[test]
    fn what_is_wrong_is_said_where_it_is() {
        use SettleVerb::{Commit, Refund};
        for (text, kind, expected) in [
            (
                "{}",
                Commit,
                "reservation: expected the id of a reservation, found none",
            ),
            ("[]1", Commit, "expected nothing more, found a number"),
            (
                r#"{"reservation": 1}"#,
                Refund,
                "reservation: expected a string, found a number",
            ),
            (
                r#"[{"reservation": "a", "actual": 1}, {"reservation": "b", "actual": -1}]"#,
                Commit,
                "[1].actual: expected a whole number from 0 to 18446744073709551615, found -1",
            ),
            (
                r#"{"reservation": "a", "actual": 1}"#,
                Refund,
                "actual: nothing was used of what is refunded; else commit it",
            ),
            (
                r#"{"reservation": "a", "reservation": "a"}"#,
                Refund,
                "reservation: this field is there twice",
            ),
            (
                r#"{"id": "a"}"#,
                Commit,
                "id: there is no such field; there are reservation, actual",
            ),
        ] {
            assert_eq!(fault(text, kind), expected, "{text}");
        }
        let many = format!("[{}]", [r#"{"reservation": "a"}"#; LIST_MAX + 1].join(","));
        let expected = "[100]: more than 100 reservations in one list";
        assert_eq!(fault(&many, Refund), expected);
    }

    #[test]
    fn ids_are_not_shown() {
        let read = ToSettle::read(br#"{"reservation": "r1secret"}"#, SettleVerb::Refund);
        let shown = format!("{:?}", read.expect("it is right"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
