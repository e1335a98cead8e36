//! Permits of requests in flight by their ids, as JSON.

use super::answer::{self, DecisionMember};
use super::fault::WireFault;
use super::json::{JsonReader, JsonResult};
use super::members::{JsonMember, json_members, unknown_member};
use super::question::lifetime;
use super::schema::{closed, object, whole_or_null};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use tidegate::Acquisition;

json_members! {
    /// A field of a request to renew or release permits.
    enum PermitField {
        /// The id of the permits.
        Id = "id",
        /// The time until they end, in milliseconds from now. Default: the time that they were acquired for. Not
        /// with a release.
        TtlMs = "ttl_ms",
    }
}

json_members! {
    /// A member of the result.
    enum PermitMember {
        /// True if the permits are held until the new end. False if they have ended, were released, or the id is
        /// unknown: acquire again.
        Held = "held",
        /// True if permits were released. False if there were none any more, or the id is unknown.
        Released = "released",
    }
}

/// The operation on permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitVerb {
    /// Prolongs them.
    Renew,
    /// Releases them.
    Release,
}

/// A request to renew or release permits.
pub struct PermitRequest<'a> {
    /// The id of the permits.
    pub id: Cow<'a, str>,
    /// The time until their new end.
    pub ttl: Option<Duration>,
}

impl<'a> PermitRequest<'a> {
    /// Reads a request.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_frontends::wire::permit::{PermitRequest, PermitVerb};
    ///
    /// let text = br#"{"id": "r1abc", "ttl_ms": 500}"#;
    /// let request = PermitRequest::read(text, PermitVerb::Renew)?;
    /// assert_eq!((&*request.id, request.ttl), ("r1abc", Some(Duration::from_millis(500))));
    /// assert!(PermitRequest::read(text, PermitVerb::Release).is_err());
    /// # Ok::<(), Box<tidegate_frontends::wire::fault::WireFault>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The text is not JSON, or has an unknown, a duplicate or no `id`.
    pub fn read(text: &'a [u8], verb: PermitVerb) -> JsonResult<Self> {
        let mut reader = JsonReader::new(text)?;
        let start = reader.at();
        let (mut id, mut ttl) = (None, None);
        reader.object(|reader, name| {
            let is_twice = match PermitField::named(name).filter(|field| verb.has(*field)) {
                Some(PermitField::Id) => id.replace(reader.string()?).is_some(),
                Some(PermitField::TtlMs) => ttl.replace(lifetime(reader)?).is_some(),
                None => return Err(WireFault::new(reader.at(), unknown_member(verb.fields()))),
            };
            if is_twice {
                return Err(WireFault::new(reader.at(), "duplicate field"));
            }
            Ok(())
        })?;
        reader.end()?;
        let missing = || {
            let fault = WireFault::new(start, "expected the id of permits, found none");
            fault.within(PermitField::Id.name())
        };
        Ok(Self {
            id: id.ok_or_else(missing)?,
            ttl: ttl.flatten().map(Duration::from_millis),
        })
    }
}

// Implemented by hand: any holder of the id can release the permits.
impl fmt::Debug for PermitRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitRequest")
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

impl PermitVerb {
    fn has(self, field: PermitField) -> bool {
        field == PermitField::Id || self == Self::Renew
    }

    fn fields(self) -> impl Iterator<Item = PermitField> {
        let fields = PermitField::ALL.iter().copied();
        fields.filter(move |field| self.has(*field))
    }

    fn member(self) -> PermitMember {
        match self {
            Self::Renew => PermitMember::Held,
            Self::Release => PermitMember::Released,
        }
    }
}

/// Writes the result of acquiring: the fields of [a decision](answer::write) and, if the request holds permits,
/// `"id"`, and `"expires_ms"`, the time until they end.
pub fn write_acquired(acquired: &Acquisition, out: &mut Vec<u8>) {
    answer::write(acquired.decision(), out);
    if let (Some(id), Some(ttl)) = (acquired.id(), acquired.expires_after()) {
        answer::add_id((DecisionMember::Id, id), ttl, out);
    }
}

/// Writes the result of renewing or releasing.
pub fn write_result(verb: PermitVerb, is_done: bool, out: &mut Vec<u8>) {
    out.push(b'{');
    out.extend_from_slice(verb.member().first_key());
    out.extend_from_slice(if is_done { b"true" } else { b"false" });
    out.push(b'}');
}

/// Returns the schema of a request.
pub(crate) fn schema(verb: PermitVerb) -> Value {
    closed(object(
        verb.fields(),
        &[PermitField::Id],
        |field| match field {
            PermitField::Id => json!({ "type": "string" }),
            PermitField::TtlMs => whole_or_null(1),
        },
    ))
}

/// Returns the schema of a result.
pub(crate) fn result_schema(verb: PermitVerb) -> Value {
    object(
        [verb.member()],
        &[verb.member()],
        |_| json!({ "type": "boolean" }),
    )
}
