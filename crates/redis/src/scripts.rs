//! The scripts of a store.

use crate::layout::Layout;
use crate::script::{Script, ScriptClock};
use crate::{script, simple};

/// What is loaded into every master. Over the open layout there is one script for everything.
#[derive(Clone, Debug)]
pub(crate) struct Scripts {
    /// For requests that take from one token bucket.
    pub(crate) simple: Script,
    /// For all others.
    pub(crate) general: Script,
    /// Whether `general` is the one over the open layout, and `simple` is not used.
    pub(crate) is_open: bool,
}

impl Scripts {
    pub(crate) fn new(clock: ScriptClock, layout: &Layout) -> Self {
        let (general, is_open) = match layout {
            Layout::Packed => (script::general(clock), false),
            Layout::Open(_) => (script::open(clock), true),
        };
        Self {
            simple: simple::script(clock),
            general,
            is_open,
        }
    }

    pub(crate) fn to_vec(&self) -> Vec<Script> {
        if self.is_open {
            vec![self.general.clone()]
        } else {
            vec![self.simple.clone(), self.general.clone()]
        }
    }
}
