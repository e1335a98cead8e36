//! The content of a bucket, for people.

use crate::simulate::table::TextTable;
use std::fmt::Write;
use tidegate_control::buckets::report::{BandSight, BucketReport, KeySight};

/// Returns a table of the bands, followed by the keys.
pub(super) fn text(sight: &BucketReport) -> String {
    let mut text = format!("bucket {}\n", sight.bucket);
    if let Some(left) = sight.blocked_for_ms {
        let _ = writeln!(text, "blocked for {}", seconds(left));
    }
    if let Some(unit) = &sight.unit {
        let _ = writeln!(text, "unit {unit}");
    }
    if let Some(why) = &sight.rate {
        let _ = writeln!(text, "rate {why}");
    }
    text.push('\n');
    let head = [
        "band",
        "algorithm",
        "capacity",
        "remaining",
        "retry after",
        "full in",
    ];
    let mut table = TextTable::new(head, 2);
    for band in &sight.bands {
        table.row(row(band));
    }
    if !sight.bands.is_empty() {
        text.push_str(&table.show());
        text.push('\n');
    }
    for key in &sight.keys {
        text.push_str(&self::key(key));
        for band in sight.bands.iter().filter(|band| band.key == key.key) {
            let state = band.state.as_ref();
            let state = state.map_or_else(|| "nothing kept".to_owned(), ToString::to_string);
            let name = band.label.as_ref().unwrap_or(&band.band);
            let field = band.field.as_ref();
            let field = field.map_or_else(String::new, |field| format!(" in field {field}"));
            let _ = writeln!(text, "  {name}{field}: {state}");
        }
    }
    text
}

fn row(band: &BandSight) -> [String; 6] {
    let name = match &band.label {
        Some(label) => format!("{label} ({})", band.band),
        None => band.band.clone(),
    };
    [
        name,
        band.algorithm.to_owned(),
        band.capacity.to_string(),
        band.remaining.to_string(),
        match band.retry_after_ms {
            Some(0) => "now".to_owned(),
            Some(wait) => seconds(wait),
            None => "never".to_owned(),
        },
        if band.as_good_as_new {
            "now".to_owned()
        } else {
            seconds(band.reset_ms)
        },
    ]
}

fn key(key: &KeySight) -> String {
    let mut text = format!("redis key {}\n", key.key);
    let expiry = match (key.exists, key.expires_in_ms) {
        (false, _) => "does not exist: full".to_owned(),
        (true, Some(ms)) => format!("expires in {}", seconds(ms)),
        (true, None) => "has no expiry, which is wrong: Tidegate sets one".to_owned(),
    };
    let _ = write!(text, "  {expiry}");
    if let Some(slot) = key.slot {
        let _ = write!(text, "; slot {slot}");
    }
    if let Some(node) = &key.node {
        let _ = write!(text, "; on {node}");
    }
    text.push('\n');
    text
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1_000, ms % 1_000)
}
