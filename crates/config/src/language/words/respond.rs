//! The words of `respond`.

use super::Words;
use tidegate_policy::respond::{
    Dialect, LimitHeaderValue, NameVisibility, Profile, ResetFormat, RlsHeaders, XField,
};

pub(crate) static PROFILE: Words<Profile> = Words {
    noun: "a profile",
    meanings: &Profile::ALL,
    known_elsewhere: &[("traefik", "traefik-plugin"), ("standard", "default")],
};

pub(crate) static DIALECT: Words<Dialect> = Words {
    noun: "a header format",
    meanings: &[
        ("x-ratelimit", Dialect::XRateLimit),
        ("draft-03", Dialect::Draft03),
        ("draft-11", Dialect::Draft11),
    ],
    known_elsewhere: &[
        ("x-rate-limit", "x-ratelimit"),
        ("draft-04", "draft-03"),
        ("draft-05", "draft-03"),
        ("draft-06", "draft-03"),
        ("draft-08", "draft-11"),
        ("draft-09", "draft-11"),
        ("draft-10", "draft-11"),
        ("ratelimit", "draft-11"),
        ("ietf", "draft-11"),
    ],
};

pub(crate) static X_FIELD: Words<XField> = Words {
    noun: "a header of `x-ratelimit`",
    meanings: &[
        ("limit", XField::Limit),
        ("remaining", XField::Remaining),
        ("reset", XField::Reset),
        ("type", XField::Type),
    ],
    known_elsewhere: &[],
};

pub(crate) static LIMIT_COUNTS: Words<LimitHeaderValue> = Words {
    noun: "a meaning of X-RateLimit-Limit",
    meanings: &[
        ("capacity", LimitHeaderValue::Capacity),
        ("per-second", LimitHeaderValue::PerSecond),
    ],
    known_elsewhere: &[
        ("burst", "capacity"),
        ("rate", "per-second"),
        ("rps", "per-second"),
    ],
};

pub(crate) static RESET: Words<ResetFormat> = Words {
    noun: "a time format",
    meanings: &[
        ("epoch", ResetFormat::Epoch),
        ("delta", ResetFormat::Delta),
        ("rfc3339", ResetFormat::Rfc3339),
    ],
    known_elsewhere: &[
        ("unix", "epoch"),
        ("timestamp", "epoch"),
        ("seconds", "delta"),
        ("relative", "delta"),
        ("iso", "rfc3339"),
        ("iso8601", "rfc3339"),
    ],
};

pub(crate) static NAMES: Words<NameVisibility> = Words {
    noun: "a setting for names",
    meanings: &[
        ("shown", NameVisibility::Shown),
        ("hidden", NameVisibility::Hidden),
    ],
    known_elsewhere: &[("show", "shown"), ("hide", "hidden"), ("false", "hidden")],
};

pub(crate) static RLS: Words<RlsHeaders> = Words {
    noun: "a setting for Envoy headers",
    meanings: &[
        ("refused", RlsHeaders::Refused),
        ("always", RlsHeaders::Always),
        ("none", RlsHeaders::None),
    ],
    known_elsewhere: &[
        ("all", "always"),
        ("never", "none"),
        ("false", "none"),
        ("off", "none"),
        ("true", "always"),
    ],
};
