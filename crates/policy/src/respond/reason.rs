//! The reason of a response, in one word.

/// The reason of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnswerReason {
    /// Every matching limit allows the request, or none matches.
    Allowed,
    /// A guard exempts it from all limits.
    Exempt,
    /// A limit is exceeded.
    Limited,
    /// A limit was exceeded, and its `block` refuses the client for a time.
    LimitBlocked,
    /// A guard refuses it: the client is blocked.
    Blocked,
    /// A guard refuses it: the address is on a blacklist.
    Blacklisted,
    /// It lacks an identity that a limit requires.
    NoIdentity,
    /// A plan has no rate for the subject, and is set to refuse in that case.
    NoPlan,
    /// The store did not respond, and a limit refuses for that reason.
    NoStore,
}

impl AnswerReason {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::Allowed,
        Self::Exempt,
        Self::Limited,
        Self::LimitBlocked,
        Self::Blocked,
        Self::Blacklisted,
        Self::NoIdentity,
        Self::NoPlan,
        Self::NoStore,
    ];

    /// Returns the reason's name in responses, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Exempt => "exempt",
            Self::Limited => "limited",
            Self::LimitBlocked => "limit-blocked",
            Self::Blocked => "blocked",
            Self::Blacklisted => "blacklisted",
            Self::NoIdentity => "no-identity",
            Self::NoPlan => "no-plan",
            Self::NoStore => "no-store",
        }
    }
}
