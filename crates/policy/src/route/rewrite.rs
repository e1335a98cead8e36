//! Changes to the headers of a message.

use std::fmt;

/// Changes to the headers of a message: first headers are removed, then set, then added.
///
/// Names are tokens in lower case and values are valid header values, so building headers from them cannot
/// fail. None of them concerns the connection or the framing of a message.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Each replaces all headers of its name; each name once.
    pub set: Vec<(String, String)>,
    /// Each is added after the existing headers of its name; each name once.
    pub add: Vec<(String, String)>,
    /// All headers of these names are removed; each name once.
    pub remove: Vec<String>,
}

impl Rewrite {
    /// Returns true if nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.add.is_empty() && self.remove.is_empty()
    }
}

// Written by hand because the values may be secrets.
impl fmt::Debug for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| {
            let names = pairs.iter().map(|(name, _)| name.clone());
            names.collect::<Vec<_>>()
        };
        f.debug_struct("Rewrite")
            .field("set", &names(&self.set))
            .field("add", &names(&self.add))
            .field("remove", &self.remove)
            .finish()
    }
}
