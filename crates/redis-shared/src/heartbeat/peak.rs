//! The highest recent number of instances.

use std::collections::VecDeque;

/// The number of counts, ten minutes of them, whose maximum is the result. During an outage no instance
/// can count, and a count that is too low would admit too much. Time without counts is ignored: right
/// after an outage, not all instances are back yet.
const MEMORY: u64 = 120;

/// The highest of the last counts.
#[derive(Debug, Default)]
pub(super) struct Peak {
    /// The number of counts so far.
    counts: u64,
    /// Falling numbers, oldest first, each with which count it was: a number is forgotten once a
    /// later one is as high.
    seen: VecDeque<(u64, u32)>,
}

impl Peak {
    pub(super) fn add(&mut self, count: u32) -> u32 {
        self.counts = self.counts.saturating_add(1);
        while self.seen.back().is_some_and(|(_, old)| *old <= count) {
            self.seen.pop_back();
        }
        self.seen.push_back((self.counts, count));
        while let Some((nth, _)) = self.seen.front()
            && self.counts.saturating_sub(*nth) >= MEMORY
        {
            self.seen.pop_front();
        }
        self.seen.front().map_or(count, |(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_expires_after_as_many_later_counts() {
        let mut peak = Peak::default();
        assert_eq!(peak.add(3), 3);
        assert_eq!(peak.add(7), 7);
        assert_eq!(peak.add(2), 7);
        assert_eq!(peak.add(4), 7);
        for _ in 3..MEMORY {
            assert_eq!(peak.add(1), 7);
        }
        assert_eq!(peak.add(1), 4, "the seven is too old");
        assert_eq!(peak.add(1), 4);
        assert_eq!(peak.add(1), 1);
        assert_eq!(peak.add(5), 5);
    }
}
