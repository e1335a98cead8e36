//! One policy, guard or route of a configuration.

/// One policy, guard or route of a configuration, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDocument {
    /// What it is.
    pub kind: DocumentKind,
    /// What it is called.
    pub name: String,
    /// In which text it stands: 0 for the file, 1 for the first part after it, and so on.
    pub part: usize,
    /// What it says, in JSON, in the order written. Variables are not replaced in it, and values whose
    /// names suggest a secret are hidden.
    pub json: String,
    /// Differs whenever anything in it does, what is hidden included.
    pub digest: String,
    /// The same of each of its limits, in order, where it is a policy.
    pub limit_digests: Vec<String>,
}

/// What a document is.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Policy, Self::Guard, Self::Route];

    /// It in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Guard => "guard",
            Self::Route => "route",
        }
    }

    /// The list of a configuration that it stands in.
    pub fn section(self) -> &'static str {
        match self {
            Self::Policy => "policies",
            Self::Guard => "guards",
            Self::Route => "routes",
        }
    }

    /// The field that holds its name.
    pub fn name_field(self) -> &'static str {
        match self {
            Self::Policy | Self::Guard => "name",
            Self::Route => "id",
        }
    }
}
