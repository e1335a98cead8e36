//! The laws of [`Store`](tidegate_core::Store) as tests that every store must pass.
//!
//! A store provides a [`StoreUnderTest`], itself with control of its clock, and
//! [`store_laws!`](crate::store_laws) turns each law into a test. The twelfth, that a store returns
//! an error if the result is unknown, needs a store that fails: tests of such stores call
//! [`law_12_unknown_is_an_error`] themselves.
//!
//! ```
//! use tidegate_core::{Ask, Quota};
//! use tidegate_store_laws::laws::StoreUnderTest;
//!
//! fn one_passes(subject: &impl StoreUnderTest) {
//!     let quota = Quota::new(1, 1_000_000).build().unwrap();
//!     assert!(subject.decide(&[Ask::take(b"a", &quota, 1)]).passed);
//!     assert!(!subject.decide(&[Ask::take(b"a", &quota, 1)]).passed);
//!     subject.advance_micros(1_000_000);
//!     assert!(subject.decide(&[Ask::take(b"a", &quota, 1)]).passed);
//! }
//! ```

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a law that is broken panics; that is how a test fails"
)]

mod against_the_model;
mod blocking;
mod calendar;
mod changing;
mod concurrent;
mod exempt;
mod permits;
mod queue;
mod reserving;
mod several;
mod single;
mod subject;
mod unknown;

pub use against_the_model::{law_4_nothing_lost, law_4_nothing_lost_but_for};
pub use blocking::{
    law_16_a_refused_force_blocks, law_16_a_reset_ends_the_block,
    law_16_a_shadow_blocks_itself_alone, law_16_blocks_match_the_model,
    law_16_blocks_match_the_model_but_for, law_16_nothing_else_blocks,
    law_16_the_first_refusal_blocks,
};
pub use calendar::{
    law_18_its_clock_picks_the_window, law_18_moved_windows_are_not_granted_twice,
    law_18_outside_nothing_is_decided, law_18_outside_nothing_is_refunded,
    law_18_silence_grants_no_window_twice,
};
pub use changing::{
    law_17_a_cut_costs_a_full_drain_at_most, law_17_changed_numbers_reset_if_configured,
    law_17_scaling_does_not_reset, law_17_two_versions_never_exceed, law_17_usage_keeps_its_share,
    law_17_usage_survives_a_change, law_17_usage_survives_another_representation,
};
pub use concurrent::{law_1_all_or_nothing_under_contention, law_2_never_over};
#[doc(hidden)]
pub use exempt::{hold, is_law};
pub use permits::{
    law_19_a_lower_limit_takes_nothing_away, law_19_acquired_permits_end,
    law_19_never_more_in_flight, law_19_permits_are_held_until_released,
    law_19_permits_match_the_model, law_19_shadows_hold_permits,
};
pub use queue::law_10_places_can_be_released;
pub use reserving::{
    law_10_loans_are_refunded, law_10_the_last_units_are_refunded, law_13_a_mark_is_taken_once,
    law_14_a_return_happens_in_time_if_nothing_refuses, law_15_a_test_takes_nothing,
};
pub use several::{
    law_1_all_or_nothing, law_8_shadows_are_silent, law_9_debits_are_charged_though_refused,
    law_9_force_charges, law_11_a_bucket_named_twice_is_charged_twice, law_11_in_order,
    law_11_the_reply_lists_the_charges,
};
pub use single::{
    a_reset_removes_a_bucket, law_2_burst_1_refuses, law_3_one_clock,
    law_5_buckets_are_kept_while_they_matter, law_6_honest_refusals, law_7_free_refusals,
    law_10_refunds_are_safe,
};
pub use subject::{Manual, StoreUnderTest, block_on};
pub use unknown::law_12_unknown_is_an_error;

/// The names of all laws that [`store_laws!`](crate::store_laws) tests.
pub const LAWS: &[&str] = crate::store_laws!(@all names);

/// Turns each law into a test of a store.
///
/// `$subject` is a function without arguments. It makes a new [`StoreUnderTest`] for each test.
///
/// ```text
/// tidegate_store_laws::store_laws!(|| {
///     let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
///     Manual::new(MemoryStore::builder().clock(clock.clone()).build(), clock)
/// });
/// ```
///
/// With `if_there`, the function returns an `Option`: `None` if the store is not installed on this
/// machine. The tests then pass without testing anything.
///
/// A store that cannot keep a law names it, with the reason:
///
/// ```text
/// store_laws!(subject, except: [
///     law_13_a_mark_is_taken_once => "a transaction cannot span two partitions",
/// ]);
/// ```
///
/// The test of an exempted law still runs. It prints the reason and passes if the law is broken. It
/// fails if the law holds after all, so that no exception outlives its reason. (The two laws about
/// concurrent callers can hold by chance: they only print a note.) A name that is no law does not
/// compile:
///
/// ```compile_fail
/// # fn subject() {}
/// tidegate_store_laws::store_laws!(subject, except: [law_99_unheard_of => "no such law"]);
/// ```
#[macro_export]
macro_rules! store_laws {
    (@all $then:ident $($rest:tt)*) => {
        $crate::store_laws! { @$then [
            law_1_all_or_nothing
            law_1_all_or_nothing_under_contention
            law_2_burst_1_refuses
            law_2_never_over
            law_3_one_clock
            law_4_nothing_lost
            law_5_buckets_are_kept_while_they_matter
            law_6_honest_refusals
            law_7_free_refusals
            law_8_shadows_are_silent
            law_9_debits_are_charged_though_refused
            law_9_force_charges
            law_10_refunds_are_safe
            law_10_loans_are_refunded
            law_10_places_can_be_released
            law_10_the_last_units_are_refunded
            law_11_in_order
            law_11_the_reply_lists_the_charges
            law_11_a_bucket_named_twice_is_charged_twice
            law_13_a_mark_is_taken_once
            law_14_a_return_happens_in_time_if_nothing_refuses
            law_15_a_test_takes_nothing
            law_16_a_refused_force_blocks
            law_16_a_reset_ends_the_block
            law_16_a_shadow_blocks_itself_alone
            law_16_blocks_match_the_model
            law_16_nothing_else_blocks
            law_16_the_first_refusal_blocks
            law_17_a_cut_costs_a_full_drain_at_most
            law_17_changed_numbers_reset_if_configured
            law_17_scaling_does_not_reset
            law_17_two_versions_never_exceed
            law_17_usage_survives_another_representation
            law_17_usage_keeps_its_share
            law_17_usage_survives_a_change
            law_18_its_clock_picks_the_window
            law_18_moved_windows_are_not_granted_twice
            law_18_outside_nothing_is_decided
            law_18_outside_nothing_is_refunded
            law_18_silence_grants_no_window_twice
            law_19_a_lower_limit_takes_nothing_away
            law_19_acquired_permits_end
            law_19_never_more_in_flight
            law_19_permits_are_held_until_released
            law_19_permits_match_the_model
            law_19_shadows_hold_permits
            a_reset_removes_a_bucket
        ] $($rest)* }
    };
    (@names [$($law:ident)*]) => {
        &[$(stringify!($law)),*]
    };
    (@tests [$($law:ident)*] $subject:expr; $except:expr) => {
        $(
            #[test]
            fn $law() {
                if let Some(subject) = $subject() {
                    $crate::laws::hold(stringify!($law), $except, || $crate::laws::$law(&subject));
                }
            }
        )*
    };
    (if_there => $subject:expr $(, except: [$($law:ident => $reason:expr),* $(,)?])? $(,)?) => {
        $($(
            const _: () = assert!(
                $crate::laws::is_law(stringify!($law)),
                concat!("no law is called ", stringify!($law))
            );
        )*)?
        $crate::store_laws! { @all tests $subject; &[$($((stringify!($law), $reason)),*)?] }
    };
    ($subject:expr $(, except: $except:tt)? $(,)?) => {
        $crate::store_laws!(if_there => || Some($subject()) $(, except: $except)?);
    };
}

/// Returns quotas of every kind, of the same few units a minute, so that one request can mix narrow
/// and wide states.
fn every_kind() -> Vec<(&'static str, tidegate_core::Quota)> {
    use tidegate_core::{Algorithm, Align, Quota};
    let minute = 60_000_000;
    [
        ("tokens", Quota::new(3, minute)),
        ("fractions", Quota::new(7, minute).burst(3)),
        ("refundable", Quota::new(3, minute).refundable(true)),
        ("lends", Quota::new(3, minute).refundable(true)),
        ("large drain", Quota::new(4_099, 245_940_000_001).burst(3)),
        (
            "fixed",
            Quota::new(3, minute).algorithm(Algorithm::FixedWindow(Align::FirstRequest)),
        ),
        (
            "clock",
            Quota::new(3, minute).algorithm(Algorithm::FixedWindow(Align::Clock)),
        ),
        (
            "sliding",
            Quota::new(3, minute).algorithm(Algorithm::SlidingWindow),
        ),
        (
            "log",
            Quota::new(3, minute).algorithm(Algorithm::SlidingLog),
        ),
        (
            "bucketed",
            Quota::new(3, minute).algorithm(Algorithm::BucketedWindow),
        ),
        (
            "calendar",
            Quota::new(3, minute).algorithm(Algorithm::CalendarWindow),
        ),
    ]
    .into_iter()
    .map(|(name, spec)| {
        let quota = spec.label(name).build();
        let quota = quota.expect("a valid quota");
        let lends = name == "lends";
        (
            name,
            if lends {
                quota.with_lending(true)
            } else {
                quota
            },
        )
    })
    .collect()
}
