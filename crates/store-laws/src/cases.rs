//! Numbers of generated cases of property tests.

/// Returns `full`, or the number in `TIDEGATE_TEST_CASES` if that is smaller: `scripts/test --quick`
/// sets it, a full run does not.
///
/// # Panics
///
/// If the variable holds anything but a number: a typo must not shrink a proof.
///
/// ```
/// assert!(tidegate_store_laws::cases(3_000) <= 3_000);
/// ```
pub fn cases(full: u32) -> u32 {
    variable("TIDEGATE_TEST_CASES").map_or(full, |most| full.min(most))
}

/// Like [`cases`], but the number in `TIDEGATE_SOAK_CASES` replaces `full`: `scripts/soak` sets it.
///
/// # Panics
///
/// If a variable holds anything but a number.
pub fn soak_cases(full: u32) -> u32 {
    cases(variable("TIDEGATE_SOAK_CASES").unwrap_or(full))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a setting of test runs, which no program reads"
)]
fn variable(name: &str) -> Option<u32> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("the variable holds a number of cases"))
}
