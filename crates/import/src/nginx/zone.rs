//! Zones: a rate and a key.

use super::http::NginxHttp;
use super::report::NginxReport;
use super::source::{self, NginxSelection};
use super::syntax::NginxDirective;
use std::collections::{BTreeMap, BTreeSet};

/// A zone that limits use.
#[derive(Debug)]
pub(super) struct NginxZone {
    pub(super) selection: NginxSelection,
    /// The amount, and the period in milliseconds.
    pub(super) rate: (u64, u64),
}

/// Reads the zones that limits use.
pub(super) fn all(http: &NginxHttp<'_>, report: &mut NginxReport) -> BTreeMap<String, NginxZone> {
    let used: BTreeSet<&str> = http.limits.iter().map(|it| it.zone.as_str()).collect();
    let mut zones = BTreeMap::new();
    for (name, it) in &http.zones {
        if !used.contains(name.as_str()) {
            report.note(
                it,
                format!("zone `{name}` is skipped: no `limit_req` uses it"),
            );
            continue;
        }
        let rate = rate(it, report);
        let text = it.words.iter().find(|word| !is_parameter(word));
        let selection = match source::select(text.map_or("", String::as_str), &http.variables) {
            Ok(selection) => Some(selection),
            Err(why) => {
                report.error(it, why.message, why.help);
                None
            }
        };
        for word in it.words.iter().filter(|word| *word == "sync") {
            report.note(it, format!("`{word}` of a zone is not needed: with Redis as the store, all instances share buckets"));
        }
        if let (Some(rate), Some(selection)) = (rate, selection) {
            for text in &selection.key.notes {
                report.note(it, *text);
            }
            note_missing(name, &selection, it, report);
            zones.insert(name.clone(), NginxZone { selection, rate });
        }
    }
    zones
}

fn is_parameter(word: &str) -> bool {
    word.starts_with("zone=") || word.starts_with("rate=") || word == "sync"
}

/// Notes a key with parts that may be absent.
fn note_missing(
    name: &str,
    selection: &NginxSelection,
    it: &NginxDirective,
    report: &mut NginxReport,
) {
    let key = &selection.key;
    if !key.has_optional() {
        return;
    }
    report.note(
        it,
        "a header, cookie or parameter of a key counts as missing in Tidegate if a client sends it twice",
    );
    let is_skipped = key.may_be_empty && key.parts.len() == 1;
    if !is_skipped && !key.has_address() {
        report.warn(it, format!("requests without a part of the key of zone `{name}` count by client address: nginx counts them together"));
    }
}

/// Reads the rate: the amount, and the period in milliseconds.
fn rate(it: &NginxDirective, report: &mut NginxReport) -> Option<(u64, u64)> {
    let text = it.words.iter().find_map(|word| word.strip_prefix("rate="));
    let units = [("r/s", 1_000_u64), ("r/m", 60_000)];
    let found = text.and_then(|text| {
        let (number, period) = units
            .iter()
            .find_map(|(unit, period)| Some((text.strip_suffix(unit)?, *period)))?;
        let amount = number.parse::<u64>().ok();
        Some((amount.filter(|it| (1..=100_000_000).contains(it))?, period))
    });
    match found {
        None => {
            let message = format!("rate `{}` is not supported", text.unwrap_or("none"));
            report.error(
                it,
                message,
                "expected a rate such as `rate=10r/s` or `rate=30r/m`",
            );
        }
        // nginx counts in thousandths of a request per second, rounded down.
        Some((amount, 60_000)) if !(amount * 1_000).is_multiple_of(60) => {
            let thousandths = amount * 1_000 / 60;
            let text = format!(
                "nginx rounds {amount}r/m down to {}.{:03} requests per second, Tidegate counts it exactly",
                thousandths / 1_000,
                thousandths % 1_000
            );
            report.note(it, text);
        }
        Some(_) => {}
    }
    found
}
