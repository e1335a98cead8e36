//! The days of the week.

use crate::text::{ConfigFault, closest};

/// A day of the week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weekday {
    /// The first day of a week unless configured otherwise.
    #[default]
    Monday,
    /// The day after Monday.
    Tuesday,
    /// The day after Tuesday.
    Wednesday,
    /// The day after Wednesday.
    Thursday,
    /// The day after Thursday.
    Friday,
    /// The day after Friday.
    Saturday,
    /// The day after Saturday.
    Sunday,
}

impl Weekday {
    /// All of them, Monday first.
    pub const ALL: [Self; 7] = [
        Self::Monday,
        Self::Tuesday,
        Self::Wednesday,
        Self::Thursday,
        Self::Friday,
        Self::Saturday,
        Self::Sunday,
    ];

    /// Returns its word in the configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Monday => "monday",
            Self::Tuesday => "tuesday",
            Self::Wednesday => "wednesday",
            Self::Thursday => "thursday",
            Self::Friday => "friday",
            Self::Saturday => "saturday",
            Self::Sunday => "sunday",
        }
    }

    /// Reads its word.
    ///
    /// # Errors
    ///
    /// If the text is not the name of a day in lower case.
    pub fn parse(text: &str) -> Result<Self, ConfigFault> {
        let found = Self::ALL.into_iter().find(|day| day.word() == text);
        found.ok_or_else(|| {
            let help = match closest(text, Self::ALL.map(Self::word)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "expected `monday` to `sunday`".to_owned(),
            };
            let quoted = ConfigFault::quote(text);
            ConfigFault::new(format!("{quoted} is not a day of the week")).help(help)
        })
    }

    /// Returns the first such day since 1970-01-01, a Thursday, as days after it.
    pub(super) const fn first_day(self) -> i64 {
        match self {
            Self::Thursday => 0,
            Self::Friday => 1,
            Self::Saturday => 2,
            Self::Sunday => 3,
            Self::Monday => 4,
            Self::Tuesday => 5,
            Self::Wednesday => 6,
        }
    }
}
