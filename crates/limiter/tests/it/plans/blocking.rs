use super::{ask, document, limiter, passes};
use std::time::Duration;
use tidegate::plan::UnsetShare;

/// The first limit blocks and takes its rate from a plan; the second is plain.
const BLOCKS: &str = "
plans: [{ name: events, file: plans.yaml }]
policies:
  - name: events
    limits:
      - name: per-project
        key: attr:project
        rate: { plan: events, subject: attr:project, default: unlimited }
        algorithm: fixed-window
        block: 5min
      - { name: all, key: attr:project, rate: 3/h, algorithm: fixed-window }
";

#[test]
fn an_unlimited_subject_is_not_blocked_and_the_next_limit_counts() {
    let (limiter, _) = limiter(BLOCKS, "subjects: { all: { unlimited: true }, few: 1/h }");
    for project in ["all", "stranger"] {
        let first = ask(&limiter, project);
        let told: Vec<(String, Option<String>, u64)> = first
            .applied()
            .map(|it| {
                (
                    it.limit().to_owned(),
                    it.band().map(str::to_owned),
                    it.remaining(),
                )
            })
            .collect();
        let expected = [
            ("per-project".to_owned(), None, u64::MAX),
            ("all".to_owned(), Some("3/h".to_owned()), 2),
        ];
        assert_eq!(told, expected, "{project}");
        assert_eq!(passes(&limiter, project, 9), 2, "{project}");
        let refused = ask(&limiter, project);
        assert_eq!(refused.limit(), Some("all"), "{project}");
    }
}

#[test]
fn a_subject_limited_by_a_plan_is_blocked_after_a_refusal() {
    let (limiter, clock) = limiter(BLOCKS, "subjects: { few: { amount: 1, period: 10 } }");
    assert_eq!(passes(&limiter, "few", 3), 1);
    clock.advance_micros(20_000_000);
    assert_eq!(
        passes(&limiter, "few", 1),
        0,
        "the window is over, the block is not"
    );
    clock.advance_micros(300_000_000);
    assert_eq!(passes(&limiter, "few", 1), 1);
}

/// Levels that set the block, from the least specific on.
const LEVELS: &str = "
plans: { free: { amount: 1, period: 10, block: 1h } }
groups: { acme: { plan: free }, strict: { plan: free, block: 2h } }
subjects:
  own: { amount: 1, period: 10 }
  plan: { group: acme }
  group: { group: strict }
  self: { group: strict, block: 60 }
  none: { group: strict, block: 0 }
";

#[test]
fn the_block_of_a_plan_was_ignored_in_favour_of_the_limits_one() {
    let (limiter, clock) = limiter(BLOCKS, LEVELS);
    for (project, seconds) in [
        ("own", Some(300)),
        ("plan", Some(3_600)),
        ("group", Some(7_200)),
        ("self", Some(60)),
        ("none", None),
    ] {
        assert!(ask(&limiter, project).is_allowed(), "{project}");
        let refused = ask(&limiter, project);
        assert!(!refused.is_allowed(), "{project}");
        let length = seconds.map(Duration::from_secs);
        assert_eq!(refused.blocked_for(), length, "{project}");
    }
    clock.advance_micros(59_000_000);
    assert_eq!(passes(&limiter, "self", 1), 0);
    assert_eq!(passes(&limiter, "none", 1), 1, "the window is over");
    clock.advance_micros(1_000_000);
    assert_eq!(passes(&limiter, "self", 1), 1, "and so is its block");
    assert_eq!(passes(&limiter, "own", 1), 0);

    // A new document also applies to subjects that are already blocked, like a new configuration.
    let shorter = LEVELS.replace("block: 2h", "block: 1m");
    limiter
        .replace_plans("events", document(&shorter))
        .expect("a valid config");
    let left = ask(&limiter, "group").blocked_for();
    assert!(
        left.is_none_or(|left| left <= Duration::from_secs(60)),
        "{left:?}"
    );
}

#[test]
fn a_plan_does_not_block_a_limit_without_blocks() {
    let (limiter, _) = limiter(&BLOCKS.replace("        block: 5min\n", ""), LEVELS);
    for project in ["own", "plan", "self"] {
        assert_eq!(passes(&limiter, project, 3), 1, "{project}");
        assert!(!ask(&limiter, project).is_blocked(), "{project}");
    }
}

#[test]
fn an_invalid_block_time_names_its_subject() {
    for (wrong, said) in [
        ("block: soon", "`soon` is not a block time"),
        ("block: 400d", "from 1ms to 365d"),
        ("block: 1us", "from 1ms to 365d"),
        ("rate: 2/s", "duplicates another field"),
    ] {
        let text = format!("subjects: {{ a: {{ amount: 1, period: 1, {wrong} }} }}");
        let errors =
            tidegate::plans_from_text(&text, false).and_then(|read| read.table(UnsetShare::Refuse));
        let errors = errors.expect_err(wrong).to_string();
        assert!(errors.contains(said) && errors.contains("`a`"), "{errors}");
    }
}
