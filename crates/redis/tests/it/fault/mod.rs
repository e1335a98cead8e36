//! Real faults under load, with a history checker. Faults are numbered; [`ROWS`] names the tests
//! that prove the bound of each row, or what is missing for them.
//!
//! A store is exact or returns `StoreError`, which limits with `on_failure: deny` or `error` pass
//! on. `crates/limiter/tests/redis` tests what limits with `local` admit beyond that.

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

/// The proof of a row.
enum Proof {
    /// Tests, here or in the named file.
    Tests(&'static [&'static str]),
    /// Needs a feature that does not exist yet.
    Later(&'static str),
}

/// All faults, in order.
const ROWS: [(&str, Proof); 24] = [
    (
        "Redis slow for k of N instances",
        Tests(&["row_1_a_slow_store", "at_most_its_share_above_the_policy"]),
    ),
    (
        "timeout, execution unknown",
        Tests(&["row_2_a_paused_server", "row_2_a_charge_without_a_reply"]),
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
            "row_5_an_unreachable_store",
            "row_5_after_the_first_reply",
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
            "rows_9_and_12_crashed_or_paused_instances",
            "row_9_vanished_callers",
        ]),
    ),
    (
        "crash between reserve and refund",
        Tests(&["row_10_charges_of_a_vanished_caller"]),
    ),
    (
        "refund lost, network duplicates",
        Tests(&["row_11_after_lost_replies", "row_11_a_receipt"]),
    ),
    (
        "stall of an instance",
        Tests(&["rows_9_and_12_crashed_or_paused_instances"]),
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

/// The files with the tests of [`ROWS`].
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
fn every_row_of_the_failure_table_has_a_test_or_a_reason() {
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
