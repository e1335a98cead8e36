//! Tidegate's configuration language: from text in YAML or JSON to policies and settings, with all errors
//! reported together.
//!
//! | module | contents |
//! |---|---|
//! | `config` | a complete configuration, and the order in which its sections are read |
//! | [`compose`] | a file and the texts of its sources, as one configuration |
//! | [`source`], [`admin`], [`alerts`], [`traces`], [`statsd`] | settings of the program |
//! | `explain` | a description of a configuration in plain words |
//! | `schema` | the language as a JSON Schema, for editors |
//! | `parse_one`, `gateway` | single sections, and a configuration made from a few flags |
//! | `sections` | the readers of sections and fields |
//! | `tables` | the fields of the language, each defined once |
//! | `language` | the toolkit: reader, tables, words and single values |
//! | `environment`, `collector` | settings from environment variables and files |
//! | `syntax` | the text as a tree of nodes with their positions |
//! | `problem`, `excerpt` | error messages |
//! | [`reading`] | the parts with which translators of other formats read |

mod collector;
pub mod compose;
mod config;
mod environment;
mod excerpt;
mod explain;
mod gateway;
mod language;
mod parse_one;
mod problem;
pub mod reading;
mod schema;
mod sections;
pub mod source;
pub mod statsd;
mod syntax;
mod tables;

pub use config::Config;
pub use environment::overrides::overrides;
pub use environment::{Environment, NoEnvironment, Setting};
pub use explain::{costs, explain, shadow};
pub use parse_one::{
    client_from_yaml, plans_from_text, plans_in_format, respond_from_yaml, store_from_url,
    store_from_yaml, template_from_text,
};
pub use problem::{ConfigErrors, ConfigProblem, Severity};
pub use schema::json_schema;
pub use sections::key::read_part as key_part;
pub use tidegate_policy::{admin, alerts, traces};
