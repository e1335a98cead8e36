//! The cost that a request states in a header.

use super::Headers;
use super::text::only;
use crate::unit::{Cost, CostMap, Unit};
use std::borrow::Cow;

/// The sources of a request's cost.
#[derive(Clone, Debug, Default)]
pub enum CostRules {
    /// None: every request costs one request.
    #[default]
    None,
    /// One header with a number.
    Number(CostRule),
    /// Headers by unit.
    Units(Vec<(Unit, CostRule)>),
}

/// The cost that a request states, as [`CostRules`] find it, or as an application sets it.
#[derive(Clone, Debug, Default)]
pub struct FoundCost<'a> {
    cost: CostMap<'a>,
    /// True if rules found it. They are the same for all policies.
    is_by_rule: bool,
}

impl CostRules {
    /// Returns true if requests cannot state a cost.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Returns the cost of a request.
    pub(super) fn of<'a, 'h>(&'a self, headers: impl Headers<'h>) -> FoundCost<'a> {
        let cost = match self {
            Self::None => CostMap::default(),
            Self::Number(rule) => CostMap::Number(rule.of(headers)),
            Self::Units(rules) => {
                let rules = rules.iter();
                rules
                    .map(|(unit, rule)| (unit.as_str(), rule.of(headers)))
                    .collect()
            }
        };
        FoundCost {
            cost,
            is_by_rule: true,
        }
    }
}

impl FoundCost<'_> {
    /// Returns the cost. If rules found it, units that a policy does not count are no mistake.
    pub fn cost(&self) -> Cost<'_> {
        let cost = Cost::from(&self.cost);
        if self.is_by_rule { cost.found() } else { cost }
    }
}

impl<'a> From<CostMap<'static>> for FoundCost<'a> {
    fn from(cost: CostMap<'static>) -> Self {
        let pair = |(unit, amount)| -> (Cow<'a, str>, u64) { (unit, amount) };
        Self {
            cost: match cost {
                CostMap::Number(number) => CostMap::Number(number),
                CostMap::Units(units) => units.into_iter().map(pair).collect(),
            },
            is_by_rule: false,
        }
    }
}

/// Reads the cost from a header, within bounds.
#[derive(Clone, Debug)]
pub struct CostRule {
    /// The name of the header, in lower case.
    pub header: String,
    /// The maximum cost of a request.
    pub max: u64,
    /// The cost if the header is absent, repeated or malformed.
    pub default: u64,
}

impl CostRule {
    /// Returns the cost of a request: the value of the header, bounded to 1 to `max`, or the default.
    pub(super) fn of<'a>(&self, headers: impl Headers<'a>) -> u64 {
        let sent = only(headers.values(&self.header));
        match sent.and_then(|sent| whole(sent.trim_ascii())) {
            Some(cost) => cost.clamp(1, self.max),
            None => self.default,
        }
    }
}

/// Parses a whole number. Numbers beyond `u64` saturate.
fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::CostRule;

    #[test]
    fn a_cost_outside_its_bounds_is_clamped() {
        let rule = CostRule {
            header: "x-cost".to_owned(),
            max: 100,
            default: 3,
        };
        for (sent, cost) in [
            (&["7"][..], 7),
            (&[" 7 "], 7),
            (&["0"], 1),
            (&["00"], 1),
            (&["101"], 100),
            (&["18446744073709551616"], 100),
            (&[], 3),
            (&[""], 3),
            (&["-1"], 3),
            (&["+1"], 3),
            (&["1.0"], 3),
            (&["1e9"], 3),
            (&["0x10"], 3),
            (&["7", "7"], 3),
            (&["7, 7"], 3),
        ] {
            let headers: Vec<(&str, &str)> = sent.iter().map(|value| ("X-Cost", *value)).collect();
            assert_eq!(rule.of(&headers[..]), cost, "{sent:?}");
        }
    }
}
