//! Replaced values, until no decision uses them any more.

use std::sync::Arc;

/// Values that were replaced. The last holder frees a value, which takes milliseconds if it is large, and
/// must not be a request. So the thread that replaces it keeps it until there is no other holder.
///
/// There are no more of them than deciding threads, because each holds one.
#[derive(Debug)]
pub(crate) struct RetiredValue<T>(Vec<Arc<T>>);

impl<T> Default for RetiredValue<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> RetiredValue<T> {
    pub(crate) fn add(&mut self, before: Arc<T>) {
        self.0.push(before);
        self.free();
    }

    /// Frees the values without another holder.
    pub(crate) fn free(&mut self) {
        self.0.retain(|before| Arc::strong_count(before) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_value_is_freed_by_the_writer_and_not_by_readers() {
        let mut replaced = RetiredValue::default();
        let before = Arc::new(());
        let seen = Arc::downgrade(&before);
        replaced.add(Arc::clone(&before));
        drop(before);
        assert!(seen.upgrade().is_some(), "freed by a decision");

        replaced.free();
        assert!(seen.upgrade().is_none());
    }
}
