//! The requests that a limit in code applies to.

use super::LimitSpec;
use tidegate_policy::{Condition, KeyPart};

impl LimitSpec {
    /// Returns one condition per path, each with all other conditions; none if nothing is set.
    pub(super) fn conditions(&self) -> Result<Vec<Condition>, String> {
        if !self.paths.is_empty() {
            let paths = self.paths.iter();
            return paths.map(|path| self.rest()?.with_path(path)).collect();
        }
        if self.methods.is_empty() && self.hosts.is_empty() && self.headers.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![self.rest()?])
    }

    /// Returns all conditions except the path.
    fn rest(&self) -> Result<Condition, String> {
        let mut condition = Condition::default();
        for method in &self.methods {
            condition = condition.with_method(method)?;
        }
        for host in &self.hosts {
            condition = condition.with_host(host)?;
        }
        for (name, value) in &self.headers {
            condition = condition.with_header(name, value)?;
        }
        Ok(condition)
    }

    /// Returns the parts of the key; without any, there is one bucket for all.
    pub(super) fn key_or_global(&self) -> Vec<KeyPart> {
        if self.key.is_empty() {
            vec![KeyPart::Global]
        } else {
            self.key.clone()
        }
    }
}
