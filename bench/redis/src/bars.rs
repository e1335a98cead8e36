//! The required ratios, and whether this run meets them.

use crate::compare::Cell;
use crate::sample::Sample;
use crate::sections::{
    ALONE, BANDS, BARE, CACHED, CALENDAR, DISTINCT, GENERAL, HOT, ONE_UNIT, PLAIN, PLAIN_THREE, UNITS,
};
use crate::stats;

/// The maximum lifetime of an entry in the deny cache.
const DENY_LIFE_S: f64 = 1.0;

/// One ratio and its bar.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Bar {
    pub(crate) what: String,
    pub(crate) ratio: f64,
    /// The least and the greatest ratio of a single round.
    pub(crate) range: [f64; 2],
    /// The required ratio, a minimum or a maximum.
    pub(crate) wanted: f64,
    pub(crate) at_least: bool,
    pub(crate) met: bool,
}

/// Returns the bars of a section.
pub(crate) fn of(section: &str, cells: &[Cell]) -> Vec<Bar> {
    let find = |name: &str| cells.iter().find(|cell| cell.name == name);
    let more = |name: &str, than: &str, bar: f64| {
        let (cell, than) = (find(name)?, find(than)?);
        let what = format!(
            "{section}: {} against {}, decisions a second",
            cell.name, than.name
        );
        Some(Bar::new(
            what,
            ratios(cell, than, |sample| sample.per_s),
            bar,
            true,
        ))
    };
    let bar = match section {
        "distinct" => {
            let per_s = |cell: &&Cell| cell.median(|sample| sample.per_s);
            let cells = DISTINCT.iter().filter_map(|(name, _)| find(name));
            let best = cells.max_by(|a, b| per_s(a).total_cmp(&per_s(b)));
            best.and_then(|best| more(&best.name, PLAIN, 1.4))
        }
        "hot" => more(HOT, PLAIN, 5.0),
        "three" => more(BANDS, PLAIN_THREE, 2.0),
        "units" => more(UNITS, ONE_UNIT, 0.97),
        "calendar" => more(CALENDAR, GENERAL, 0.9),
        "alone" => find(ALONE).zip(find(BARE)).map(|(cell, bare)| {
            let what = format!(
                "{section}: {} against {}, median latency",
                cell.name, bare.name
            );
            Bar::new(what, ratios(cell, bare, |sample| sample.p50_us), 1.3, false)
        }),
        "refused" => find(CACHED).map(calls_per_life),
        _ => None,
    };
    bar.into_iter().collect()
}

/// Returns Redis' calls per lifetime of a deny cache entry. One may begin within the span and one
/// before.
fn calls_per_life(cell: &Cell) -> Bar {
    let calls = |sample: &Sample| sample.calls * sample.decisions;
    let lives = |sample: &Sample| (sample.seconds / DENY_LIFE_S).floor() + 1.0;
    let ratios = cell
        .samples
        .iter()
        .map(|sample| calls(sample) / lives(sample));
    let total: f64 = cell.samples.iter().map(calls).sum();
    let all: f64 = cell.samples.iter().map(lives).sum();
    let what =
        format!("refused: calls for a deny-cache life of 1 s ({total:.0} calls, {all:.0} lives)");
    Bar::new(what, ratios.collect(), 1.0, false)
}

/// Returns the ratio of each round.
fn ratios(cell: &Cell, than: &Cell, part: fn(&Sample) -> f64) -> Vec<f64> {
    let rounds = cell.samples.iter().zip(&than.samples);
    rounds.map(|(a, b)| part(a) / part(b)).collect()
}

impl Bar {
    fn new(what: String, ratios: Vec<f64>, wanted: f64, at_least: bool) -> Self {
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let ratio = stats::median(ratios);
        Self {
            what,
            ratio,
            range: [least, greatest],
            wanted,
            at_least,
            met: if at_least {
                ratio >= wanted
            } else {
                ratio <= wanted
            },
        }
    }

    pub(crate) fn line(&self) -> String {
        let [least, greatest] = self.range;
        format!(
            "{}: {:.2} ({least:.2}-{greatest:.2}), bar {} {}: {}",
            self.what,
            self.ratio,
            if self.at_least { ">=" } else { "<=" },
            self.wanted,
            if self.met { "met" } else { "NOT met" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, per_s: [f64; 3]) -> Cell {
        let samples = per_s.map(|per_s| Sample {
            per_s,
            ..Sample::default()
        });
        Cell {
            name: name.to_owned(),
            samples: samples.to_vec(),
            bytes_per_key: None,
        }
    }

    #[test]
    fn a_target_is_compared_with_the_best_row_of_each_round() {
        let cells = [
            cell(PLAIN, [100.0, 100.0, 50.0]),
            cell(DISTINCT[0].0, [1.0, 1.0, 1.0]),
            cell(DISTINCT[2].0, [150.0, 160.0, 70.0]),
        ];
        let bars = of("distinct", &cells);
        assert_eq!(bars.len(), 1);
        assert!((bars[0].ratio - 1.5).abs() < 1e-9 && bars[0].met);
        assert!(bars[0].line().contains("(1.40-1.60)"));
        assert!(of("hot", &[]).is_empty());
    }
}
