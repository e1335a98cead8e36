//! Both of them, and how their answers are compared.

/// What is left of an answer when the documented differences are taken out.
mod answer;
/// A statsd server.
mod counted;
/// The two, side by side.
mod pair;

#[path = "../../proxies/kit/folder.rs"]
#[expect(
    dead_code,
    reason = "shared with another test program, which needs all of it"
)]
mod folder;
#[expect(
    dead_code,
    reason = "shared with another test program, which starts another one"
)]
mod programs;

pub(crate) use answer::Code;
pub(crate) use counted::Counted;
pub(crate) use pair::{Buckets, Call, Pair, within_an_hour};
