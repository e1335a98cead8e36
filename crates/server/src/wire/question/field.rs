//! The fields of a check request.

/// A field of a check request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuestionField {
    AtMs,
    Policy,
    Ip,
    User,
    ApiKey,
    Method,
    Host,
    Path,
    Route,
    Headers,
    Attributes,
    Cost,
    TtlMs,
    Descriptors,
}

impl QuestionField {
    /// All fields, in the order of the documentation.
    const ALL: [Self; 14] = [
        Self::AtMs,
        Self::Policy,
        Self::Ip,
        Self::User,
        Self::ApiKey,
        Self::Method,
        Self::Host,
        Self::Path,
        Self::Route,
        Self::Headers,
        Self::Attributes,
        Self::Cost,
        Self::TtlMs,
        Self::Descriptors,
    ];

    /// Returns the field of this name.
    #[inline]
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "at_ms" => Self::AtMs,
            "policy" => Self::Policy,
            "ip" => Self::Ip,
            "user" => Self::User,
            "api_key" => Self::ApiKey,
            "method" => Self::Method,
            "host" => Self::Host,
            "path" => Self::Path,
            "route" => Self::Route,
            "headers" => Self::Headers,
            "attributes" => Self::Attributes,
            "cost" => Self::Cost,
            "ttl_ms" => Self::TtlMs,
            "descriptors" => Self::Descriptors,
            _ => return None,
        })
    }

    /// Returns the name of the field.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AtMs => "at_ms",
            Self::Policy => "policy",
            Self::Ip => "ip",
            Self::User => "user",
            Self::ApiKey => "api_key",
            Self::Method => "method",
            Self::Host => "host",
            Self::Path => "path",
            Self::Route => "route",
            Self::Headers => "headers",
            Self::Attributes => "attributes",
            Self::Cost => "cost",
            Self::TtlMs => "ttl_ms",
            Self::Descriptors => "descriptors",
        }
    }

    /// Returns the bit of the field in a set of fields.
    #[inline]
    pub(super) const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// Returns the error for an unknown field, with the known ones. The times are omitted: they belong to
    /// traces and to reservations, and their authors know them.
    #[cold]
    pub(super) fn unknown() -> String {
        let asked = Self::ALL
            .iter()
            .filter(|field| !matches!(field, Self::AtMs | Self::TtlMs));
        let known: Vec<_> = asked.map(|field| field.name()).collect();
        format!("there is no such field; there are {}", known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name_and_has_its_own_bit() {
        let mut seen = 0;
        for field in QuestionField::ALL {
            assert_eq!(QuestionField::named(field.name()), Some(field));
            assert_eq!(seen & field.bit(), 0);
            seen |= field.bit();
        }
        assert_eq!(QuestionField::named("At_ms"), None);
    }
}
