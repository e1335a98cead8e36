//! A Lua script and its hash.

use std::fmt;

/// A Lua script that is loaded into Redis and called by its hash.
///
/// # Examples
///
/// ```
/// use tidegate_redis_client::Script;
///
/// let script = Script::new("answer", "return 42".to_owned());
/// assert_eq!(script.sha(), "1fa00e76656cc152ad327c13fe365858fd7be306");
/// ```
#[derive(Clone)]
pub struct Script {
    name: &'static str,
    text: String,
    sha: String,
}

impl Script {
    /// Returns a script and computes its hash. `name` is for people.
    pub fn new(name: &'static str, text: String) -> Self {
        let sha = redis::Script::new(&text).get_hash().to_owned();
        Self { name, text, sha }
    }

    /// Returns its name, for people.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its source.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the SHA1 of its source as 40 hexadecimal digits: what `EVALSHA` wants.
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
