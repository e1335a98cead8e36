//! Scripts: their text, the name under which Redis knows it, and which clock they go by.
//!
//! A script is put together from parts, each of which is one idea. The algorithms and the step know
//! nothing of how a bucket is stored; [`packed`](general) is the one layout here, and another brings
//! its own part in place of `packed.lua`.

use std::fmt;
use tidegate_core::Quota;

/// A Lua script that is loaded into Redis and called by its hash.
#[derive(Clone)]
pub struct Script {
    name: &'static str,
    text: String,
    sha: String,
}

impl Script {
    /// A script; `name` is for people.
    pub fn new(name: &'static str, text: String) -> Self {
        let sha = redis::Script::new(&text).get_hash().to_owned();
        Self { name, text, sha }
    }

    /// What people call it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its source.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The SHA1 of its source as 40 hexadecimal digits: what `EVALSHA` wants.
    pub fn sha(&self) -> &str {
        &self.sha
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("name", &self.name)
            .field("sha", &self.sha)
            .finish_non_exhaustive()
    }
}

/// Whose clock a script goes by.
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

fn whole_ms(name: &str) -> String {
    format!("({name} - {name} % 1000) / 1000")
}

/// How a source begins: short names and the instant.
pub(crate) const NAMES: &str = include_str!("lua/names.lua");

/// What is asked, and the algorithms and the step, whatever the layout.
pub(crate) const PROGRAM: &str = include_str!("lua/program.lua");

/// The algorithms and what can be done to a bucket, whatever the layout: after [`PROGRAM`].
pub(crate) const ALGORITHMS: [&str; 8] = [
    include_str!("lua/places.lua"),
    include_str!("lua/token_bucket.lua"),
    include_str!("lua/fixed_window.lua"),
    include_str!("lua/sliding_window.lua"),
    include_str!("lua/log.lua"),
    include_str!("lua/operations.lua"),
    include_str!("lua/lent.lua"),
    include_str!("lua/adapt.lua"),
];

/// The step, whatever the layout: after the layout's part, before [`MAIN`].
pub(crate) const STEP: &str = include_str!("lua/step.lua");

/// Reads, decides and writes: last.
pub(crate) const MAIN: &str = include_str!("lua/main.lua");

/// The layout: brings `load(k)`, `save_all()`, `bases` and `reply`.
const PACKED: &str = include_str!("lua/packed.lua");

/// The usual call over the packed layout, which needs nothing of the rest: after [`NAMES`].
const PLAIN: &str = include_str!("lua/plain.lua");

/// A script for the general call over a layout, of which this is the part.
pub(crate) fn general_over(layout: &str, clock: ScriptClock) -> String {
    assemble(&[NAMES, PROGRAM], layout, clock)
}

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

/// The layout of other systems' documents, which keeps what they have no form for as
/// [`PACKED`] does: after it.
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
