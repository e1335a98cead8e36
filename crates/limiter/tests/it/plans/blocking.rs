use super::{ask, limiter, passes};

/// The first limit blocks and has its rate from a plan; the second is plain.
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
