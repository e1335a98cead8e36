//! Random configurations.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt::Write as _;

/// Matches and keys of a limit.
const PLACES: [&str; 14] = [
    "match: { descriptor: [a] }, key: 'descriptor:a'",
    "match: { descriptor: [a] }, key: global",
    "match: { descriptor: [a: x] }",
    "match: { descriptor: [a: 'x*'] }, key: descriptor",
    "match: { descriptor: [b] }, key: descriptor",
    "match: { descriptor: [a, b] }, key: descriptor",
    "match: { descriptor: [a, b: y] }, key: 'descriptor:a'",
    "match: { descriptor: { b: y } }, key: 'descriptor:a', missing: skip",
    "match: { descriptor: { a: '' } }, key: 'descriptor:b', missing: refuse",
    "match: { descriptor: [a: y], path: /slow }, key: [ip, descriptor]",
    "key: global",
    "key: ip",
    "key: [user, path], missing: skip",
    "match: { path: /slow$ }, key: 'attr:team', missing: refuse",
];

/// No two of one limit are the same. See [`GRID_US`](super::GRID_US) for the choice.
const PERIODS: [&str; 3] = ["h", "3h", "day"];

const WINDOWS: [&str; 5] = [
    "fixed-window",
    "fixed-window, align: clock",
    "sliding-window",
    "sliding-log",
    "bucketed-window",
];

/// The text that marks a policy whose limits count one after the other.
pub(super) const EACH: &str = "evaluate: each";

/// Returns a random policy.
pub(super) fn policy() -> impl Strategy<Value = String> {
    let evaluate = select(vec![
        "evaluate: all",
        "evaluate: all",
        "evaluate: first",
        EACH,
    ]);
    (evaluate, vec(limit(), 1..6)).prop_map(|(evaluate, limits)| {
        let mut text = format!("policies:\n  - name: agreed\n    {evaluate}\n    limits:\n");
        let count = limits.len();
        for (nth, (limit, replaced)) in limits.into_iter().enumerate() {
            let replaces = match replaced {
                Some(other) if other % count != nth => format!(", replaces: [l{}]", other % count),
                _ => String::new(),
            };
            writeln!(text, "      - {{ name: l{nth}, {limit}{replaces} }}").unwrap();
        }
        text
    })
}

/// Returns a limit without its name, and the index of the limit that it replaces.
fn limit() -> impl Strategy<Value = (String, Option<usize>)> {
    let counting = prop_oneof![
        6 => token_bucket(),
        9 => window(),
        1 => Just("rate: unlimited".to_owned()),
    ];
    let mode = proptest::bool::weighted(0.15);
    let replaced = proptest::option::weighted(0.1, 0..8_usize);
    (select(PLACES.to_vec()), counting, mode, replaced).prop_map(
        |(place, counting, is_shadow, replaced)| {
            let is_shadow = is_shadow && !counting.contains("unlimited");
            let mode = if is_shadow { ", mode: shadow" } else { "" };
            (format!("{place}, {counting}{mode}"), replaced)
        },
    )
}

fn token_bucket() -> impl Strategy<Value = String> {
    let burst = proptest::option::of(1..7_u32);
    let charge = select(vec![
        "",
        "",
        ", refundable: true",
        ", charge: always",
        ", charge: always, overdraft: 3",
        ", charge: even-if-refused",
        ", charge: even-if-refused, overdraft: 2",
    ]);
    (bands(), burst, charge).prop_map(|(bands, burst, charge)| {
        let burst = burst.map_or(String::new(), |burst| format!(" burst {burst}"));
        let bands: Vec<String> = bands.iter().map(|band| format!("{band}{burst}")).collect();
        format!("bands: [{}]{charge}", bands.join(", "))
    })
}

fn window() -> impl Strategy<Value = String> {
    let algorithm = select(WINDOWS.to_vec());
    let more = select(vec![
        "",
        "",
        ", refundable: true",
        ", charge: always",
        ", charge: even-if-refused",
    ]);
    (bands(), algorithm, more).prop_map(|(bands, algorithm, more)| {
        format!(
            "bands: [{}], algorithm: {algorithm}{more}",
            bands.join(", ")
        )
    })
}

/// Returns the rates of one limit.
fn bands() -> impl Strategy<Value = Vec<String>> {
    let periods = proptest::sample::subsequence(PERIODS.to_vec(), 1..=2);
    (periods, vec(1..7_u32, 2)).prop_map(|(periods, amounts)| {
        let bands = periods.iter().zip(amounts);
        bands
            .map(|(period, amount)| format!("{amount}/{period}"))
            .collect()
    })
}
