//! The formats of documents of plans: Tidegate's own, and those of other systems.
//!
//! Readers translate the names of sections and fields of another format while they read. Everything after
//! that knows only Tidegate's own names.

use super::document::PlanLevel;

/// The format of a document of plans. The source of the document names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlanFormat {
    /// Tidegate's own.
    #[default]
    Tidegate,
    /// The event collector's: workspaces and projects, with `N` and `T` under `rateLimitSettings`.
    Collector,
    /// Tokens with `limit` and `window_seconds`. Their ids are secrets.
    Tokens,
}

/// The names of a format, each with Tidegate's name for it.
struct FormatNames {
    sections: &'static [(&'static str, PlanLevel)],
    fields: &'static [(&'static str, &'static str)],
    /// A map that holds fields of its entry.
    nested: Option<&'static str>,
}

static OWN: FormatNames = FormatNames {
    sections: &[],
    fields: &[],
    nested: None,
};

static COLLECTOR: FormatNames = FormatNames {
    sections: &[
        ("workspaces", PlanLevel::Group),
        ("projects", PlanLevel::Subject),
    ],
    fields: &[
        ("N", "amount"),
        ("T", "period"),
        ("workspace", "group"),
        ("workspaceId", "group"),
    ],
    nested: Some("rateLimitSettings"),
};

static TOKENS: FormatNames = FormatNames {
    sections: &[("tokens", PlanLevel::Subject)],
    fields: &[
        ("limit", "amount"),
        ("window_seconds", "period"),
        ("block_duration_seconds", "block"),
    ],
    nested: None,
};

impl PlanFormat {
    /// All formats, by their word in configurations.
    pub const ALL: [(&'static str, Self); 3] = [
        ("tidegate", Self::Tidegate),
        ("collector", Self::Collector),
        ("tokens", Self::Tokens),
    ];

    /// Returns true if the ids of subjects are always secrets in this format.
    pub fn hides_subjects(self) -> bool {
        self == Self::Tokens
    }

    fn names(self) -> &'static FormatNames {
        match self {
            Self::Tidegate => &OWN,
            Self::Collector => &COLLECTOR,
            Self::Tokens => &TOKENS,
        }
    }

    /// Returns the level of a section: each format also has Tidegate's own sections.
    pub(super) fn section(self, name: &str) -> Option<PlanLevel> {
        let foreign = self.names().sections.iter();
        let own = PlanLevel::ALL.into_iter();
        foreign
            .copied()
            .chain(own.map(|level| (level.plural(), level)))
            .find_map(|(known, level)| (known == name).then_some(level))
    }

    /// Returns the names of all sections.
    pub(super) fn sections(self) -> impl Iterator<Item = &'static str> {
        let foreign = self.names().sections.iter().map(|(name, _)| *name);
        foreign.chain(PlanLevel::ALL.map(PlanLevel::plural))
    }

    /// Returns Tidegate's name of a field; other names stay as they are.
    pub(super) fn field(self, name: &str) -> &str {
        let known = self.names().fields.iter().find(|(it, _)| *it == name);
        known.map_or(name, |(_, own)| own)
    }

    /// Returns true if the field `name` is a map with fields of its entry.
    pub(super) fn is_nested(self, name: &str) -> bool {
        self.names().nested == Some(name)
    }

    /// Returns help for a name that only another format has: Tidegate's name, and the format.
    pub(super) fn elsewhere(name: &str) -> Option<String> {
        let formats = Self::ALL.into_iter();
        formats.into_iter().find_map(|(word, format)| {
            let names = format.names();
            let section = names.sections.iter().find(|(it, _)| *it == name);
            let field = names.fields.iter().find(|(it, _)| *it == name);
            let own = section
                .map(|(_, level)| level.plural())
                .or(field.map(|(_, own)| *own))
                .map(|own| format!("use `{own}`, or `format: {word}` in the source"));
            let is_nested = names.nested == Some(name);
            own.or_else(|| {
                is_nested.then(|| {
                    format!("write its fields without it, or `format: {word}` in the source")
                })
            })
        })
    }
}
