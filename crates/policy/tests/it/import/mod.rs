//! Configurations of other limiters: what they become, and what is said of those that are wrong.
//!
//! | module | what it is |
//! |---|---|
//! | `golden` | translations and messages, to the letter |
//! | `oracle` | what envoyproxy/ratelimit would find, in a few lines, and random trees to ask it about |
//! | `merge` | a translation beside a configuration of one's own |

mod golden;
mod merge;
mod oracle;

use tidegate_policy::Config;
use tidegate_policy::config::NoEnvironment;
use tidegate_policy::import::{EnvoyOptions, Imported, SourceFile, envoy};

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

/// What a translation means.
fn meant(yaml: &str) -> Config {
    let config = Config::parse(yaml, "translated", &NoEnvironment);
    config.unwrap_or_else(|errors| panic!("{errors}\nin\n{yaml}"))
}
