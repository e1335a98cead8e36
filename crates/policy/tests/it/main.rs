//! The configuration language, from outside.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod bad; // every mistake, and the message for it, to the letter
mod client; // who asks: addresses, identities, whose word counts
mod client_properties; // what holds for every head of a request
mod collector; // the variables of the collector, and who listens to them
mod described; // descriptors, domains, quotas and reservations
mod environment; // variables, files, overrides, secrets
mod explain; // what a configuration means, to the letter
mod good; // what must load, and what it then means
mod import; // configurations of other limiters, and what they become
mod jwt; // tokens: which are believed, and what they say
mod respond; // what clients are told: presets, and settings laid over one another
mod robust; // no text, however odd, does harm
mod routes; // where a gateway sends requests, and under which limits
mod sources; // where policy comes from beside the file
mod sources_of_rules; // the same, of rules of `FluxGate`
