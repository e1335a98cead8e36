//! The words of routes and upstreams.

use super::Words;
use tidegate_policy::route::{Balance, HostHeader, Http2Use, Paths, RefundRule};

pub(crate) static BALANCE: Words<Balance> = Words {
    noun: "a load balancing method",
    meanings: &[
        ("round-robin", Balance::RoundRobin),
        ("least-requests", Balance::LeastRequests),
    ],
    known_elsewhere: &[
        ("rr", "round-robin"),
        ("least-conn", "least-requests"),
        ("least-connections", "least-requests"),
        ("least-request", "least-requests"),
    ],
};

pub(crate) static REFUND: Words<RefundRule> = Words {
    noun: "a refund condition",
    meanings: &[
        ("never", RefundRule::Never),
        ("unreached", RefundRule::Unreached),
    ],
    known_elsewhere: &[("none", "never"), ("false", "never"), ("off", "never")],
};

pub(crate) static HOST_HEADER: Words<HostHeader> = Words {
    noun: "a Host setting",
    meanings: &[
        ("keep", HostHeader::Keep),
        ("upstream", HostHeader::Upstream),
    ],
    known_elsewhere: &[
        ("client", "keep"),
        ("preserve", "keep"),
        ("rewrite", "upstream"),
    ],
};

pub(crate) static PATHS: Words<Paths> = Words {
    noun: "a path mode",
    meanings: &[("strict", Paths::Strict), ("lenient", Paths::Lenient)],
    known_elsewhere: &[
        ("reject", "strict"),
        ("loose", "lenient"),
        ("off", "lenient"),
    ],
};

pub(crate) static HTTP2: Words<Http2Use> = Words {
    noun: "an HTTP/2 setting",
    meanings: &[
        ("auto", Http2Use::Auto),
        ("true", Http2Use::Always),
        ("false", Http2Use::Never),
    ],
    known_elsewhere: &[
        ("yes", "true"),
        ("on", "true"),
        ("no", "false"),
        ("off", "false"),
    ],
};

pub(crate) static EJECT: Words<()> = Words {
    noun: "an ejection setting",
    meanings: &[("off", ())],
    known_elsewhere: &[("false", "off"), ("no", "off"), ("never", "off")],
};
