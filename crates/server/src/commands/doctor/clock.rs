//! Clocks: their differences, as precisely as they can be measured over the network.

use super::finding::Finding;
use super::node::NodeExam;
use std::time::Duration;

/// Beyond this, clocks of servers that take over from each other make waits wrong.
const APART_MAX_US: i64 = 100_000;
/// Beyond this, times that are shown to people are wrong.
const OURS_MAX_US: i64 = 1_000_000;

/// The offset of a clock from the local one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// Negative if it is behind.
    pub(super) us: i64,
    /// The error in either direction.
    pub(super) give_or_take_us: i64,
}

impl Offset {
    /// Computes the offset from the local time of the request, the server's time, and the duration. The
    /// server read its clock at some moment in between.
    pub(super) fn measured(asked_us: u64, told_us: u64, took: Duration) -> Self {
        let half = took.as_micros() / 2;
        let middle = i128::from(asked_us) + i128::try_from(half).unwrap_or(i128::MAX / 2);
        let us = i128::from(told_us) - middle;
        let within =
            |it: i128| i64::try_from(it).unwrap_or(if it < 0 { i64::MIN } else { i64::MAX });
        Self {
            us: within(us),
            give_or_take_us: i64::try_from(half).unwrap_or(i64::MAX).saturating_add(1),
        }
    }

    /// Returns the more precise measurement.
    pub(super) fn better(self, other: Self) -> Self {
        if other.give_or_take_us < self.give_or_take_us {
            other
        } else {
            self
        }
    }

    /// Returns the minimum offset.
    fn at_least_us(self) -> i64 {
        let us = self.us.saturating_abs();
        us.saturating_sub(self.give_or_take_us).max(0)
    }
}

/// Judges the clocks.
pub(super) fn judge(nodes: &[NodeExam]) -> Vec<Finding> {
    let offsets = nodes
        .iter()
        .filter_map(|node| Some((node, node.offset?)))
        .collect::<Vec<_>>();
    let mut findings: Vec<Finding> = offsets
        .iter()
        .map(|(node, offset)| ours(*offset).at(&node.address))
        .collect();
    findings.extend(between(offsets.iter().map(|(_, offset)| *offset)));
    for node in nodes.iter().filter(|node| node.offset.is_none()) {
        let text = "not checked: the user may not run TIME";
        findings.push(Finding::unseen("clock", text).at(&node.address));
    }
    findings
}

fn ours(offset: Offset) -> Finding {
    let direction = if offset.us < 0 { "behind" } else { "ahead of" };
    let text = format!(
        "{} {direction} the local clock, ± {}",
        millis(offset.us.saturating_abs()),
        millis(offset.give_or_take_us)
    );
    if offset.at_least_us() > OURS_MAX_US {
        return Finding::warn("clock", text).help(
            "decisions use only the server's clock and stay correct, but times in responses may \
             be wrong: run NTP on both machines",
        );
    }
    Finding::ok("clock", text)
}

/// Judges the difference between the clocks of the masters, if there are several.
fn between(offsets: impl Iterator<Item = Offset> + Clone) -> Option<Finding> {
    let first = offsets.clone().min_by_key(|offset| offset.us)?;
    let last = offsets.clone().max_by_key(|offset| offset.us)?;
    if offsets.count() < 2 {
        return None;
    }
    let apart = Offset {
        us: last.us.saturating_sub(first.us),
        give_or_take_us: first.give_or_take_us.saturating_add(last.give_or_take_us),
    };
    let text = format!(
        "the clocks of the masters differ by {}, ± {}",
        millis(apart.us),
        millis(apart.give_or_take_us)
    );
    Some(if apart.at_least_us() > APART_MAX_US {
        Finding::warn("clocks", text).help(
            "a bucket that moves to another node refills later or earlier by this difference: \
             run NTP on every node",
        )
    } else {
        Finding::ok("clocks", text)
    })
}

fn millis(us: i64) -> String {
    format!("{}.{:03} ms", us / 1_000, us % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::FindingLevel;

    fn offset(us: i64, give_or_take_us: i64) -> Offset {
        Offset {
            us,
            give_or_take_us,
        }
    }

    #[test]
    fn the_server_clock_is_compared_with_the_middle_of_the_call() {
        let took = Duration::from_micros(400);
        assert_eq!(Offset::measured(1_000, 1_200, took), offset(0, 201));
        assert_eq!(Offset::measured(1_000, 700, took), offset(-500, 201));
        assert_eq!(
            Offset::measured(1_000, 2_001_200, took).at_least_us(),
            1_999_799
        );
        assert_eq!(
            offset(-150, 201).at_least_us(),
            0,
            "within what is not known"
        );
        assert_eq!(offset(5, 10).better(offset(9, 3)), offset(9, 3));
        Offset::measured(u64::MAX, 0, Duration::MAX);
    }

    #[test]
    fn only_certain_clock_differences_cause_a_warning() {
        assert_eq!(ours(offset(900_000, 10)).mark, FindingLevel::Ok);
        assert_eq!(ours(offset(-1_000_500, 600)).mark, FindingLevel::Ok);
        let behind = ours(offset(-7_200_000_000, 600));
        assert_eq!(behind.mark, FindingLevel::Warn);
        assert!(
            behind
                .text
                .starts_with("7200000.000 ms behind the local clock"),
            "{}",
            behind.text
        );
    }

    #[test]
    fn clocks_of_masters_are_compared_with_each_other() {
        let of = |all: &[Offset]| between(all.iter().copied());
        assert_eq!(of(&[offset(9_000_000, 1)]), None);
        let close = of(&[offset(9_000_000, 1), offset(9_050_000, 1)]).unwrap();
        assert_eq!(close.mark, FindingLevel::Ok);
        let apart = of(&[offset(-80_000, 1), offset(0, 1), offset(80_000, 1)]).unwrap();
        assert_eq!(apart.mark, FindingLevel::Warn);
        assert!(
            apart.text.contains("differ by 160.000 ms"),
            "{}",
            apart.text
        );
    }
}
