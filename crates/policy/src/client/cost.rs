//! The cost that a request states in a header.

use super::Headers;
use super::text::only;

/// Reads the cost from a header, within bounds.
#[derive(Clone, Debug)]
pub(crate) struct CostRule {
    /// The name of the header, in lower case.
    pub(crate) header: String,
    /// The maximum cost of a request.
    pub(crate) max: u64,
    /// The cost if the header is absent, repeated or malformed.
    pub(crate) default: u64,
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
    fn a_cost_keeps_to_its_bounds() {
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
