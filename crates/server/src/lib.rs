//! The program `tidegate`, as a library so that tests can run it in process.
//!
//! | module | what it is |
//! |---|---|
//! | [`commands`] | what each subcommand does |
//! | [`program`] | the server from its start to its end |
//! | `timestamps` | instants as text |
//! | `peer` | the environment variables of envoyproxy/ratelimit |
//! | [`simulate`] | a trace, decided in virtual time |
//! | [`logs`] | log lines |
//! | [`signals`] | the signals that end the program |
//! | [`styles`] | colours on a terminal |

pub mod commands;
pub mod logs;
mod open_files;
mod peer;
pub mod program;
pub mod signals;
pub mod simulate;
pub mod styles;
pub mod timestamps;
