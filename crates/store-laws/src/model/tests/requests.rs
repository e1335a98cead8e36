use super::super::{ModelRequest, decide_all};
use super::{ModelAlgorithm, ModelAnswer, ModelBucket, ModelQuota, show};

#[test]
fn after_a_refusal_the_others_are_only_read() {
    let mut narrow = ModelBucket::new(ModelQuota::token_bucket(1, 10, 2));
    let mut wide = ModelBucket::new(ModelQuota::new(ModelAlgorithm::FixedWindow, 5, 100));
    let mut decide = |now_us, cost| {
        let (allowed, answers) = decide_all(&mut [&mut narrow, &mut wide], now_us, cost);
        let answers: Vec<_> = answers.into_iter().map(show).collect();
        (allowed, answers.join(", "))
    };
    assert_eq!(decide(0, 2), (true, "+0 20, +3 100".to_owned()));
    assert_eq!(decide(5, 1), (false, "-0 15 5, +3 95".to_owned()));
    assert_eq!(decide(5, 3), (false, "-0 15 never, +3 95".to_owned()));
    assert_eq!(decide(5, 0), (true, "+0 15, +3 95".to_owned()));
    assert_eq!(decide(20, 2), (true, "+0 20, +1 80".to_owned()));
    assert_eq!(decide(40, 2), (false, "+2 0, -1 60 60".to_owned()));
    assert_eq!(decide(41, 1), (true, "+1 10, +0 59".to_owned()));
}

#[test]
fn the_longest_wait_is_reported_or_else_the_fewest_remaining() {
    let allows = |remaining| ModelAnswer {
        allowed: true,
        remaining,
        wait_us: Some(0),
        reset_us: 0,
    };
    let refuses = |wait_us| ModelAnswer {
        allowed: false,
        wait_us,
        ..allows(7)
    };
    let binding = ModelRequest::binding;
    assert_eq!(binding(&[]), None);
    assert_eq!(binding(&[allows(3), allows(2), allows(2)]), Some(1));
    assert_eq!(binding(&[allows(0), refuses(Some(1))]), Some(1));
    assert_eq!(
        binding(&[refuses(Some(1)), refuses(Some(2)), refuses(Some(2))]),
        Some(1)
    );
    assert_eq!(binding(&[refuses(Some(2)), refuses(None)]), Some(1));
}
