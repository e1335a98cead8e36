//! Scripts: their text, its digest, and their clock.
//!
//! A script consists of parts, one idea each. The algorithms and the step do not depend on the stored
//! form of a bucket; [`packed`](general) is the one layout here, and another replaces `packed.lua`
//! with its own part.

use tidegate_core::Quota;
use tidegate_redis_client::Script;

/// The clock of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScriptClock {
    /// The server's, which all instances share.
    #[default]
    Server,
    /// The caller's, in `ARGV[2]`, in microseconds: for tests in virtual time. As the server does
    /// not know that time, a key stays an hour longer than it matters.
    #[cfg(any(test, feature = "test-clock"))]
    Argument,
}

impl ScriptClock {
    /// Fills the clock into a source: `@NOW@` after `local now =`, and `@EXPIRE:name@` for the
    /// arguments that make `SET` keep a key until the instant in the variable `name`.
    pub(crate) fn fill(self, source: &str) -> String {
        let now = match self {
            Self::Server => "call('TIME')\nnow = now[1] * 1000000 + now[2]",
            #[cfg(any(test, feature = "test-clock"))]
            Self::Argument => "tonumber(ARGV[2])",
        };
        let mut text = String::with_capacity(source.len().saturating_add(256));
        let mut rest = source;
        while let Some((before, (name, after))) = rest
            .split_once("@EXPIRE:")
            .and_then(|(before, after)| Some((before, after.split_once('@')?)))
        {
            text.push_str(before);
            text.push_str(&self.expire(name));
            rest = after;
        }
        text.push_str(rest);
        text.replace("@NOW@", now)
    }

    /// A key goes when its millisecond is past, so that rounding down is never early. A millisecond
    /// that is not in the future would delete the key at once on some servers.
    fn expire(self, until: &str) -> String {
        let (until_ms, now_ms) = (whole_ms(until), whole_ms("now"));
        match self {
            // A whole number is cheaper to format here than in `SET`.
            Self::Server => {
                format!("'PXAT', string.format('%d', math.max({until_ms}, {now_ms} + 1))")
            }
            #[cfg(any(test, feature = "test-clock"))]
            Self::Argument => format!("'PX', {until_ms} - {now_ms} + 3600000"),
        }
    }
}

/// Returns a Lua expression for the whole milliseconds in a variable of microseconds.
fn whole_ms(name: &str) -> String {
    format!("({name} - {name} % 1000) / 1000")
}

/// The beginning of a source: short names and the instant.
pub(crate) const NAMES: &str = include_str!("lua/names.lua");

/// The arguments, for any layout.
pub(crate) const PROGRAM: &str = include_str!("lua/program.lua");

/// The algorithms and the operations on a bucket, for any layout: after [`PROGRAM`].
pub(crate) const ALGORITHMS: [&str; 9] = [
    include_str!("lua/places.lua"),
    include_str!("lua/token_bucket.lua"),
    include_str!("lua/fixed_window.lua"),
    include_str!("lua/calendar_window.lua"),
    include_str!("lua/sliding_window.lua"),
    include_str!("lua/log.lua"),
    include_str!("lua/operations.lua"),
    include_str!("lua/lent.lua"),
    include_str!("lua/adapt.lua"),
];

/// The step, for any layout: after the layout's part, before [`MAIN`].
pub(crate) const STEP: &str = include_str!("lua/step.lua");

/// Reads, decides and writes: last.
pub(crate) const MAIN: &str = include_str!("lua/main.lua");

/// The layout: brings `load(k)`, `save_all()`, `bases` and `reply`.
const PACKED: &str = include_str!("lua/packed.lua");

/// The fast path over the packed layout, which needs no other part: after [`NAMES`].
const PLAIN: &str = include_str!("lua/plain.lua");

/// A script for the general call over a layout, of which this is the part.
pub(crate) fn general_over(layout: &str, clock: ScriptClock) -> String {
    assemble(&[NAMES, PROGRAM], layout, clock)
}

/// Joins the parts of a script, and fills in its clock.
fn assemble(first: &[&str], layout: &str, clock: ScriptClock) -> String {
    let mut source = String::new();
    let last = [layout, STEP, MAIN];
    for part in first.iter().chain(&ALGORITHMS).chain(&last) {
        source.push_str(part);
        source.push('\n');
    }
    clock.fill(&source)
}

/// The general script over the packed layout.
pub(crate) fn general(clock: ScriptClock) -> Script {
    let text = assemble(&[NAMES, PLAIN, PROGRAM], PACKED, clock);
    Script::new("general", text)
}

/// The layout of other systems' documents, after [`PACKED`], which stores everything that the
/// documents have no form for.
const OPEN: [&str; 5] = [
    include_str!("lua/open.lua"),
    include_str!("lua/open_tokens.lua"),
    include_str!("lua/open_log.lua"),
    include_str!("lua/open_window.lua"),
    include_str!("lua/open_save.lua"),
];

/// The general script over the open layout.
pub(crate) fn open(clock: ScriptClock) -> Script {
    let mut layout = PACKED.to_owned();
    for part in OPEN {
        layout.push('\n');
        layout.push_str(part);
    }
    let first = include_str!("lua/open_first.lua");
    Script::new("open", format!("{first}{}", general_over(&layout, clock)))
}

/// The number that stands for a band in records and programs: the low 48 bits of its id.
pub(crate) fn record_id(quota: &Quota) -> u64 {
    quota.id().as_u64() & 0xffff_ffff_ffff
}
