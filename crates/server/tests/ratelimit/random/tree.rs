//! Random configurations.

use super::dice::Dice;
use std::fmt::Write as _;

const KEYS: &[&str] = &["a", "b"];
/// `None` is the key with any value. Later versions support a `*` in other places too.
const VALUES: &[Option<&str>] = &[
    None,
    Some("x"),
    Some("y"),
    Some("xy"),
    Some("x*"),
    Some("xa*"),
    Some("*"),
];

/// Returns the file of a domain.
pub(super) fn domain(nth: u64, dice: &mut Dice) -> String {
    let mut text = format!("domain: d{nth}\n");
    level(&mut text, 0, dice);
    text
}

/// Writes the descriptors of a level, each key and value at most once.
fn level(text: &mut String, depth: usize, dice: &mut Dice) {
    let pad = "    ".repeat(depth);
    let begin = text.len();
    // Deeper levels have fewer.
    let percent = [45, 25, 20][depth];
    for key in KEYS {
        for value in VALUES {
            if !dice.is(percent) {
                continue;
            }
            if begin == text.len() {
                writeln!(text, "{pad}descriptors:").unwrap();
            }
            writeln!(text, "{pad}  - key: {key}").unwrap();
            if let Some(value) = value {
                writeln!(text, "{pad}    value: '{value}'").unwrap();
            }
            node(text, value.is_some_and(|it| it.contains('*')), depth, dice);
        }
    }
    // A domain must not be empty.
    if begin == text.len() && depth == 0 {
        text.push_str(
            "descriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 2 } }]\n",
        );
    }
}

/// Writes a descriptor without `quota_mode`, whose meaning changed after the compared version.
fn node(text: &mut String, is_pattern: bool, depth: usize, dice: &mut Dice) {
    let pad = "    ".repeat(depth + 1);
    if dice.is(80) {
        let is_shadow = dice.is(15);
        let rate = rate(is_shadow, dice);
        writeln!(text, "{pad}rate_limit: {{ {rate} }}").unwrap();
        if is_shadow {
            writeln!(text, "{pad}shadow_mode: true").unwrap();
        }
        if is_pattern && dice.is(30) {
            writeln!(text, "{pad}share_threshold: true").unwrap();
        }
    }
    if depth < 2 && dice.is(50) {
        level(text, depth + 1, dice);
    }
}

fn rate(is_shadow: bool, dice: &mut Dice) -> String {
    let names = ["n1", "n2", "n3"];
    let mut fields = Vec::new();
    let mut name = None;
    // Without a name: one of the two reports the name even of unlimited and replaced limits.
    if dice.is(10) {
        fields.push("unlimited: true".to_owned());
    } else {
        let unit = dice.of(&["hour", "day", "week", "month", "year"]);
        let amount = dice.below(7);
        fields.push(format!("unit: {unit}, requests_per_unit: {amount}"));
        // A limit in shadow mode has a known name.
        name = if is_shadow {
            Some("shadow")
        } else {
            Some(dice.of(&names)).filter(|_| dice.is(50))
        };
    }
    if let Some(name) = name {
        fields.push(format!("name: {name}"));
    }
    let other = dice.of(&names);
    if dice.is(15) && name != Some(other) {
        fields.push(format!("replaces: [{{ name: {other} }}]"));
    }
    fields.join(", ")
}
