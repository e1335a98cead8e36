//! The configurations in its documentation, reworded, each as a domain.

use crate::kit::{Buckets, Call, Code, Pair, within_an_hour};

/// Domain and configuration. Windows are longer than in the documentation, so that none ends during
/// a test.
const FILES: &[(&str, &str)] = &[
    ("one", include_str!("one.yaml")),
    ("two", include_str!("two.yaml")),
    ("three", include_str!("three.yaml")),
    ("four", include_str!("four.yaml")),
    ("five", include_str!("five.yaml")),
    ("six", include_str!("six.yaml")),
    ("seven", include_str!("seven.yaml")),
    ("eight", include_str!("eight.yaml")),
    ("nine", include_str!("nine.yaml")),
];

/// Domain, descriptors as `key=value,key=value & key=value`, the calls that pass, and all calls.
const CALLS: &[(&str, &str, usize, usize)] = &[
    ("one", "database=users", 5, 7),
    ("one", "database=others", 3, 3),
    ("one", "database=users,table=carts", 3, 3),
    ("nobody", "database=users", 3, 3),
    ("two", "message_type=marketing,to_number=1", 2, 4),
    ("two", "message_type=marketing,to_number=2", 2, 3),
    ("two", "to_number=1", 4, 5),
    (
        "two",
        "message_type=marketing,to_number=3 & to_number=3",
        2,
        4,
    ),
    ("two", "message_type=marketing", 2, 2),
    ("three", "remote_address=50.0.0.1", 3, 4),
    ("three", "remote_address=50.0.0.5", 0, 2),
    ("four", "key=value,subkey=subvalue", 3, 5),
    ("four", "key=value", 4, 4),
    ("four", "key=other", 2, 3),
    ("five", "auth=ldap", 9, 9),
    ("five", "auth=azure", 2, 3),
    ("six", "user=a", 6, 6),
    ("six", "user=b", 2, 3),
    ("six", "user=c", 4, 4),
    ("seven", "client=1 & path=/", 3, 4),
    ("seven", "client=1 & plan=gold", 5, 6),
    ("seven", "client=2 & plan=staff & path=/", 6, 6),
    ("seven", "client=1", 0, 2),
    ("eight", "key=value1", 4, 5),
    ("eight", "key=value2", 2, 3),
    ("eight", "key=value3", 2, 3),
    ("eight", "key=", 2, 3),
    ("eight", "key=value1 & key=value4 & key=value4", 0, 2),
    ("eight", "key=value5 & key=value5", 1, 2),
    ("nine", "path=/users/1", 2, 3),
    ("nine", "path=/users/2", 2, 3),
    ("nine", "path=/users/", 2, 3),
    ("nine", "path=/user", 2, 2),
    ("nine", "path=/users/special", 4, 5),
    ("nine", "path=/shared/1", 2, 2),
    ("nine", "path=/shared/2", 1, 2),
];

#[test]
fn documented_examples_are_decided_alike() {
    compare(Buckets::InMemory);
}

#[test]
fn documented_examples_are_decided_alike_in_redis() {
    compare(Buckets::InRedis);
}

fn compare(buckets: Buckets) {
    let files: Vec<(String, String)> = FILES
        .iter()
        .map(|(domain, text)| ((*domain).to_owned(), format!("domain: {domain}\n{text}")))
        .collect();
    within_an_hour(|redis| {
        let Some(pair) = Pair::start((redis, buckets), &files) else {
            return Vec::new();
        };
        let mut differences = Vec::new();
        for (domain, descriptors, passing, times) in CALLS {
            let call = call(domain, descriptors);
            let mut passed = 0;
            for nth in 1..=*times {
                let [theirs, ours] = pair.ask(&call);
                passed += usize::from(ours.overall == Code::Ok);
                if !theirs.is_also(&ours) {
                    differences.push(format!(
                        "{domain}: {descriptors}, {nth}: {theirs:?} {ours:?}"
                    ));
                }
            }
            if passed != *passing {
                differences.push(format!(
                    "{domain}: {descriptors}: {passed} of {times} passed"
                ));
            }
        }
        differences
    });
}

fn call(domain: &str, descriptors: &str) -> Call {
    let entry = |entry: &str| {
        let (key, value) = entry.split_once('=').unwrap();
        (key.to_owned(), value.to_owned())
    };
    let descriptor = |text: &str| text.split(',').map(entry).collect();
    Call {
        domain: domain.to_owned(),
        descriptors: descriptors.split(" & ").map(descriptor).collect(),
        hits: None,
    }
}
