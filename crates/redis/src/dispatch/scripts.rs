//! The script of a store.

use crate::layout::Layout;
use crate::script::{self, ScriptClock};
use tidegate_redis_client::Script;

/// The script that every master is sent.
#[derive(Clone, Debug)]
pub(crate) struct Scripts {
    pub(crate) general: Script,
    /// True if it is the script of the open layout.
    pub(crate) is_open: bool,
}

impl Scripts {
    /// Returns the script for a layout.
    pub(crate) fn new(clock: ScriptClock, layout: &Layout) -> Self {
        let (general, is_open) = match layout {
            Layout::Packed => (script::general(clock), false),
            Layout::Open(_) => (script::open(clock), true),
        };
        Self { general, is_open }
    }

    /// Returns all scripts, to be loaded on every connect.
    pub(crate) fn to_vec(&self) -> Vec<Script> {
        vec![self.general.clone()]
    }
}
