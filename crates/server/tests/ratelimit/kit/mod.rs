//! Both programs, and the comparison of their responses.

/// A response without the documented differences.
mod answer;
/// A statsd server.
mod counted;
/// The two programs, side by side.
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
pub(crate) use counted::CountingStatsd;
pub(crate) use pair::{Buckets, Call, Pair, within_an_hour};
