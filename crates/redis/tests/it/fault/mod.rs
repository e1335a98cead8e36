//! Real faults under load, with a history checker. What can go wrong is numbered; [`ROWS`] says
//! which tests prove that a row costs no more than it may, or what is missing for that.
//!
//! A store by itself is exact or says that it cannot tell (`StoreError`), which is what limits with
//! `on_failure: deny` or `error` make of it. What limits with `local` admit beyond that is proved in
//! `crates/limiter/tests/redis`.

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking as tests do, and say what they measured"
)]

mod instances;
pub(crate) mod load;
mod network;
mod recovery;
mod refunds;
mod restart;
mod server_says_no;
mod topology;

use Proof::{Later, Tests};

/// What becomes of a row.
enum Proof {
    /// These tests, here or where they say.
    Tests(&'static [&'static str]),
    /// Needs something that is not built yet.
    Later(&'static str),
}

/// All that can go wrong, in order.
const ROWS: [(&str, Proof); 24] = [
    (
        "Redis slow for k of N instances",
        Tests(&["row_1_a_slow_store", "at_most_its_share_above_the_policy"]),
    ),
    (
        "timeout, execution unknown",
        Tests(&["row_2_a_server_that_stands_still", "row_2_what_was_charged"]),
    ),
    ("connection refused", Tests(&["row_3_a_refused_connection"])),
    (
        "Redis down for T",
        Tests(&[
            "row_4_a_killed_server",
            "at_most_its_share_above_the_policy",
        ]),
    ),
    (
        "recovery",
        Tests(&[
            "row_5_no_herd",
            "row_5_after_the_first_answer",
            "row_5_no_decision_is_a_probe",
            "row_5_a_flapping_store",
        ]),
    ),
    (
        "primary crash, tail lost",
        Tests(&[
            "row_6_a_failover_of_sentinels",
            "row_6_a_failover_of_a_cluster",
        ]),
    ),
    (
        "split brain",
        Later("a network that can be cut between servers"),
    ),
    (
        "instance partitioned from Redis only",
        Tests(&["at_most_its_share_above_the_policy"]),
    ),
    (
        "instance crash",
        Tests(&[
            "rows_9_and_12_instances_that_die",
            "row_9_callers_who_vanish",
        ]),
    ),
    (
        "crash between reserve and refund",
        Tests(&["row_10_what_a_caller"]),
    ),
    (
        "refund lost, network duplicates",
        Tests(&["row_11_after_lost_replies", "row_11_a_receipt"]),
    ),
    (
        "stall of an instance",
        Tests(&["rows_9_and_12_instances_that_die"]),
    ),
    (
        "Redis clock back / forward",
        Tests(&["row_13_steps_of_the_servers_clock"]),
    ),
    ("resharding", Tests(&["row_14_a_reshard_under_load"])),
    ("NOSCRIPT", Tests(&["row_15_script_flush"])),
    (
        "FLUSHALL, restart without persistence",
        Tests(&["row_16_flushall", "row_4_a_killed_server"]),
    ),
    (
        "OOM, MISCONF, NOREPLICAS, BUSY",
        Tests(&[
            "row_17_out_of_memory",
            "row_17_too_few_replicas",
            "row_17_a_busy_server",
        ]),
    ),
    ("hot slot saturated", Later("leases")),
    ("key cardinality attack", Tests(&["row_19_more_subjects"])),
    (
        "two versions during a rolling deploy",
        Tests(&["row_20_two_versions"]),
    ),
    (
        "configuration pushed with an error",
        Tests(&["row_21_a_configuration_that_is_wrong"]),
    ),
    (
        "live instances miscounted",
        Tests(&["instances_that_were_not_counted"]),
    ),
    ("settlement replayed", Later("settlement")),
    ("drain attack", Tests(&["row_24_a_flood"])),
];

/// Where the tests of [`ROWS`] are.
const SOURCES: [&str; 9] = [
    include_str!("instances.rs"),
    include_str!("network.rs"),
    include_str!("recovery.rs"),
    include_str!("restart.rs"),
    include_str!("server_says_no.rs"),
    include_str!("topology.rs"),
    include_str!("../exact/mod.rs"),
    include_str!("../../../../limiter/tests/redis/local.rs"),
    include_str!("../../../../server/tests/it/sources/file.rs"),
];

#[test]
fn every_row_of_the_table_of_failures_has_a_test_or_says_what_it_needs() {
    for (number, (row, proof)) in (1..).zip(&ROWS) {
        match proof {
            Later(needs) => println!("row {number}, {row}: skipped, needs {needs}"),
            Tests(tests) => {
                assert!(!tests.is_empty(), "row {number}, {row}");
                for test in *tests {
                    let is_there = SOURCES.iter().any(|it| it.contains(&format!("fn {test}")));
                    assert!(is_there, "row {number}, {row}: there is no test {test}…");
                }
            }
        }
    }
}
