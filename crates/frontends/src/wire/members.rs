//! Tables of the members of JSON objects. Readers and writers take the names from them, and the `OpenAPI`
//! document the schemas, so no member can be missing there.

/// A member of one kind of JSON object.
pub(crate) trait JsonMember: Copy + Eq + 'static {
    /// All members, in the order of the documentation.
    const ALL: &'static [Self];

    /// Returns the member of this name.
    fn named(name: &str) -> Option<Self>;

    /// Returns the name.
    fn name(self) -> &'static str;

    /// Returns the name as it is written behind another member: `,"name":`.
    fn key(self) -> &'static [u8];

    /// Returns the name as it is written as the first member: `"name":`.
    #[inline]
    fn first_key(self) -> &'static [u8] {
        self.key().get(1..).unwrap_or_default()
    }

    /// Returns the description for callers.
    fn about(self) -> &'static str;
}

/// Returns the error for an unknown member, with the known ones.
#[cold]
pub(crate) fn unknown_member<M: JsonMember>(known: impl IntoIterator<Item = M>) -> String {
    let known: Vec<_> = known.into_iter().map(JsonMember::name).collect();
    format!("unknown field; expected {}", known.join(", "))
}

/// Defines the members of a JSON object as an enum that is a [`JsonMember`]. The comment of a member is its
/// description.
macro_rules! json_members {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $table:ident {
            $($(#[doc = $about:literal])+ $member:ident = $name:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $table {
            $($(#[doc = $about])+ $member,)+
        }

        impl $crate::wire::members::JsonMember for $table {
            const ALL: &'static [Self] = &[$(Self::$member),+];

            #[inline]
            fn named(name: &str) -> Option<Self> {
                Some(match name {
                    $($name => Self::$member,)+
                    _ => return None,
                })
            }

            #[inline]
            fn name(self) -> &'static str {
                match self {
                    $(Self::$member => $name,)+
                }
            }

            #[inline]
            fn key(self) -> &'static [u8] {
                match self {
                    $(Self::$member => concat!(",\"", $name, "\":").as_bytes(),)+
                }
            }

            fn about(self) -> &'static str {
                // Lines of a comment begin with a space, which separates them here.
                match self {
                    $(Self::$member => concat!($($about),+).trim_ascii(),)+
                }
            }
        }
    };
}

pub(crate) use json_members;

#[cfg(test)]
mod tests {
    use super::*;

    json_members! {
        /// Two members.
        enum Sample {
            /// One line,
            /// and another.
            First = "first",
            /// The second.
            Second = "second_one",
        }
    }

    #[test]
    fn a_table_has_names_keys_and_descriptions() {
        assert_eq!(Sample::ALL, [Sample::First, Sample::Second]);
        for member in Sample::ALL {
            assert_eq!(Sample::named(member.name()), Some(*member));
        }
        assert_eq!(Sample::named("First"), None);
        assert_eq!(Sample::Second.key(), b",\"second_one\":");
        assert_eq!(Sample::First.first_key(), b"\"first\":");
        assert_eq!(Sample::First.about(), "One line, and another.");
        let message = unknown_member(Sample::ALL.iter().copied());
        assert_eq!(message, "unknown field; expected first, second_one");
    }
}
