//! Configurations of other limiters: their translations, and the messages for invalid ones.
//!
//! | module | contents |
//! |---|---|
//! | `golden` | exact translations and messages |
//! | `oracle` | envoyproxy/ratelimit's lookup, compared on random trees |
//! | `locations` | nginx's choice of a location, compared on random servers |
//! | `nginx_servers` | servers of nginx on several addresses |
//! | `random` | random configurations of nginx and Traefik |
//! | `merge` | a translation merged with the user's own configuration |
//! | `sources_of_rules` | sources with rules of `FluxGate` |
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod golden;
mod locations;
mod merge;
mod nginx_servers;
mod oracle;
mod random;
mod routers;
mod sources_of_rules;

use tidegate_config::Config;
use tidegate_config::compose::{NamedText, SourcePart};
use tidegate_config::source::PolicyOrigin;
use tidegate_import::{
    EnvoyOptions, ImportedConfig, LimitsOptions, SourceFile, envoy, fluxgate_rules,
    traefik_plugin_limits,
};

/// Returns a file with this text.
fn file(text: &str) -> SourceFile {
    SourceFile {
        name: "edge.yaml".to_owned(),
        text: text.to_owned(),
    }
}

/// Returns the translation of one file of envoyproxy/ratelimit.
fn imported(text: &str) -> ImportedConfig {
    let options = EnvoyOptions::default();
    envoy("folder", &[file(text)], options).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A document as it may be in `MongoDB`.
const RULE: &str =
    r#"{ "id": "all", "scope": "GLOBAL", "bands": [{ "windowSeconds": 1, "capacity": 5 }] }"#;

/// Returns the meaning of a translation. For a keeper's policies, that of its fallback.
fn meant(yaml: &str) -> Config {
    let own = NamedText {
        name: "translated",
        text: yaml,
    };
    let sources = Config::sources_of(own, &environment);
    let sources = sources.unwrap_or_else(|errors| panic!("{errors}\nin\n{yaml}"));
    let mut parts = Vec::new();
    for source in &sources {
        let imported = match &source.origin {
            PolicyOrigin::Keeper(keeper) => {
                let limits = keeper.fallback.as_deref().unwrap_or("{\"limits\": []}");
                let options = LimitsOptions {
                    policy: keeper.policy.clone(),
                };
                traefik_plugin_limits("fallback", limits, &options)
            }
            PolicyOrigin::MongoDb(_) => fluxgate_rules("mongodb", RULE),
            other => panic!("{other:?}\nin\n{yaml}"),
        };
        let imported = imported.unwrap_or_else(|errors| panic!("{errors}\nin\n{yaml}"));
        parts.push(imported.to_part());
    }
    let parts: Vec<SourcePart<'_>> = parts
        .iter()
        .map(|text| SourcePart {
            named: NamedText {
                name: "keeper",
                text,
            },
            is_translated: true,
            is_separable: false,
            is_trusted: false,
        })
        .collect();
    let composed = Config::compose(own, &parts, &environment);
    composed
        .unwrap_or_else(|errors| panic!("{errors}\nin\n{yaml}"))
        .config
}

/// Returns the variables that translations use in place of secrets.
fn environment(name: &str) -> Option<String> {
    let value = match name {
        "KEEPER_PASSWORD" | "SPRING_DATA_REDIS_PASSWORD" | "TRAEFIK_REDIS_PASSWORD" => "secret",
        "FLUXGATE_REDIS_URI" => "redis://:secret@redis:6379",
        "ACCOUNTS_MONGODB_URI" | "FLUXGATE_MONGO_URI" => "mongodb://mongodb:27017/hawk",
        "NOTIFY_URL" => "https://hooks.example.com/",
        _ => return None,
    };
    Some(value.to_owned())
}
