//! The fields of a check request.

use crate::wire::members::{JsonMember, json_members, unknown_member};

json_members! {
    /// A field of a check request.
    pub(super) enum QuestionField {
        /// The time in milliseconds since the Unix epoch. Only in traces.
        AtMs = "at_ms",
        /// The policy to apply. Default: the first one.
        Policy = "policy",
        /// The client's IP address.
        Ip = "ip",
        /// The user.
        User = "user",
        /// The API key, a secret. Tidegate stores it only as a hash.
        ApiKey = "api_key",
        /// The method of the request to decide.
        Method = "method",
        /// The host of the request to decide.
        Host = "host",
        /// The path of the request to decide, with its query if a limit or `client` uses it.
        Path = "path",
        /// The route of the request to decide.
        Route = "route",
        /// The headers of the request to decide: name to value, or to a list of values for a repeated
        /// header. At most 256 values.
        Headers = "headers",
        /// Attributes of the request to decide: name to value, each name once. At most 256 values.
        Attributes = "attributes",
        /// The units to consume; an estimate in a reservation. 0 reads without consuming. A number, or a map
        /// of units to amounts, in which `requests` is 1 if it is left out. A number is of the only unit that
        /// the policy counts, else of `requests`. Default: the cost that `client` finds, else one request.
        Cost = "cost",
        /// The lifetime of the reservation in milliseconds, at most the policy's `max_ttl`. Default: set by
        /// the policy.
        TtlMs = "ttl_ms",
        /// Descriptors of the request, as a proxy sends them.
        Descriptors = "descriptors",
    }
}

impl QuestionField {
    /// Returns the bit of the field in a set of fields.
    #[inline]
    pub(super) const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// Returns the error for an unknown field, with the known ones. The times are omitted: they belong to
    /// traces and to reservations, and their authors know them.
    #[cold]
    pub(super) fn unknown() -> String {
        let known = Self::ALL.iter().copied();
        unknown_member(known.filter(|field| !matches!(field, Self::AtMs | Self::TtlMs)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_name_and_its_own_bit() {
        let mut seen = 0;
        for field in QuestionField::ALL {
            assert_eq!(QuestionField::named(field.name()), Some(*field));
            assert_eq!(seen & field.bit(), 0);
            seen |= field.bit();
        }
        assert_eq!(QuestionField::named("At_ms"), None);
    }
}
