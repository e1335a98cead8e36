//! What is changed in the head of a message.

use std::fmt;

/// What is changed in the head of a message: first headers are removed, then set, then added.
///
/// Names are tokens in lower case and values are such as a header may have, so that whoever makes
/// headers of them need expect no error. None of them speaks of the connection or of where a
/// message ends.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Each takes the place of all headers of its name; each name once.
    pub set: Vec<(String, String)>,
    /// Each comes after those of its name that are there; each name once.
    pub add: Vec<(String, String)>,
    /// All headers of these names go; each name once.
    pub remove: Vec<String>,
}

impl Rewrite {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.add.is_empty() && self.remove.is_empty()
    }
}

// By hand: gateways are told secrets to pass on.
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
