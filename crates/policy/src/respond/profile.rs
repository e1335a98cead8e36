//! The responses of other systems, as settings.
//!
//! A profile consists of settings only: a configuration with the same fields gives the same responses.

use super::{
    Dialect, Layer, LayeredSetting, LimitHeaderValue, RefusalLayer, ResetFormat, Wording, XField,
};

/// A named set of response settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// Tidegate's own: all common headers, and RFC 9457 for a refusal.
    #[default]
    Default,
    /// An API gateway: requests per second, the type of limit, problem details as `application/json`.
    Gateway,
    /// An event collector: 402, and no headers.
    Collector,
    /// A plugin for Traefik: 429, and no headers.
    TraefikPlugin,
    /// A limiter by token or address: times as text.
    Adr,
    /// `FluxGate`: the remaining amount, and the time to retry.
    Fluxgate,
}

/// The settings of a profile.
struct Preset {
    headers: &'static [Dialect],
    fields: &'static [XField],
    limit: LimitHeaderValue,
    reset: ResetFormat,
    status: u16,
    type_uri: Option<&'static str>,
    message: Option<&'static str>,
    content_type: &'static str,
    body: &'static str,
    /// The difference where a guard refuses because the client is blocked.
    blocked: GuardWording,
    /// The difference where a guard refuses an address on a blacklist.
    blacklisted: GuardWording,
}

/// The settings that differ where a guard refuses.
struct GuardWording {
    status: Option<u16>,
    message: Option<&'static str>,
}

/// No difference.
const SAME: GuardWording = GuardWording {
    status: None,
    message: None,
};

/// The three common fields.
const THREE: &[XField] = &[XField::Limit, XField::Remaining, XField::Reset];

const JSON: &str = "application/json";

static DEFAULT: Preset = Preset {
    headers: &[Dialect::XRateLimit, Dialect::Draft11],
    fields: THREE,
    limit: LimitHeaderValue::Capacity,
    reset: ResetFormat::Epoch,
    status: 429,
    type_uri: None,
    message: None,
    content_type: "application/problem+json",
    body: r#"{"type":"{type}","title":"{title}","status":{status},"detail":"{detail}","correlationId":"{correlation_id}","violated-policies":{violated_policies}}"#,
    blocked: SAME,
    blacklisted: SAME,
};

static GATEWAY: Preset = Preset {
    headers: &[Dialect::XRateLimit],
    fields: &[
        XField::Limit,
        XField::Remaining,
        XField::Reset,
        XField::Type,
    ],
    limit: LimitHeaderValue::PerSecond,
    reset: ResetFormat::Epoch,
    status: 429,
    type_uri: Some("https://api.gateway/errors/rate-limit-exceeded"),
    message: Some("Rate limit exceeded. Try again in {retry_after} seconds."),
    content_type: JSON,
    body: r#"{"type":"{type}","title":"{title}","status":{status},"detail":"{detail}","correlationId":"{correlation_id}"}"#,
    blocked: SAME,
    blacklisted: SAME,
};

static COLLECTOR: Preset = Preset {
    headers: &[],
    fields: THREE,
    limit: LimitHeaderValue::Capacity,
    reset: ResetFormat::Epoch,
    status: 402,
    type_uri: None,
    message: None,
    content_type: JSON,
    body: r#"{"code":{status},"error":true,"message":"{message}"}"#,
    blocked: GuardWording {
        status: None,
        message: Some("Project has exceeded the events limit"),
    },
    blacklisted: GuardWording {
        status: Some(429),
        message: None,
    },
};

static TRAEFIK_PLUGIN: Preset = Preset {
    headers: &[],
    fields: THREE,
    limit: LimitHeaderValue::Capacity,
    reset: ResetFormat::Epoch,
    status: 429,
    type_uri: None,
    message: None,
    content_type: JSON,
    body: r#"{"status_code":{status},"message":"{message}"}"#,
    blocked: SAME,
    blacklisted: SAME,
};

static ADR: Preset = Preset {
    headers: &[Dialect::XRateLimit],
    fields: THREE,
    limit: LimitHeaderValue::Capacity,
    reset: ResetFormat::Rfc3339,
    status: 429,
    type_uri: None,
    message: Some(
        "you have reached the maximum number of requests or actions allowed within a certain time frame",
    ),
    content_type: JSON,
    body: r#"{"error":"{title}","message":"{message}","timestamp":"{now_rfc3339}"}"#,
    blocked: SAME,
    blacklisted: SAME,
};

static FLUXGATE: Preset = Preset {
    headers: &[Dialect::XRateLimit],
    fields: &[XField::Remaining],
    limit: LimitHeaderValue::Capacity,
    reset: ResetFormat::Epoch,
    status: 429,
    type_uri: None,
    message: Some("Rate limit exceeded"),
    content_type: JSON,
    body: r#"{"error":"{message}","retryAfter":{retry_after}}"#,
    blocked: SAME,
    blacklisted: SAME,
};

// === impl Profile ===

impl Profile {
    /// Every profile with its name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("default", Self::Default),
        ("gateway", Self::Gateway),
        ("collector", Self::Collector),
        ("traefik-plugin", Self::TraefikPlugin),
        ("adr", Self::Adr),
        ("fluxgate", Self::Fluxgate),
    ];

    fn preset(self) -> &'static Preset {
        match self {
            Self::Default => &DEFAULT,
            Self::Gateway => &GATEWAY,
            Self::Collector => &COLLECTOR,
            Self::TraefikPlugin => &TRAEFIK_PLUGIN,
            Self::Adr => &ADR,
            Self::Fluxgate => &FLUXGATE,
        }
    }

    /// Returns the profile as a layer of settings.
    pub fn layer(self) -> Layer {
        let preset = self.preset();
        Layer {
            headers: Some(preset.headers.to_vec()),
            fields: Some(preset.fields.to_vec()),
            limit: Some(preset.limit),
            reset: Some(preset.reset),
            refusal: RefusalLayer {
                status: Some(preset.status),
                type_uri: LayeredSetting::all(preset.type_uri.map(str::to_owned)),
                message: LayeredSetting::all(preset.message.map(wording)),
                content_type: Some(preset.content_type.to_owned()),
                body: Some(wording(preset.body)),
            },
            blocked: Some(preset.blocked.layer()),
            blacklisted: Some(preset.blacklisted.layer()),
            ..Layer::default()
        }
    }
}

// === impl GuardWording ===

impl GuardWording {
    fn layer(&self) -> RefusalLayer {
        RefusalLayer {
            status: self.status,
            message: LayeredSetting::written(self.message.map(wording)),
            ..RefusalLayer::default()
        }
    }
}

fn wording(text: &str) -> Wording {
    Wording::parse(text).expect("a profile has only placeholders that exist")
}
