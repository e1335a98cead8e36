//! The script of a store.

use crate::layout::Layout;
use crate::script::{self, Script, ScriptClock};

/// The script that every master is sent.
#[derive(Clone, Debug)]
pub(crate) struct Scripts {
    pub(crate) general: Script,
    /// Whether it is the one over the open layout.
    pub(crate) is_open: bool,
}

impl Scripts {
    pub(crate) fn new(clock: ScriptClock, layout: &Layout) -> Self {
        let (general, is_open) = match layout {
            Layout::Packed => (script::general(clock), false),
            Layout::Open(_) => (script::open(clock), true),
        };
        Self { general, is_open }
    }

    pub(crate) fn to_vec(&self) -> Vec<Script> {
        vec![self.general.clone()]
    }
}
