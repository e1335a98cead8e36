use super::{ask, document, limiter, passes};
use std::time::Duration;
use tidegate::plan::{PlanDocument, Unset};

/// The first limit blocks and takes its rate from a plan; the second is plain.
const BLOCKS: &str = "
plans: [{ name: events, from: { file: plans.yaml } }]
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
fn whom_a_plan_does_not_limit_is_blocked_by_nothing_and_the_next_limit_counts_as_ever() {
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
fn whom_a_plan_limits_is_blocked_after_a_refusal() {
    let (limiter, clock) = limiter(BLOCKS, "subjects: { few: { N: 1, T: 10 } }");
    assert_eq!(passes(&limiter, "few", 3), 1);
    clock.advance_micros(20_000_000);
    assert_eq!(
        passes(&limiter, "few", 1),
        0,
        "its window is over, and the block is not"
    );
    clock.advance_micros(300_000_000);
    assert_eq!(passes(&limiter, "few", 1), 1);
}

/// Levels that set the block, from the least specific on.
const LEVELS: &str = "
plans: { free: { N: 1, T: 10, block: 1h } }
groups: { acme: { plan: free }, strict: { plan: free, block: 2h } }
subjects:
  own: { N: 1, T: 10 }
  plan: { group: acme }
  group: { group: strict }
  self: { group: strict, block_duration_seconds: 60 }
  none: { group: strict, block: 0 }
";

#[test]
fn every_subject_was_blocked_for_as_long_as_the_limit_says_whatever_its_plan_said() {
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
    assert_eq!(passes(&limiter, "none", 1), 1, "its window is over");
    clock.advance_micros(1_000_000);
    assert_eq!(passes(&limiter, "self", 1), 1, "so is its block");
    assert_eq!(passes(&limiter, "own", 1), 0);

    // A new document also applies to subjects that are already blocked, like a new configuration.
    let shorter = LEVELS.replace("block: 2h", "block: 1m");
    limiter
        .replace_plans("events", document(&shorter))
        .expect("it is right");
    let left = ask(&limiter, "group").blocked_for();
    assert!(
        left.is_none_or(|left| left <= Duration::from_mins(1)),
        "{left:?}"
    );
}

#[test]
fn a_limit_that_does_not_block_is_closed_by_no_plan() {
    let (limiter, _) = limiter(&BLOCKS.replace("        block: 5min\n", ""), LEVELS);
    for project in ["own", "plan", "self"] {
        assert_eq!(passes(&limiter, project, 3), 1, "{project}");
        assert!(!ask(&limiter, project).is_blocked(), "{project}");
    }
}

#[test]
fn what_is_no_time_to_block_is_said_of_whom() {
    for (wrong, said) in [
        ("block: soon", "`soon` is no time for which to block"),
        ("block: 400d", "from 1ms to 365d"),
        ("block: 1us", "from 1ms to 365d"),
        (
            "block: 5m, block_duration_seconds: 5",
            "says what another field says already",
        ),
    ] {
        let text = format!("subjects: {{ a: {{ N: 1, T: 1, {wrong} }} }}");
        let errors = PlanDocument::read(&text, false).and_then(|read| read.table(Unset::Refuse));
        let errors = errors.expect_err(wrong).to_string();
        assert!(errors.contains(said) && errors.contains("`a`"), "{errors}");
    }
}
