//! The configuration language, tested from outside.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod bad; // every kind of mistake, and its exact message
mod client; // client identification: addresses, identities, trust
mod client_properties; // properties that hold for every request head
mod collector; // the variables of the collector, and the settings that they affect
mod described; // descriptors, domains, quotas and reservations
mod environment; // variables, files, overrides, secrets
mod explain; // the exact meaning of configurations
mod good; // valid configurations and their meaning
mod groups; // limits that are decided atomically in a Cluster
mod guards; // the lookups that guards add to policies
mod jwt; // tokens: which are accepted, and their claims
mod literal; // the allowed characters of literal keys
mod plan_rates; // plans with rates of several names, and with calendars
mod plans; // documents of plans
mod respond; // responses: presets, and layered settings
mod robust; // no text causes a panic, an endless loop or a flood of errors
mod routes; // the upstreams and limits of a gateway
mod sources; // config sources besides the file
