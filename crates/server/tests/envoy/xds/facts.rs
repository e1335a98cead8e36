//! The cases of envoyproxy/ratelimit's xDS tests (`test/provider/xds_grpc_sotw_provider_test.go`
//! and `test/integration/xds_sotw_integration_test.go` at commit f2fb157): the resources that are
//! sent, and the limits in force.

use super::kit::{ControlPlane, LimitedServer};
use super::{NODE, limited};
use serde_json::{Value, json};

/// Returns a descriptor with a limit.
fn limit(key: &str, value: &str, unit: &str, amount: u32) -> Value {
    json!({ "key": key, "value": value, "rateLimit": { "unit": unit, "requestsPerUnit": amount } })
}

fn config(name: &str, domain: &str, descriptors: &[Value]) -> Value {
    json!({ "name": name, "domain": domain, "descriptors": descriptors })
}

/// Sends each snapshot, and compares the limits in force with the dump of the other program.
fn replay(
    server: &mut ControlPlane,
    tidegate: &mut LimitedServer,
    cases: &[(&str, Vec<Value>, &[&str])],
) {
    for (version, resources, expected) in cases {
        server.set(NODE, version, resources);
        server.await_answer(version, true);
        tidegate.await_limits(expected);
    }
}

#[test]
fn the_unit_cases_of_envoyproxy_ratelimit_give_the_same_results() {
    let Some(mut server) = ControlPlane::start(&[]) else {
        return;
    };
    let first = [config("foo", "foo", &[limit("k1", "v1", "MINUTE", 3)])];
    server.set(NODE, "1", &first);
    let mut tidegate = limited(&server, &[], &[]);
    let unlimited = |key: &str| json!({ "key": key, "rateLimit": { "unlimited": true } });
    let bar = config("bar", "bar", &[limit("k1", "v1", "MINUTE", 100)]);
    let mut k1 = limit("k1", "v1", "MINUTE", 10);
    k1["descriptors"] = json!([unlimited("k2"), limit("k2", "v2", "HOUR", 15)]);
    let mut j1 = unlimited("j1");
    j1["value"] = "v2".into();
    let mut j2 = limit("j2", "v2", "DAY", 15);
    j2["shadowMode"] = true.into();
    j2["quotaMode"] = true.into();
    j1["descriptors"] = json!([unlimited("j2"), j2]);
    let cases: [(&str, Vec<Value>, &[&str]); 4] = [
        (
            "1",
            first.to_vec(),
            &["foo.k1_v1: unit=MINUTE requests_per_unit=3, shadow_mode: false, quota_mode: false"],
        ),
        (
            "2",
            vec![config("foo", "foo", &[limit("k2", "v2", "MINUTE", 5)])],
            &["foo.k2_v2: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false"],
        ),
        (
            "3",
            vec![
                config("foo", "foo", &[limit("k1", "v1", "MINUTE", 10)]),
                bar.clone(),
            ],
            &[
                "foo.k1_v1: unit=MINUTE requests_per_unit=10, shadow_mode: false, quota_mode: false",
                "bar.k1_v1: unit=MINUTE requests_per_unit=100, shadow_mode: false, quota_mode: false",
            ],
        ),
        (
            "4",
            vec![config("foo", "foo", &[k1, j1]), bar],
            &[
                "foo.k1_v1: unit=MINUTE requests_per_unit=10, shadow_mode: false, quota_mode: false",
                "foo.k1_v1.k2: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
                "foo.k1_v1.k2_v2: unit=HOUR requests_per_unit=15, shadow_mode: false, quota_mode: false",
                "foo.j1_v2: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
                "foo.j1_v2.j2: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
                // There also `quota_mode: true`. A limit in shadow never refuses, so Tidegate leaves the
                // mode out, with a warning.
                "foo.j1_v2.j2_v2: unit=DAY requests_per_unit=15, shadow_mode: true, quota_mode: false",
                "bar.k1_v1: unit=MINUTE requests_per_unit=100, shadow_mode: false, quota_mode: false",
            ],
        ),
    ];
    replay(&mut server, &mut tidegate, &cases);
}

#[test]
fn one_domain_in_several_resources_gives_the_same_results() {
    let Some(mut server) = ControlPlane::start(&[]) else {
        return;
    };
    let resources = vec![
        config("foo-1", "foo", &[limit("k1", "v1", "MINUTE", 10)]),
        config("foo-2", "foo", &[limit("k1", "v2", "MINUTE", 100)]),
    ];
    server.set(NODE, "3", &resources);
    let mut tidegate = limited(&server, &[], &[("MERGE_DOMAIN_CONFIG", "true")]);
    let expected: &[&str] = &[
        "foo.k1_v2: unit=MINUTE requests_per_unit=100, shadow_mode: false, quota_mode: false",
        "foo.k1_v1: unit=MINUTE requests_per_unit=10, shadow_mode: false, quota_mode: false",
    ];
    replay(&mut server, &mut tidegate, &[("3", resources, expected)]);
}

#[test]
fn the_reload_case_of_envoyproxy_ratelimit_gives_the_same_results() {
    let Some(mut server) = ControlPlane::start(&[]) else {
        return;
    };
    let open = |key: &str, unit: &str, amount: u32| limit(key, "", unit, amount);
    let basic = config(
        "basic",
        "basic",
        &[
            open("key1", "SECOND", 50),
            open("key1_local", "SECOND", 50),
            open("one_per_minute", "MINUTE", 1),
        ],
    );
    let another = config(
        "another",
        "another",
        &[
            open("key2", "MINUTE", 20),
            open("key3", "HOUR", 10),
            open("key2_local", "MINUTE", 20),
            open("key3_local", "HOUR", 10),
            open("key4", "DAY", 20),
            open("key4_local", "DAY", 20),
        ],
    );
    let reload = config(
        "reload",
        "reload",
        &[
            open("key1", "SECOND", 50),
            open("block", "SECOND", 0),
            open("one_per_minute", "MINUTE", 1),
        ],
    );
    let line = |name: &str, unit: &str, amount: u32| {
        format!(
            "{name}: unit={unit} requests_per_unit={amount}, shadow_mode: false, quota_mode: false"
        )
    };
    let mut before = Vec::new();
    for (name, unit, amount) in [
        ("basic.key1", "SECOND", 50),
        ("basic.key1_local", "SECOND", 50),
        ("basic.one_per_minute", "MINUTE", 1),
        ("another.key2", "MINUTE", 20),
        ("another.key3", "HOUR", 10),
        ("another.key2_local", "MINUTE", 20),
        ("another.key3_local", "HOUR", 10),
        ("another.key4", "DAY", 20),
        ("another.key4_local", "DAY", 20),
    ] {
        before.push(line(name, unit, amount));
    }
    let mut after = before.clone();
    after.push(line("reload.key1", "SECOND", 50));
    after.push(line("reload.block", "SECOND", 0));
    after.push(line("reload.one_per_minute", "MINUTE", 1));
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    let after: Vec<&str> = after.iter().map(String::as_str).collect();
    let first = vec![basic.clone(), another.clone()];
    server.set(NODE, "1", &first);
    let mut tidegate = limited(&server, &[], &[]);
    let with = vec![basic, another, reload];
    let cases = [
        ("1", first.clone(), before.as_slice()),
        ("2", with, after.as_slice()),
        ("3", first, before.as_slice()),
    ];
    replay(&mut server, &mut tidegate, &cases);
}
