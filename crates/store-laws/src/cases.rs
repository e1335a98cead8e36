//! How many generated cases a property test runs.

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
#[expect(
    clippy::disallowed_methods,
    reason = "a setting of test runs, which no program reads"
)]
pub fn cases(full: u32) -> u32 {
    match std::env::var("TIDEGATE_TEST_CASES") {
        Ok(most) => {
            let most: u32 = most.parse().expect("TIDEGATE_TEST_CASES is a number");
            full.min(most)
        }
        Err(_) => full,
    }
}
