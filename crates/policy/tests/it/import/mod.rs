//! Configurations of other limiters: what they become, and what is said of those that are wrong.
//!
//! | module | what it is |
//! |---|---|
//! | `golden` | translations and messages, to the letter |
//! | `oracle` | what envoyproxy/ratelimit would find, in a few lines, and random trees to ask it about |
//! | `merge` | a translation beside a configuration of one's own |
//! | `traefik_plugin`, `fluxgate`, `live` | what documents of these mean, request by request; and as what a source says |

mod golden;
mod merge;
mod oracle;

use tidegate_policy::Config;
use tidegate_policy::import::{
    EnvoyOptions, Imported, LimitsOptions, SourceFile, envoy, fluxgate_rules, traefik_plugin_limits,
};
use tidegate_policy::source::{NamedText, PolicyOrigin, SourcePart};

/// A file of this text.
fn file(text: &str) -> SourceFile {
    SourceFile {
        name: "edge.yaml".to_owned(),
        text: text.to_owned(),
    }
}

/// The translation of one file of envoyproxy/ratelimit.
fn imported(text: &str) -> Imported {
    let options = EnvoyOptions::default();
    envoy("folder", &[file(text)], options).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What `MongoDB` might hold.
const RULE: &str =
    r#"{ "id": "all", "scope": "GLOBAL", "bands": [{ "windowSeconds": 1, "capacity": 5 }] }"#;

/// What a translation means. Where its policies are a keeper's, these are its fallback.
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

/// The variables that translations ask for where there was a secret.
fn environment(name: &str) -> Option<String> {
    let value = match name {
        "KEEPER_PASSWORD" | "SPRING_DATA_REDIS_PASSWORD" => "secret",
        "FLUXGATE_REDIS_URI" => "redis://:secret@redis:6379",
        "ACCOUNTS_MONGODB_URI" | "FLUXGATE_MONGO_URI" => "mongodb://mongodb:27017/hawk",
        "NOTIFY_URL" => "https://hooks.example.com/",
        _ => return None,
    };
    Some(value.to_owned())
}
