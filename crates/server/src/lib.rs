//! The program `tidegate`, as a library so that tests can run it in process.
//!
//! | module | what it is |
//! |---|---|
//! | [`cli`] | the command line |
//! | [`commands`] | what each subcommand does |
//! | [`failure`] | how the program fails, and with which exit code |
//! | [`config_file`], [`config_source`], [`environment`], `sight` | where a configuration comes from, and how its files look |
//! | [`server`] | sockets, connections, draining: the same for all doors |
//! | `doors` | from a protocol to a question, and from a decision back |
//! | `proxy` | passing requests on to upstreams |
//! | `alerts` | telling people that something needs them |
//! | `errand` | a request of our own to somebody else, now and then |
//! | `shelf` | texts by name, kept in Redis, etcd or MongoDB, that may be written to |
//! | `sources` | where plans are loaded from |
//! | `peer` | the environment variables of envoyproxy/ratelimit |
//! | `live` | policy that changes while it is served: the file and its sources |
//! | [`serving`] | what the doors serve: decisions and routes |
//! | [`decider`] | decides and observes, behind every door |
//! | [`wire`] | JSON in and out: questions, answers, problems |
//! | [`simulate`] | a trace, decided in virtual time |
//! | [`telemetry`] | logs and metrics |
//! | `upkeep` | what goes on beside the doors |
//! | `changes` | what administrators have begun, and is waited for |
//! | [`tasks`], [`signals`], [`bounds`] | what runs, what ends it, and what everything is held to |

mod alerts;
pub mod bounds;
mod changes;
pub mod cli;
pub mod commands;
pub mod config_file;
pub mod config_source;
pub mod decider;
mod doors;
pub mod environment;
mod errand;
pub mod failure;
mod live;
mod open_files;
mod peer;
mod promise;
mod proxy;
#[cfg(feature = "fuzzing")]
pub use proxy::http1::whole as answer;
pub mod server;
pub mod serving;
mod shelf;
mod sight;
pub mod signals;
pub mod simulate;
mod sources;
pub mod tasks;
pub mod telemetry;
mod upkeep;
pub mod wire;

#[doc(hidden)]
pub use doors::resp;
