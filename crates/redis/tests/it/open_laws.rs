//! The laws of stores over the open layout.
//!
//! A fixed window of whole seconds begins with one there, so that law 4, which knows every
//! microsecond, is told to leave those out; the other laws hold for them as they are.

use crate::world::{self, World};
use tidegate_core::{Algorithm, Quota};
use tidegate_redis::{Layout, OpenLayout, Options, Settings, TokenFields};
use tidegate_testkit::laws;

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
    ($name:ident, $settings:expr, $fields:expr) => {
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
                law_9_force_charges
                law_10_giving_back_is_safe
                law_10_places_can_be_left
                law_11_in_order
                law_11_twice_is_twice
                reset_makes_as_good_as_new
            }

            #[test]
            fn law_4_nothing_lost_but_for_whole_seconds() {
                let subject = super::world($settings, $fields);
                laws::law_4_nothing_lost_but_for(&subject, is_coarse);
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
    TokenFields::Millis
);
open_laws!(
    nanos,
    world::standalone(world::shared_server()),
    TokenFields::Nanos
);
open_laws!(
    cluster,
    world::cluster(world::shared_cluster()),
    TokenFields::Millis
);
