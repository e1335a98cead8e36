//! One policy, guard or route of a configuration.

/// One policy, guard or route of a configuration, and the text that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDocument {
    /// Its kind.
    pub kind: DocumentKind,
    /// Its name.
    pub name: String,
    /// The number of the text that contains it: 0 for the file, 1 for the first part after it, and so on.
    pub part: usize,
    /// The document in JSON, in the order written. Variables are not expanded, and values whose names suggest
    /// a secret are hidden.
    pub json: String,
    /// A digest that changes with anything in the document, including hidden values.
    pub digest: String,
    /// The digests of its limits, in order, if it is a policy.
    pub limit_digests: Vec<String>,
}

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    /// One of `policies`.
    Policy,
    /// One of `guards`.
    Guard,
    /// One of `routes`.
    Route,
}

impl DocumentKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Policy, Self::Guard, Self::Route];

    /// The field of a document that contains its name.
    pub const NAME_FIELD: &str = "name";

    /// Returns the kind as a noun.
    pub fn word(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Guard => "guard",
            Self::Route => "route",
        }
    }

    /// Returns the section of a configuration that lists this kind.
    pub fn section(self) -> &'static str {
        match self {
            Self::Policy => "policies",
            Self::Guard => "guards",
            Self::Route => "routes",
        }
    }
}
