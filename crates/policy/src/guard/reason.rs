//! Why a request is answered as it is, in one word.

/// Why a request is answered as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnswerReason {
    /// Every limit that it meets allows it, or it meets none.
    Allowed,
    /// A guard exempts it from all limits.
    Exempt,
    /// A limit is exceeded.
    Limited,
    /// A limit was exceeded, and its `block` refuses the client for a time.
    LimitBlocked,
    /// A guard refuses it: whoever asks is blocked.
    Blocked,
    /// A guard refuses it: the address is on a blacklist.
    Blacklisted,
    /// It lacks an identity without which a limit does not let it pass.
    NoIdentity,
    /// A plan does not know the subject, or has nothing for it, and then it is to be refused.
    NoPlan,
    /// The store did not answer, and a limit refuses for that reason.
    NoStore,
}

impl AnswerReason {
    /// The word for it in answers, logs and metrics.
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
