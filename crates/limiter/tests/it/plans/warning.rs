use super::{ask, limiter};

const WARNS: &str = "
plans: [{ name: events, file: plans.yaml }]
policies:
  - name: events
    limits:
      - { name: shadow, key: attr:project, rate: 2/h, algorithm: fixed-window, mode: shadow, warn: 100% }
      - name: per-project
        key: attr:project
        rate: { plan: events, subject: attr:project, default: 3/h }
        algorithm: fixed-window
        warn: 80%
";

#[test]
fn a_band_warns_once_when_nearly_used_up() {
    let (limiter, _) = limiter(WARNS, "subjects: { p: 5/h }");
    let warned = |project| -> Vec<String> {
        let decision = ask(&limiter, project);
        decision
            .warnings()
            .map(|it| it.limit().to_owned())
            .collect()
    };
    assert_eq!(warned("p"), Vec::<String>::new());
    assert_eq!(warned("p"), ["shadow"], "all of it is used");
    assert_eq!(warned("p"), Vec::<String>::new());
    assert_eq!(warned("p"), ["per-project"], "four of five");
    assert_eq!(
        warned("p"),
        Vec::<String>::new(),
        "the outcome was reported"
    );
    assert_eq!(
        warned("p"),
        Vec::<String>::new(),
        "and refusals use nothing"
    );
    assert_eq!(warned("q"), Vec::<String>::new());
    assert_eq!(warned("q"), ["shadow"]);
    assert_eq!(warned("q"), ["per-project"]);
}
