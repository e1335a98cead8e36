//! Numbers with their nouns.

use std::fmt::Display;

/// Returns a number with its noun in the right form: `1 policy`, `2 policies`. The number may have
/// separators, such as `1,000`.
///
/// ```
/// use tidegate_policy::text::counted;
///
/// assert_eq!(counted(1, "policy", "policies"), "1 policy");
/// assert_eq!(counted(0, "policy", "policies"), "0 policies");
/// assert_eq!(counted("1,000", "line", "lines"), "1,000 lines");
/// ```
pub fn counted(count: impl Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}
