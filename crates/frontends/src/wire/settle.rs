//! Settlements of reservations and their results, as JSON.

use super::cost;
use super::fault::WireFault;
use super::json::{JsonReader, JsonResult, write_string};
use super::members::{JsonMember, json_members, unknown_member};
use super::question::LIST_MAX;
use super::schema::{closed, object};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use tidegate::{CostMap, SettleError, SettleState, SettledReservation, SettledUnit};

json_members! {
    /// A field of a settlement.
    enum SettleField {
        /// The id of the reservation.
        Reservation = "reservation",
        /// The units used: a number, or a map of units to amounts. A unit that the map leaves out settles at
        /// its estimate. A number is of the only unit other than `requests` that was reserved, else of
        /// `requests`.
        Actual = "actual",
    }
}

json_members! {
    /// A member of the result of a settlement.
    enum SettledMember {
        /// The state of the reservation. `settled`: unused units are refunded. `already`: it was settled
        /// before. `expired` and `kept`: nothing is refunded. In a list also `unknown`, `invalid` and
        /// `unavailable`, for a settlement that failed.
        State = "state",
        /// The units reserved: a number, or amounts by unit if the policy counts several. Absent if the
        /// settlement failed.
        Estimate = "estimate",
        /// The units used, in the same form. Absent if the settlement failed.
        Actual = "actual",
        /// The mistake in `actual`. Only with `invalid`.
        Detail = "detail",
    }
}

/// States of a list's items that could not be settled.
const UNKNOWN: &str = "unknown";
const INVALID: &str = "invalid";
const UNAVAILABLE: &str = "unavailable";

/// A settlement of one reservation.
pub struct Settlement<'a> {
    /// The id of the reservation.
    pub reservation: Cow<'a, str>,
    /// The units used; `None` for a refund.
    pub actual: Option<CostMap<'a>>,
}

/// One settlement, or several sent together.
#[derive(Debug)]
pub enum SettlementBody<'a> {
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

impl<'a> SettlementBody<'a> {
    /// Reads one settlement or a list of up to [`LIST_MAX`].
    ///
    /// ```
    /// use tidegate::CostMap;
    /// use tidegate_frontends::wire::settle::{SettleVerb, SettlementBody};
    ///
    /// let text = br#"{"reservation": "r1abc", "actual": 150}"#;
    /// let SettlementBody::One(settlement) = SettlementBody::read(text, SettleVerb::Commit)? else {
    ///     unreachable!("it is one");
    /// };
    /// assert_eq!((&*settlement.reservation, settlement.actual), ("r1abc", Some(CostMap::Number(150))));
    ///
    /// let fault = SettlementBody::read(br#"{"reservation": "r1abc"}"#, SettleVerb::Commit).unwrap_err();
    /// assert_eq!(fault.to_string(), "actual: expected a whole number, found none");
    /// # Ok::<(), Box<tidegate_frontends::wire::fault::WireFault>>(())
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
        let is_twice = match SettleField::named(name) {
            Some(SettleField::Reservation) => reservation.replace(reader.string()?).is_some(),
            Some(SettleField::Actual) if kind.has(SettleField::Actual) => {
                actual.replace(cost::read(reader)?).is_some()
            }
            Some(SettleField::Actual) => {
                let message = "a refund has no `actual`; use commit for a partial refund";
                return Err(WireFault::new(reader.at(), message));
            }
            None => return Err(WireFault::new(reader.at(), unknown_member(kind.fields()))),
        };
        if is_twice {
            return Err(WireFault::new(reader.at(), "duplicate field"));
        }
        Ok(())
    })?;
    let missing = |field: SettleField, what: &str| {
        let message = format!("expected {what}, found none");
        WireFault::new(start, message).within(field.name())
    };
    Ok(Settlement {
        reservation: reservation
            .ok_or_else(|| missing(SettleField::Reservation, "the id of a reservation"))?,
        actual: match kind {
            SettleVerb::Commit => {
                Some(actual.ok_or_else(|| missing(SettleField::Actual, "a whole number"))?)
            }
            SettleVerb::Refund => None,
        },
    })
}

impl SettleVerb {
    fn has(self, field: SettleField) -> bool {
        match field {
            SettleField::Reservation => true,
            SettleField::Actual => self == Self::Commit,
        }
    }

    fn fields(self) -> impl Iterator<Item = SettleField> {
        let fields = SettleField::ALL.iter().copied();
        fields.filter(move |field| self.has(*field))
    }
}

/// Returns the schema of a settlement.
pub(crate) fn schema(kind: SettleVerb) -> Value {
    let required: Vec<_> = kind.fields().collect();
    closed(object(kind.fields(), &required, |field| match field {
        SettleField::Reservation => json!({ "type": "string" }),
        SettleField::Actual => cost::schema(),
    }))
}

/// Returns the schema of the result of one settlement.
pub(crate) fn settled_schema() -> Value {
    use SettledMember::{Actual, Estimate, State};
    let states = SettleState::ALL.map(SettleState::as_str);
    result_schema(
        &states,
        &[State, Estimate, Actual],
        &[State, Estimate, Actual],
    )
}

/// Returns the schema of the result of one settlement of a list.
pub(crate) fn settled_item_schema() -> Value {
    let failed = [UNKNOWN, INVALID, UNAVAILABLE];
    let states = SettleState::ALL.iter().map(|state| state.as_str());
    let states: Vec<_> = states.chain(failed).collect();
    result_schema(&states, SettledMember::ALL, &[SettledMember::State])
}

fn result_schema(states: &[&str], members: &[SettledMember], required: &[SettledMember]) -> Value {
    object(members.iter().copied(), required, |member| match member {
        SettledMember::State => json!({ "type": "string", "enum": states }),
        SettledMember::Estimate | SettledMember::Actual => cost::schema(),
        SettledMember::Detail => json!({ "type": "string" }),
    })
}

/// Writes the result of settling: `{"state","estimate","actual"}`.
pub fn write(settled: &SettledReservation, out: &mut Vec<u8>) {
    write_state(settled.state().as_str(), out);
    write_units(SettledMember::Estimate, settled, |unit| unit.estimate, out);
    write_units(SettledMember::Actual, settled, |unit| unit.actual, out);
    out.push(b'}');
}

/// Writes the amounts by unit; a number if the policy counts one unit.
fn write_units(
    member: SettledMember,
    settled: &SettledReservation,
    amount: impl Fn(&SettledUnit) -> u64,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(member.key());
    let number = |number: u64, out: &mut Vec<u8>| {
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    };
    if let [only] = settled.units() {
        return number(amount(only), out);
    }
    for (nth, unit) in settled.units().iter().enumerate() {
        out.push(if nth == 0 { b'{' } else { b',' });
        write_string(&unit.name, out);
        out.push(b':');
        number(amount(unit), out);
    }
    out.push(b'}');
}

/// Writes that one of a list could not be settled: `{"state":"unknown"}`, `{"state":"invalid","detail"}`, or
/// `{"state":"unavailable"}` if the same settlement may be sent again. A single settlement gets a status instead.
pub fn write_unsettled(error: &SettleError, out: &mut Vec<u8>) {
    let state = match error {
        SettleError::Unknown => UNKNOWN,
        SettleError::BadCost(_) => INVALID,
        _ => UNAVAILABLE,
    };
    write_state(state, out);
    if let SettleError::BadCost(fault) = error {
        out.extend_from_slice(SettledMember::Detail.key());
        write_string(&fault.to_string(), out);
    }
    out.push(b'}');
}

/// Opens the object with its first member.
fn write_state(state: &str, out: &mut Vec<u8>) {
    out.push(b'{');
    out.extend_from_slice(SettledMember::State.first_key());
    write_string(state, out);
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
        let read = SettlementBody::read(text.as_bytes(), kind);
        read.expect_err("an invalid document").to_string()
    }

    #[test]
    fn errors_of_a_settlement_name_their_position() {
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
                "actual: a refund has no `actual`; use commit for a partial refund",
            ),
            (
                r#"{"reservation": "a", "reservation": "a"}"#,
                Refund,
                "reservation: duplicate field",
            ),
            (
                r#"{"id": "a"}"#,
                Commit,
                "id: unknown field; expected reservation, actual",
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
        let read = SettlementBody::read(br#"{"reservation": "r1secret"}"#, SettleVerb::Refund);
        let shown = format!("{:?}", read.expect("a valid config"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
