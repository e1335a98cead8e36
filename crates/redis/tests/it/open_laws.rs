//! The laws of stores over the open layout.
//!
//! A fixed window of whole seconds begins with one there, so that law 4, which knows every
//! microsecond, is told to leave those out; the other laws hold for them as they are.

use crate::world::{self, World};
use tidegate_core::{Algorithm, Ask, Op, Quota, Store};
use tidegate_redis::{ConnectionSettings, Layout, OpenLayout, RedisOptions, TokenFields};
use tidegate_testkit::laws::{self, StoreUnderTest};
use tidegate_testkit::store_laws;

fn world(settings: ConnectionSettings, fields: TokenFields) -> World {
    let layout = OpenLayout::new().unknown_tokens(fields);
    World::new(
        settings,
        RedisOptions::default().layout(Layout::Open(layout)),
    )
}

/// Whether a window of this quota begins with a whole second.
fn is_coarse(quota: &Quota) -> bool {
    matches!(quota.algorithm(), Algorithm::FixedWindow(_))
        && quota.period_us().is_multiple_of(1_000_000)
}

/// The laws, and in place of those that know every microsecond, the same but for whole seconds.
macro_rules! open_laws {
    ($name:ident, $settings:expr, $fields:expr $(, $law:ident => $reason:expr)* $(,)?) => {
        mod $name {
            use super::{SECONDS, TokenFields, is_coarse, laws, store_laws, world};

            fn subject() -> world::World {
                super::world($settings, $fields)
            }

            store_laws!(subject, except: [
                law_4_nothing_lost => SECONDS,
                law_16_blocks_as_the_model_does => SECONDS,
                law_17_to_scale_is_no_number => "a bucket that scales has a packed key, any other an open one",
                $($law => $reason,)*
            ]);

            #[test]
            fn law_4_nothing_lost_but_for_whole_seconds() {
                laws::law_4_nothing_lost_but_for(&subject(), is_coarse);
            }

            #[test]
            fn law_16_blocks_as_the_model_does_but_for_whole_seconds() {
                laws::law_16_blocks_as_the_model_does_but_for(&subject(), is_coarse);
            }
        }
    };
}

const SECONDS: &str = "a fixed window of whole seconds begins with one";
const SLOTS: &str = "nothing keeps a mark, a block and their bucket in one slot";

open_laws!(
    millis,
    world::standalone(world::shared_server()),
    TokenFields::Millis,
);
open_laws!(
    nanos,
    world::standalone(world::shared_server()),
    TokenFields::Nanos,
);
// What was forced below empty next to a block stays charged: nobody knows how much of it there was.
open_laws!(
    cluster,
    world::cluster(world::shared_cluster()),
    TokenFields::Millis,
    law_10_loans_come_back => super::SLOTS,
    law_13_a_mark_is_taken_once => super::SLOTS,
    law_14_returning_waits_for_its_turn => super::SLOTS,
);

/// No step spans slots, and a return that may happen without its mark is worse than none.
#[test]
fn what_lies_in_several_slots_is_not_returned() {
    let world = world(world::cluster(world::shared_cluster()), TokenFields::Millis);
    let quota = Quota::new(3, 60_000_000).refundable(true).build();
    let quota = quota.expect("it can be represented");
    let reply = world.decide(&[Ask::take(b"p/l/x", &quota, 2)]);
    let back = |by| Ask {
        op: Op::Return {
            receipt: reply.receipt(0, Op::Take(2)).expect("it was charged"),
            by,
        },
        ..Ask::look(b"p/l/x", &quota)
    };
    // One of these lies elsewhere.
    let marks = ["p/l~1/x", "p/l~2/x", "p/l~3/x", "p/l~4/x"];
    let errors = marks.map(|mark| {
        let asks = [Ask::take(mark.as_bytes(), &quota, 3), back(reply.at)];
        let error = world.block_on(world.store.decide(&asks)).err()?;
        assert!(!error.is_transient(), "{error}");
        let kept = world.decide_one(Ask::look(mark.as_bytes(), &quota));
        assert_eq!(kept.remaining, 3, "the mark is not taken either");
        Some(error)
    });
    assert!(errors.iter().any(Option::is_some), "all lie in one slot");
    let alone = world.decide_one(back(reply.at));
    assert_eq!(alone.remaining, 3, "by itself it lies in one");
}
