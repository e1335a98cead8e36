//! The words that a setting accepts.

mod respond;
mod route;

pub(crate) use respond::{DIALECT, LIMIT_COUNTS, NAMES, PROFILE, RESET, RLS, X_FIELD};
pub(crate) use route::{BALANCE, EJECT, HOST_HEADER, HTTP2, PATHS, REFUND};

use crate::admin::AdminRole;
use crate::alerts::{AlertFormat, AlertKind};
use crate::source::DocumentFormat;
use crate::statsd;
use std::fmt;
use tidegate_core::{Algorithm, Align, LimitMode, OnChange};
use tidegate_policy::calendar::Weekday;
use tidegate_policy::client::{AddressHeader, Trust, jwt};
use tidegate_policy::guard::AnswerReason;
use tidegate_policy::limit::{ChargeTime, KeyPart, MissingIdentity, OnFailure};
use tidegate_policy::plan::{PlanFormat, RateOwner};
use tidegate_policy::policy::Evaluate;
use tidegate_policy::slot_group::SlotTag;
use tidegate_policy::store::LocalShare;
use tidegate_policy::store::{KeyNameStyle, LayoutWord};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::closest;

/// Words and their meanings, for both the reader and the schema.
pub(crate) struct Words<T: 'static> {
    /// The thing that they choose, such as "an algorithm".
    noun: &'static str,
    meanings: &'static [(&'static str, T)],
    /// Words of other systems, each with Tidegate's word.
    known_elsewhere: &'static [(&'static str, &'static str)],
}

/// The words alone, without their meanings.
pub trait Vocabulary: fmt::Debug + Sync {
    /// Returns the words, in the order of the documentation.
    fn list(&self) -> Vec<&'static str>;
}

pub(crate) static EVALUATE: Words<Evaluate> = Words {
    noun: "an evaluation mode",
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

pub(crate) static ALGORITHM: Words<Algorithm> = Words {
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

/// The alignment of windows; `None` is the calendar.
pub(crate) static ALIGN: Words<Option<Align>> = Words {
    noun: "a window alignment",
    meanings: &[
        ("first-request", Some(Align::FirstRequest)),
        ("clock", Some(Align::Clock)),
        ("calendar", None),
    ],
    known_elsewhere: &[("epoch", "clock"), ("local", "calendar")],
};

/// The first day of a week.
pub(crate) static WEEK_START: Words<Weekday> = Words {
    noun: "a day of the week",
    meanings: &[
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ],
    known_elsewhere: &[
        ("mon", "monday"),
        ("tue", "tuesday"),
        ("wed", "wednesday"),
        ("thu", "thursday"),
        ("fri", "friday"),
        ("sat", "saturday"),
        ("sun", "sunday"),
        ("Monday", "monday"),
        ("Sunday", "sunday"),
    ],
};

/// The modes of limits, guards and routes; `None` is off.
pub(crate) static MODE: Words<Option<LimitMode>> = Words {
    noun: "a mode",
    meanings: &[
        ("enforce", Some(LimitMode::Enforce)),
        ("shadow", Some(LimitMode::Shadow)),
        ("off", None),
    ],
    known_elsewhere: &[
        ("dry-run", "shadow"),
        ("shadow_mode", "shadow"),
        ("on", "enforce"),
        ("true", "enforce"),
        ("disabled", "off"),
        ("false", "off"),
    ],
};

/// Combination of several matching limits; `true` if one of them is enough.
pub(crate) static COMBINE: Words<bool> = Words {
    noun: "a way to combine limits",
    meanings: &[("all", false), ("any", true)],
    known_elsewhere: &[("every", "all"), ("one", "any"), ("quota", "any")],
};

/// The mode of the whole configuration.
pub(crate) static PLAIN_MODE: Words<LimitMode> = Words {
    noun: "a mode here",
    meanings: &[
        ("enforce", LimitMode::Enforce),
        ("shadow", LimitMode::Shadow),
    ],
    known_elsewhere: &[("dry-run", "shadow"), ("shadow_mode", "shadow")],
};

/// The format of a source's document.
pub(crate) static FORMAT: Words<DocumentFormat> = Words {
    noun: "a format",
    meanings: &[
        ("tidegate", DocumentFormat::Tidegate),
        ("traefik-plugin", DocumentFormat::TraefikPlugin),
        ("fluxgate", DocumentFormat::Fluxgate),
    ],
    known_elsewhere: &[("traefik", "traefik-plugin"), ("yaml", "tidegate")],
};

pub(crate) static PLAN_FORMAT: Words<PlanFormat> = Words {
    noun: "a format of plans",
    meanings: &PlanFormat::ALL,
    known_elsewhere: &[("yaml", "tidegate"), ("json", "tidegate")],
};

/// The roles of administrators.
pub(crate) static ROLE: Words<AdminRole> = Words {
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
pub(crate) static REASON: Words<AnswerReason> = Words {
    noun: "a refusal reason",
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

pub(crate) static MISSING: Words<MissingIdentity> = Words {
    noun: "a setting for missing identities",
    meanings: &[
        ("address", MissingIdentity::Address),
        ("skip", MissingIdentity::Skip),
        ("refuse", MissingIdentity::Refuse),
    ],
    known_elsewhere: &[("ip", "address"), ("deny", "refuse"), ("allow", "skip")],
};

pub(crate) static ON_FAILURE: Words<OnFailure> = Words {
    noun: "a failure policy",
    meanings: &[
        ("local", OnFailure::Local),
        ("allow", OnFailure::Allow),
        ("deny", OnFailure::Deny),
        ("error", OnFailure::Error),
    ],
    known_elsewhere: &[("open", "allow"), ("closed", "deny"), ("refuse", "deny")],
};

pub(crate) static ON_CHANGE: Words<OnChange> = Words {
    noun: "a setting for changed limits",
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
pub(crate) static ON_REFUSAL: Words<bool> = Words {
    noun: "a refusal mode",
    meanings: &[("refuse", false), ("wait", true)],
    known_elsewhere: &[
        ("queue", "wait"),
        ("delay", "wait"),
        ("reject", "refuse"),
        ("deny", "refuse"),
    ],
};

pub(crate) static CHARGE: Words<ChargeTime> = Words {
    noun: "a charging mode",
    meanings: &[
        ("if-fits", ChargeTime::IfFits),
        ("always", ChargeTime::Always),
        ("even-if-refused", ChargeTime::EvenIfRefused),
    ],
    known_elsewhere: &[],
};

pub(crate) static FLAG: Words<bool> = Words {
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

pub(crate) static LOCAL_SHARE: Words<LocalShare> = Words {
    noun: "a share",
    meanings: &[("auto", LocalShare::Auto)],
    known_elsewhere: &[],
};

/// The values of `store.redis.topology`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TopologyWord {
    /// Chosen from the form of the URL.
    #[default]
    Auto,
    Standalone,
    Sentinel,
    Cluster,
}

pub(crate) static TOPOLOGY: Words<TopologyWord> = Words {
    noun: "a topology of Redis",
    meanings: &[
        ("auto", TopologyWord::Auto),
        ("standalone", TopologyWord::Standalone),
        ("sentinel", TopologyWord::Sentinel),
        ("cluster", TopologyWord::Cluster),
    ],
    known_elsewhere: &[("single", "standalone"), ("failover", "sentinel")],
};

pub(crate) static TAG: Words<SlotTag> = Words {
    noun: "a hash tag",
    meanings: &[("subject", SlotTag::Subject), ("policy", SlotTag::Policy)],
    known_elsewhere: &[("key", "subject")],
};

pub(crate) static KEY_NAMES: Words<KeyNameStyle> = Words {
    noun: "a format of key names",
    meanings: &[
        ("hashed", KeyNameStyle::Hashed),
        ("literal", KeyNameStyle::Literal),
    ],
    known_elsewhere: &[("hash", "hashed"), ("plain", "literal")],
};

pub(crate) static LAYOUT: Words<LayoutWord> = Words {
    noun: "a layout",
    meanings: &[("packed", LayoutWord::Packed), ("open", LayoutWord::Open)],
    known_elsewhere: &[],
};

/// The keys without a name after them.
pub(crate) static KEY: Words<fn() -> KeyPart> = Words {
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

pub(crate) static ADDRESS: Words<AddressHeader> = Words {
    noun: "a header with the client address",
    meanings: &[
        ("x-forwarded-for", AddressHeader::XForwardedFor),
        ("forwarded", AddressHeader::Forwarded),
        ("x-real-ip", AddressHeader::XRealIp),
    ],
    known_elsewhere: &[("xff", "x-forwarded-for"), ("real-ip", "x-real-ip")],
};

pub(crate) static TRUST: Words<Trust> = Words {
    noun: "a trust level",
    meanings: &[("proxies", Trust::Proxies), ("anyone", Trust::Anyone)],
    known_elsewhere: &[("proxy", "proxies"), ("all", "anyone"), ("any", "anyone")],
};

/// The party that has verified a token. Only a proxy can do so on behalf of Tidegate.
pub(crate) static VERIFIED_BY: Words<()> = Words {
    noun: "a verifier of tokens",
    meanings: &[("proxy", ())],
    known_elsewhere: &[("proxies", "proxy")],
};

pub(crate) static JWT_ALGORITHM: Words<jwt::SignatureAlgorithm> = Words {
    noun: "a token algorithm",
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

/// The owner of a plan's rate.
pub(crate) static OF: Words<RateOwner> = Words {
    noun: "a rate owner",
    meanings: &[("subject", RateOwner::Subject), ("group", RateOwner::Group)],
    known_elsewhere: &[("project", "subject"), ("workspace", "group")],
};

pub(crate) static ALERT: Words<AlertKind> = Words {
    noun: "an alert event",
    meanings: &AlertKind::ALL,
    known_elsewhere: &[],
};

pub(crate) static ALERT_FORMAT: Words<AlertFormat> = Words {
    noun: "an alert format",
    meanings: &[("json", AlertFormat::Json), ("form", AlertFormat::Form)],
    known_elsewhere: &[("telegram", "form"), ("markdown", "form")],
};

pub(crate) static STATSD_FORMAT: Words<statsd::Format> = Words {
    noun: "a statsd format",
    meanings: &[
        ("statsd", statsd::Format::Statsd),
        ("dogstatsd", statsd::Format::Dogstatsd),
    ],
    known_elsewhere: &[("datadog", "dogstatsd"), ("plain", "statsd")],
};

pub(crate) static STATSD_PROTOCOL: Words<statsd::StatsdProtocol> = Words {
    noun: "a statsd protocol",
    meanings: &[
        ("udp", statsd::StatsdProtocol::Udp),
        ("tcp", statsd::StatsdProtocol::Tcp),
    ],
    known_elsewhere: &[],
};

pub(crate) static UNLIMITED: Words<()> = Words {
    noun: "a size",
    meanings: &[("unlimited", ())],
    known_elsewhere: &[],
};

// === impl Words ===

impl<T> fmt::Debug for Words<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.noun)
    }
}

impl<T: Clone + Sync> Words<T> {
    /// Returns the meaning of `word`.
    pub(crate) fn get(&self, word: &str) -> Option<T> {
        let found = self.meanings.iter().find(|(known, _)| *known == word)?;
        Some(found.1.clone())
    }

    /// Returns the meaning of `word`, or a fault with a suggestion.
    pub(crate) fn parse(&self, word: &str) -> Result<T, ConfigFault> {
        self.get(word).ok_or_else(|| {
            let message = format!("{} is not {}", ConfigFault::quote(word), self.noun);
            ConfigFault::new(message).help(self.suggestion(word))
        })
    }

    /// Suggests a replacement for `word`.
    pub(crate) fn suggestion(&self, word: &str) -> String {
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
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|word| format!("`{word}`")).collect();
            format!("{} or `{last}`", first.join(", "))
        }
    }
}
