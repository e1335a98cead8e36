//! The words that a setting accepts.

use super::fault::ConfigFault;
use super::local_share::LocalShare;
use super::store::{KeyNameStyle, LayoutWord, ModeWord};
use super::suggest::closest;
use crate::admin::AdminRole;
use crate::alerts::{AlertFormat, AlertKind};
use crate::client::{AddressHeader, Trust, jwt};
use crate::group::SlotTag;
use crate::guard::AnswerReason;
use crate::limit::{ChargeTime, Evaluate, KeyPart, Missing, OnFailure};
use crate::plan::RateOwner;
use crate::respond::{
    Dialect, LimitHeaderValue, NameVisibility, Profile, ResetFormat, RlsHeaders, XField,
};
use crate::route::{Balance, HostHeader, Http2Use, Paths, RefundRule};
use crate::source::DocumentFormat;
use crate::statsd;
use tidegate_core::{Algorithm, Align, LimitMode, OnChange};

/// Words and their meanings, for both the reader and the schema.
#[derive(Debug)]
pub(super) struct Words<T: 'static> {
    /// The thing that they choose, such as "an algorithm".
    noun: &'static str,
    meanings: &'static [(&'static str, T)],
    /// Words of other systems, each with Tidegate's word.
    known_elsewhere: &'static [(&'static str, &'static str)],
}

/// The words alone, without their meanings.
pub(crate) trait Vocabulary: Sync {
    /// Returns the words, in the order of the documentation.
    fn list(&self) -> Vec<&'static str>;
}

pub(super) static EVALUATE: Words<Evaluate> = Words {
    noun: "a way to evaluate a policy",
    meanings: &[
        ("all", Evaluate::All),
        ("first", Evaluate::First),
        ("each", Evaluate::Each),
    ],
    known_elsewhere: &[
        ("every", "all"),
        ("separate", "each"),
        ("independent", "each"),
    ],
};

pub(super) static ALGORITHM: Words<Algorithm> = Words {
    noun: "an algorithm",
    meanings: &[
        ("token-bucket", Algorithm::TokenBucket),
        ("fixed-window", Algorithm::FixedWindow(Align::FirstRequest)),
        ("sliding-window", Algorithm::SlidingWindow),
        ("sliding-log", Algorithm::SlidingLog),
        ("bucketed-window", Algorithm::BucketedWindow),
    ],
    known_elsewhere: &[
        ("gcra", "token-bucket"),
        ("leaky-bucket", "token-bucket"),
        ("sliding-window-log", "sliding-log"),
        ("sliding-window-counter", "sliding-window"),
        ("window", "fixed-window"),
    ],
};

pub(super) static ALIGN: Words<Align> = Words {
    noun: "a way to align windows",
    meanings: &[
        ("first-request", Align::FirstRequest),
        ("clock", Align::Clock),
    ],
    known_elsewhere: &[("epoch", "clock")],
};

/// The modes of a limit: the core's mode, and true for one of several quotas, of which a single one
/// that allows is enough.
pub(super) static MODE: Words<(LimitMode, bool)> = Words {
    noun: "a mode",
    meanings: &[
        ("enforce", (LimitMode::Enforce, false)),
        ("shadow", (LimitMode::Shadow, false)),
        ("quota", (LimitMode::Enforce, true)),
    ],
    known_elsewhere: &[
        ("dry-run", "shadow"),
        ("shadow_mode", "shadow"),
        ("quota_mode", "quota"),
    ],
};

/// The mode of a guard, and of the whole configuration.
pub(super) static PLAIN_MODE: Words<LimitMode> = Words {
    noun: "a mode here",
    meanings: &[
        ("enforce", LimitMode::Enforce),
        ("shadow", LimitMode::Shadow),
    ],
    known_elsewhere: &[("dry-run", "shadow"), ("shadow_mode", "shadow")],
};

/// The format of a source's document.
pub(super) static FORMAT: Words<DocumentFormat> = Words {
    noun: "a format",
    meanings: &[
        ("tidegate", DocumentFormat::Tidegate),
        ("traefik-plugin", DocumentFormat::TraefikPlugin),
        ("fluxgate", DocumentFormat::Fluxgate),
    ],
    known_elsewhere: &[("traefik", "traefik-plugin"), ("yaml", "tidegate")],
};

/// The roles of administrators.
pub(super) static ROLE: Words<AdminRole> = Words {
    noun: "a role",
    meanings: &AdminRole::ALL,
    known_elsewhere: &[
        ("reader", "read"),
        ("viewer", "read"),
        ("operator", "operate"),
        ("administrator", "admin"),
    ],
};

/// The reasons for a guard's refusal.
pub(super) static REASON: Words<AnswerReason> = Words {
    noun: "a reason to refuse",
    meanings: &[
        ("blocked", AnswerReason::Blocked),
        ("blacklisted", AnswerReason::Blacklisted),
    ],
    known_elsewhere: &[
        ("banned", "blacklisted"),
        ("denylisted", "blacklisted"),
        ("disabled", "blocked"),
        ("suspended", "blocked"),
    ],
};

pub(super) static MISSING: Words<Missing> = Words {
    noun: "a way to treat a missing identity",
    meanings: &[
        ("address", Missing::Address),
        ("skip", Missing::Skip),
        ("refuse", Missing::Refuse),
    ],
    known_elsewhere: &[("ip", "address"), ("deny", "refuse"), ("allow", "skip")],
};

pub(super) static ON_FAILURE: Words<OnFailure> = Words {
    noun: "a way to treat a store failure",
    meanings: &[
        ("local", OnFailure::Local),
        ("allow", OnFailure::Allow),
        ("deny", OnFailure::Deny),
        ("error", OnFailure::Error),
    ],
    known_elsewhere: &[("open", "allow"), ("closed", "deny"), ("refuse", "deny")],
};

pub(super) static ON_CHANGE: Words<OnChange> = Words {
    noun: "a way to treat a change of numbers",
    meanings: &[
        ("keep", OnChange::Keep),
        ("scale", OnChange::Scale),
        ("reset", OnChange::Reset),
    ],
    known_elsewhere: &[
        ("as-is", "keep"),
        ("proportionally", "scale"),
        ("proportional", "scale"),
        ("restart", "reset"),
    ],
};

/// The reaction to a request that does not fit; `true` if it waits.
pub(super) static ON_REFUSAL: Words<bool> = Words {
    noun: "a way to refuse",
    meanings: &[("refuse", false), ("wait", true)],
    known_elsewhere: &[
        ("queue", "wait"),
        ("delay", "wait"),
        ("reject", "refuse"),
        ("deny", "refuse"),
    ],
};

pub(super) static CHARGE: Words<ChargeTime> = Words {
    noun: "a way to charge",
    meanings: &[
        ("if-fits", ChargeTime::IfFits),
        ("always", ChargeTime::Always),
        ("even-if-refused", ChargeTime::EvenIfRefused),
    ],
    known_elsewhere: &[],
};

pub(super) static FLAG: Words<bool> = Words {
    noun: "true or false",
    meanings: &[("true", true), ("false", false)],
    known_elsewhere: &[
        ("yes", "true"),
        ("on", "true"),
        ("1", "true"),
        ("no", "false"),
        ("off", "false"),
        ("0", "false"),
    ],
};

pub(super) static LOCAL_SHARE: Words<LocalShare> = Words {
    noun: "a share",
    meanings: &[("auto", LocalShare::Auto)],
    known_elsewhere: &[],
};

pub(super) static STORE_MODE: Words<ModeWord> = Words {
    noun: "a mode of a store",
    meanings: &[
        ("auto", ModeWord::Auto),
        ("standalone", ModeWord::Standalone),
        ("sentinel", ModeWord::Sentinel),
        ("cluster", ModeWord::Cluster),
    ],
    known_elsewhere: &[("single", "standalone"), ("failover", "sentinel")],
};

pub(super) static TAG: Words<SlotTag> = Words {
    noun: "a hash tag",
    meanings: &[("subject", SlotTag::Subject), ("policy", SlotTag::Policy)],
    known_elsewhere: &[("key", "subject")],
};

pub(super) static KEY_NAMES: Words<KeyNameStyle> = Words {
    noun: "a form of names",
    meanings: &[
        ("hashed", KeyNameStyle::Hashed),
        ("literal", KeyNameStyle::Literal),
    ],
    known_elsewhere: &[("hash", "hashed"), ("plain", "literal")],
};

pub(super) static LAYOUT: Words<LayoutWord> = Words {
    noun: "a layout",
    meanings: &[("packed", LayoutWord::Packed), ("open", LayoutWord::Open)],
    known_elsewhere: &[],
};

pub(super) static PROFILE: Words<Profile> = Words {
    noun: "a profile",
    meanings: &Profile::ALL,
    known_elsewhere: &[("traefik", "traefik-plugin"), ("standard", "default")],
};

pub(super) static DIALECT: Words<Dialect> = Words {
    noun: "a dialect of header fields",
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

pub(super) static X_FIELD: Words<XField> = Words {
    noun: "a field of `x-ratelimit`",
    meanings: &[
        ("limit", XField::Limit),
        ("remaining", XField::Remaining),
        ("reset", XField::Reset),
        ("type", XField::Type),
    ],
    known_elsewhere: &[],
};

pub(super) static LIMIT_COUNTS: Words<LimitHeaderValue> = Words {
    noun: "a way to count a limit",
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

pub(super) static RESET: Words<ResetFormat> = Words {
    noun: "a way to write an instant",
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

pub(super) static NAMES: Words<NameVisibility> = Words {
    noun: "a way to treat names",
    meanings: &[
        ("shown", NameVisibility::Shown),
        ("hidden", NameVisibility::Hidden),
    ],
    known_elsewhere: &[("show", "shown"), ("hide", "hidden"), ("false", "hidden")],
};

pub(super) static RLS: Words<RlsHeaders> = Words {
    noun: "a word for when Envoy is given headers to add",
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

/// The keys without a name after them.
pub(super) static KEY: Words<fn() -> KeyPart> = Words {
    noun: "a key",
    meanings: &[
        ("ip", || KeyPart::Ip),
        ("user", || KeyPart::User),
        ("api-key", || KeyPart::ApiKey),
        ("consumer", || KeyPart::Attr("consumer".to_owned())),
        ("token", || KeyPart::Attr("token".to_owned())),
        ("route", || KeyPart::Route),
        ("host", || KeyPart::Host),
        ("method", || KeyPart::Method),
        ("path", || KeyPart::Path),
        ("descriptor", || KeyPart::Descriptor),
        ("group", || KeyPart::Group),
        ("global", || KeyPart::Global),
    ],
    known_elsewhere: &[
        ("address", "ip"),
        ("client", "ip"),
        ("client-ip", "ip"),
        ("remote-address", "ip"),
        ("user-id", "user"),
        ("consumer-id", "consumer"),
        ("url", "path"),
        ("none", "global"),
        ("descriptors", "descriptor"),
    ],
};

pub(super) static ADDRESS: Words<AddressHeader> = Words {
    noun: "a header that tells the address",
    meanings: &[
        ("x-forwarded-for", AddressHeader::XForwardedFor),
        ("forwarded", AddressHeader::Forwarded),
        ("x-real-ip", AddressHeader::XRealIp),
    ],
    known_elsewhere: &[("xff", "x-forwarded-for"), ("real-ip", "x-real-ip")],
};

pub(super) static TRUST: Words<Trust> = Words {
    noun: "a word for whom to trust",
    meanings: &[("proxies", Trust::Proxies), ("anyone", Trust::Anyone)],
    known_elsewhere: &[("proxy", "proxies"), ("all", "anyone"), ("any", "anyone")],
};

/// The party that has verified a token. Only a proxy can do so on behalf of Tidegate.
pub(super) static VERIFIED_BY: Words<()> = Words {
    noun: "a word for who has verified a token",
    meanings: &[("proxy", ())],
    known_elsewhere: &[("proxies", "proxy")],
};

pub(super) static JWT_ALGORITHM: Words<jwt::SignatureAlgorithm> = Words {
    noun: "an algorithm of tokens",
    meanings: &[
        ("HS256", jwt::SignatureAlgorithm::Hs256),
        ("HS384", jwt::SignatureAlgorithm::Hs384),
        ("HS512", jwt::SignatureAlgorithm::Hs512),
        ("RS256", jwt::SignatureAlgorithm::Rs256),
        ("RS384", jwt::SignatureAlgorithm::Rs384),
        ("RS512", jwt::SignatureAlgorithm::Rs512),
        ("PS256", jwt::SignatureAlgorithm::Ps256),
        ("PS384", jwt::SignatureAlgorithm::Ps384),
        ("PS512", jwt::SignatureAlgorithm::Ps512),
        ("ES256", jwt::SignatureAlgorithm::Es256),
        ("ES384", jwt::SignatureAlgorithm::Es384),
        ("EdDSA", jwt::SignatureAlgorithm::EdDsa),
    ],
    known_elsewhere: &[("Ed25519", "EdDSA")],
};

pub(super) static BALANCE: Words<Balance> = Words {
    noun: "a way to choose an upstream",
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

pub(super) static REFUND: Words<RefundRule> = Words {
    noun: "a reason to give a cost back",
    meanings: &[
        ("never", RefundRule::Never),
        ("unreached", RefundRule::Unreached),
    ],
    known_elsewhere: &[("none", "never"), ("false", "never"), ("off", "never")],
};

pub(super) static HOST_HEADER: Words<HostHeader> = Words {
    noun: "a way to choose the Host",
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

pub(super) static PATHS: Words<Paths> = Words {
    noun: "a way to read paths",
    meanings: &[("strict", Paths::Strict), ("lenient", Paths::Lenient)],
    known_elsewhere: &[
        ("reject", "strict"),
        ("loose", "lenient"),
        ("off", "lenient"),
    ],
};

pub(super) static HTTP2: Words<Http2Use> = Words {
    noun: "a way to speak HTTP/2",
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

pub(super) static EJECT: Words<()> = Words {
    noun: "a way to eject upstreams",
    meanings: &[("off", ())],
    known_elsewhere: &[("false", "off"), ("no", "off"), ("never", "off")],
};

/// The owner of a plan's rate.
pub(super) static OF: Words<RateOwner> = Words {
    noun: "whose rate it is",
    meanings: &[("subject", RateOwner::Subject), ("group", RateOwner::Group)],
    known_elsewhere: &[("project", "subject"), ("workspace", "group")],
};

pub(super) static ALERT: Words<AlertKind> = Words {
    noun: "something that alerts tell of",
    meanings: &AlertKind::ALL,
    known_elsewhere: &[],
};

pub(super) static ALERT_FORMAT: Words<AlertFormat> = Words {
    noun: "a way to write alerts",
    meanings: &[("json", AlertFormat::Json), ("form", AlertFormat::Form)],
    known_elsewhere: &[("telegram", "form"), ("markdown", "form")],
};

pub(super) static STATSD_FORMAT: Words<statsd::Format> = Words {
    noun: "a format of statistics",
    meanings: &[
        ("statsd", statsd::Format::Statsd),
        ("dogstatsd", statsd::Format::Dogstatsd),
    ],
    known_elsewhere: &[("datadog", "dogstatsd"), ("plain", "statsd")],
};

pub(super) static STATSD_PROTOCOL: Words<statsd::StatsdProtocol> = Words {
    noun: "a protocol for statistics",
    meanings: &[
        ("udp", statsd::StatsdProtocol::Udp),
        ("tcp", statsd::StatsdProtocol::Tcp),
    ],
    known_elsewhere: &[],
};

pub(super) static UNLIMITED: Words<()> = Words {
    noun: "a size",
    meanings: &[("unlimited", ())],
    known_elsewhere: &[],
};

// === impl Words ===

impl<T: Clone + Sync> Words<T> {
    /// Returns the meaning of `word`.
    pub(super) fn get(&self, word: &str) -> Option<T> {
        let found = self.meanings.iter().find(|(known, _)| *known == word)?;
        Some(found.1.clone())
    }

    /// Returns the meaning of `word`, or a fault with a suggestion.
    pub(super) fn parse(&self, word: &str) -> Result<T, ConfigFault> {
        self.get(word).ok_or_else(|| {
            let message = format!("{} is not {}", ConfigFault::quote(word), self.noun);
            ConfigFault::new(message).help(self.suggestion(word))
        })
    }

    /// Suggests a replacement for `word`.
    pub(super) fn suggestion(&self, word: &str) -> String {
        let known = self.meanings.iter().map(|(known, _)| *known);
        let elsewhere = self.known_elsewhere.iter().map(|(known, _)| *known);
        let meant = closest(word, elsewhere.chain(known));
        let meant = meant.map(|meant| {
            let ours = self
                .known_elsewhere
                .iter()
                .find(|(known, _)| *known == meant);
            ours.map_or(meant, |(_, ours)| *ours)
        });
        match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("expected {}", one_of(&self.list())),
        }
    }
}

impl<T: Sync> Vocabulary for Words<T> {
    fn list(&self) -> Vec<&'static str> {
        self.meanings.iter().map(|(word, _)| *word).collect()
    }
}

/// Joins words in backticks: `a`, `b` or `c`.
pub(super) fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|word| format!("`{word}`")).collect();
            format!("{} or `{last}`", first.join(", "))
        }
    }
}
