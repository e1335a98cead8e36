use super::Instance;
use std::time::Duration;
use tidegate::{DecidedBy, Request};
use tidegate_testkit::laws::block_on;

const BLOCKING: &str =
    "policies: [{name: a, limits: [{name: x, key: user, rate: 4/s, block: 5m}]}]";

const FIVE_MINUTES: Duration = Duration::from_secs(300);

#[test]
fn a_block_set_in_the_store_ends_on_time_without_it() {
    let instance = Instance::new(BLOCKING);
    assert!(instance.ask_for(4).is_allowed());
    assert_eq!(instance.ask().blocked_for(), Some(FIVE_MINUTES));
    instance.clock.advance_micros(60_000_000);
    instance.store.cut();
    for passed_s in 60..300 {
        let refused = instance.ask();
        assert_eq!(refused.decided_by(), DecidedBy::Local);
        let left = Duration::from_secs(300 - passed_s);
        assert_eq!(refused.blocked_for(), Some(left));
        assert_eq!(refused.binding().unwrap().retry_after(), Some(left));
        instance.clock.advance_micros(1_000_000);
    }
    assert!(
        instance.ask_for(2).is_allowed(),
        "its share of the new bucket"
    );
}

#[test]
fn without_the_store_the_first_refusal_blocks_locally() {
    let instance = Instance::new(BLOCKING);
    instance.store.cut();
    assert!(instance.ask_for(2).is_allowed());
    let never = instance.ask_for(3);
    assert!(
        !never.is_allowed() && !never.is_blocked(),
        "the local share"
    );
    assert_eq!(instance.ask().blocked_for(), Some(FIVE_MINUTES));
    instance.clock.advance_micros(299_000_000);
    assert_eq!(instance.ask().blocked_for(), Some(Duration::from_secs(1)));
    let bob = block_on(instance.limiter.check(&Request::new().user("bob")));
    assert!(bob.unwrap().is_allowed());
    // The store has no record of it.
    instance.store.mend();
    assert!(instance.ask().is_allowed());
}

#[test]
fn a_group_that_did_not_answer_leaves_the_block_of_another_in_force() {
    let two =
        "policies: [{name: a, limits: [{name: x, rate: 4/s, block: 5m}, {name: y, rate: 9/h}]}]";
    let instance = Instance::new(two);
    assert!(instance.ask_for(4).is_allowed());
    assert!(instance.ask().is_blocked());
    instance.store.lose("a/y/");
    let refused = instance.ask();
    assert_eq!(refused.decided_by(), DecidedBy::Store);
    assert_eq!(refused.blocked_for(), Some(FIVE_MINUTES));
    assert_eq!(refused.limit(), Some("x"));
}
