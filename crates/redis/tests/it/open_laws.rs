//! The store laws over the open layout.
//!
//! A fixed window of whole seconds begins on a second there. Law 4, which is exact to the
//! microsecond, leaves those out; the other laws hold for them unchanged.

use crate::world::{self, World};
use tidegate_core::{Algorithm, Ask, Op, Quota, Store};
use tidegate_redis::{Layout, OpenLayout, RedisOptions, TokenFields};
use tidegate_redis_client::ConnectionSettings;
use tidegate_testkit::laws::{self, StoreUnderTest};
use tidegate_testkit::store_laws;

fn world(settings: ConnectionSettings, fields: TokenFields) -> World {
    let layout = OpenLayout::new().unknown_tokens(fields);
    World::new(
        settings,
        RedisOptions::default().layout(Layout::Open(layout)),
    )
}

/// Returns true if windows of this quota begin on whole seconds.
fn is_coarse(quota: &Quota) -> bool {
    matches!(quota.algorithm(), Algorithm::FixedWindow(_))
        && quota.period_us().is_multiple_of(1_000_000)
}

/// The laws; those that are exact to the microsecond run with whole seconds.
macro_rules! open_laws {
    ($name:ident, $settings:expr, $fields:expr $(, $law:ident => $reason:expr)* $(,)?) => {
        mod $name {
            use super::{SECONDS, TokenFields, is_coarse, laws, store_laws, world};

            fn subject() -> world::World {
                super::world($settings, $fields)
            }

            store_laws!(subject, except: [
                law_4_nothing_lost => SECONDS,
                law_16_blocks_match_the_model => SECONDS,
                law_17_scaling_does_not_reset => "a bucket that scales has a packed key, any other an open one",
                $($law => $reason,)*
            ]);

            #[test]
            fn law_4_nothing_lost_but_for_whole_seconds() {
                laws::law_4_nothing_lost_but_for(&subject(), is_coarse);
            }

            #[test]
            fn law_16_blocks_match_the_model_but_for_whole_seconds() {
                laws::law_16_blocks_match_the_model_but_for(&subject(), is_coarse);
            }
        }
    };
}

const SECONDS: &str = "a fixed window of whole seconds begins with one";
const SLOTS: &str = "nothing keeps a mark, a block and their bucket in one slot";
const REFUNDED: &str = "a refund in another slot has been made already, and is not made twice";

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
// Units forced below empty next to a block stay charged: how many there were is unknown.
open_laws!(
    cluster,
    world::cluster(world::shared_cluster()),
    TokenFields::Millis,
    law_10_loans_are_refunded => super::SLOTS,
    law_13_a_mark_is_taken_once => super::SLOTS,
    law_14_a_return_happens_in_time_if_nothing_refuses => super::SLOTS,
    law_18_outside_nothing_is_refunded => super::REFUNDED,
);

/// No step spans slots, and a return without its mark is worse than none.
#[test]
fn charges_in_several_slots_are_not_refunded() {
    let world = world(world::cluster(world::shared_cluster()), TokenFields::Millis);
    let quota = Quota::new(3, 60_000_000).refundable(true).build();
    let quota = quota.expect("a valid quota");
    let reply = world.decide(&[Ask::take(b"p/l/x", &quota, 2)]);
    let back = |by| Ask {
        op: Op::Return {
            receipt: reply.receipt(0, Op::Take(2)).expect("it was charged"),
            by,
        },
        ..Ask::look(b"p/l/x", &quota)
    };
    // One of these is in another slot.
    let marks = ["p/l~1/x", "p/l~2/x", "p/l~3/x", "p/l~4/x"];
    let errors = marks.map(|mark| {
        let asks = [Ask::take(mark.as_bytes(), &quota, 3), back(reply.at)];
        let error = world.block_on(world.store.decide(&asks)).err()?;
        assert!(!error.is_transient(), "{error}");
        let kept = world.decide_one(Ask::look(mark.as_bytes(), &quota));
        assert_eq!(kept.remaining, 3, "the mark is not taken either");
        Some(error)
    });
    assert!(errors.iter().any(Option::is_some), "all are in one slot");
    let alone = world.decide_one(back(reply.at));
    assert_eq!(alone.remaining, 3, "alone, it is in one slot");
}
