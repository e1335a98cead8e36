//! Sets and counts as the limiter uses them.

use super::kit::{TestRedis, run};
use tidegate_core::SharedState;
use tidegate_testkit::shared_state;

everywhere! { sets_and_counts_do_as_those_of_one_process }

fn sets_and_counts_do_as_those_of_one_process(ground: &TestRedis) {
    let state = ground.state();
    run(shared_state::check(&state, &ground.name("own")));
    assert!(state.instances().is_none(), "it is not listed");
    assert_eq!(run(state.secret([7; 32]).unwrap()).unwrap(), [7; 32]);
}
