//! What was replaced, until nobody decides by it any more.

use std::sync::Arc;

/// What was replaced. Whoever has it last frees it, which takes milliseconds where there is much of it;
/// and that is not to be a request. So who replaces it keeps it until nobody else does.
///
/// There are no more of them than threads that decide, for each has one at hand.
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

    /// Frees what nobody else has.
    pub(crate) fn free(&mut self) {
        self.0.retain(|before| Arc::strong_count(before) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_before_is_freed_by_whoever_replaces_it_and_not_by_whoever_decides() {
        let mut replaced = RetiredValue::default();
        let before = Arc::new(());
        let seen = Arc::downgrade(&before);
        replaced.add(Arc::clone(&before));
        drop(before);
        assert!(seen.upgrade().is_some(), "a decision has freed it");

        replaced.free();
        assert!(seen.upgrade().is_none());
    }
}
