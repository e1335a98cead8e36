//! Why something may differ. Each is known, and on purpose.

/// Why something differs between nginx and the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Unsorted,
}

impl Why {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Unsorted => "unsorted",
        }
    }
}
