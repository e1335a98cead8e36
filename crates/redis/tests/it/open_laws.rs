//! The laws of stores over the open layout.
//!
//! A fixed window of whole seconds begins with one there, so that law 4, which knows every
//! microsecond, is told to leave those out; the other laws hold for them as they are.

use crate::world::{self, World};
use tidegate_core::{Algorithm, Ask, Op, Quota, Store};
use tidegate_redis::{Layout, OpenLayout, Options, Settings, TokenFields};
use tidegate_testkit::laws::{self, Subject};

fn world(settings: Settings, fields: TokenFields) -> World {
    let layout = OpenLayout::new().unknown_tokens(fields);
    World::new(settings, Options::default().layout(Layout::Open(layout)))
}

/// Whether a window of this quota begins with a whole second.
fn is_coarse(quota: &Quota) -> bool {
    matches!(quota.algorithm(), Algorithm::FixedWindow(_))
        && quota.period_us().is_multiple_of(1_000_000)
}

macro_rules! open_laws {
    ($name:ident, $settings:expr, $fields:expr; $($law:ident)*) => {
        mod $name {
            use super::{TokenFields, is_coarse, laws, world};
            open_laws! { @each super::world($settings, $fields);
                law_1_all_or_nothing
                law_1_all_or_nothing_under_contention
                law_2_burst_1_refuses
                law_2_never_over
                law_3_one_clock
                law_5_as_long_as_it_matters
                law_6_honest_refusals
                law_7_free_refusals
                law_8_shadows_are_silent
                law_9_debits_are_charged_though_refused
                law_9_force_charges
                law_10_giving_back_is_safe
                law_10_places_can_be_left
                law_10_what_was_taken_last_comes_back
                law_11_in_order
                law_11_twice_is_twice
                law_15_a_test_takes_nothing
                law_16_a_reset_lifts_the_block
                law_16_a_shadow_blocks_itself_alone
                law_16_nothing_else_blocks
                law_16_the_first_refusal_blocks
                law_17_a_cut_costs_a_full_drain_at_most
                law_17_other_numbers_begin_anew_where_they_are_to
                law_17_two_versions_are_never_over
                law_17_what_was_used_outlives_the_way_it_is_counted
                law_17_what_was_used_stays_its_share
                law_17_what_was_used_stays_used
                reset_makes_as_good_as_new
                $($law)*
            }

            #[test]
            fn law_4_nothing_lost_but_for_whole_seconds() {
                let subject = super::world($settings, $fields);
                laws::law_4_nothing_lost_but_for(&subject, is_coarse);
            }

            #[test]
            fn law_16_blocks_as_the_model_does_but_for_whole_seconds() {
                let subject = super::world($settings, $fields);
                laws::law_16_blocks_as_the_model_does_but_for(&subject, is_coarse);
            }
        }
    };
    (@each $subject:expr; $($law:ident)*) => {
        $(
            #[test]
            fn $law() {
                laws::$law(&$subject);
            }
        )*
    };
}

open_laws!(
    millis,
    world::standalone(world::shared_server()),
    TokenFields::Millis;
    law_10_loans_come_back
    law_13_a_mark_is_taken_once
    law_14_returning_waits_for_its_turn
    law_16_a_refused_force_blocks
);
open_laws!(
    nanos,
    world::standalone(world::shared_server()),
    TokenFields::Nanos;
    law_10_loans_come_back
    law_13_a_mark_is_taken_once
    law_14_returning_waits_for_its_turn
    law_16_a_refused_force_blocks
);
// Nothing keeps a mark and its bucket in one slot here, nor a block: what was forced below empty beside
// one stays, for nobody knows how much of it there was.
open_laws!(
    cluster,
    world::cluster(world::shared_cluster()),
    TokenFields::Millis;
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
            receipt: reply.receipt(0, 2),
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
