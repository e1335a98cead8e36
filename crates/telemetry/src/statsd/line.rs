//! Formatting of a statistic.

use crate::decisions::StatisticIncrease;
use std::fmt::Write;
use tidegate_config::statsd::{Format, Statsd};

/// A writer of statistics as lines, `PREFIX.KEY.STATISTIC:COUNT|c`.
#[derive(Debug)]
pub(super) struct StatsdLines {
    prefix: String,
    /// The tags of plain statsd, appended to each name.
    name_tags: String,
    /// The tags of `DogStatsD`, appended to each line.
    line_tags: String,
}

impl StatsdLines {
    pub(super) fn new(settings: &Statsd) -> Self {
        let mut tags: Vec<(&str, String)> = settings
            .tags
            .iter()
            .filter(|(name, value)| !name.is_empty() && !value.is_empty())
            .map(|(name, value)| (name.as_str(), sanitised(value)))
            .collect();
        tags.sort_unstable();
        let (mut name_tags, mut line_tags) = (String::new(), String::new());
        for (name, value) in tags {
            match settings.format {
                Format::Statsd => name_tags.extend([".__", name, "=", &value]),
                Format::Dogstatsd => {
                    let before = if line_tags.is_empty() { "|#" } else { "," };
                    line_tags.extend([before, name, ":", &value]);
                }
            }
        }
        Self {
            prefix: settings.prefix.clone(),
            name_tags,
            line_tags,
        }
    }

    /// Writes one line.
    pub(super) fn write(&self, line: &mut String, statistic: &StatisticIncrease) {
        let Self {
            prefix,
            name_tags,
            line_tags,
        } = self;
        let (key, name, count) = (&statistic.key, statistic.name(), statistic.count);
        let written = writeln!(
            line,
            "{prefix}.{key}.{name}{name_tags}:{count}|c{line_tags}"
        );
        debug_assert!(written.is_ok(), "writing to a string");
    }
}

/// Replaces the characters that gostats replaces in values of tags, and those that would end a line.
fn sanitised(value: &str) -> String {
    let is_replaced = |c: char| matches!(c, '.' | ':' | '|') || c.is_control();
    value.replace(is_replaced, "_")
}
