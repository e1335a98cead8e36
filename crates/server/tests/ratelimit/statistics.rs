//! The statistics that each of the two sends to a statsd server.

use crate::kit::{Call, CountingStatsd, Pair, within_an_hour};
use tidegate_testkit::redis::until;

const CONFIG: &str = "
domain: 'shop:http'
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 10 }
  - key: user
    value: root
    rate_limit: { unlimited: true }
  - key: remote_address
    value: 10.0.0.1
    rate_limit: { unit: hour, requests_per_unit: 3 }
  - key: kind
    value: mail
    descriptors:
      - key: to
        rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: path
    value: /api/*
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: watched
    rate_limit: { unit: hour, requests_per_unit: 2 }
    shadow_mode: true
";

/// Entries of each descriptor, the stated hits, and the number of calls.
type Calls = (
    &'static [&'static [(&'static str, &'static str)]],
    Option<u64>,
    u32,
);

const CALLS: [Calls; 9] = [
    (&[&[("user", "ann")]], None, 12),
    (&[&[("user", "bob")]], Some(4), 2),
    // Up to the limit, and then beyond it.
    (&[&[("user", "bob")]], Some(2), 1),
    (&[&[("user", "bob")]], Some(3), 1),
    (&[&[("user", "root")], &[("nothing", "known")]], None, 3),
    (&[&[("remote_address", "10.0.0.1")]], None, 5),
    (
        &[&[("kind", "mail"), ("to", "a")], &[("user", "ann")]],
        None,
        6,
    ),
    (&[&[("path", "/api/a")], &[("path", "/api/b")]], None, 6),
    (&[&[("watched", "x")]], None, 4),
];

#[test]
fn dashboards_lost_every_limit_because_no_statistics_were_sent() {
    within_an_hour(|redis| {
        let files = [("shop".to_owned(), CONFIG.to_owned())];
        let [theirs, ours] = [CountingStatsd::listen(), CountingStatsd::listen()];
        let Some(pair) = Pair::start_counted(redis, &files, [&theirs, &ours]) else {
            return Vec::new();
        };
        for (descriptors, hits, times) in CALLS {
            let entries = |entries: &&[(&str, &str)]| {
                let entries = entries.iter();
                entries
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                    .collect()
            };
            let call = Call {
                domain: "shop:http".to_owned(),
                descriptors: descriptors.iter().map(entries).collect(),
                hits,
            };
            for _ in 0..times {
                pair.ask(&call);
            }
        }
        // 12 + 8 + 2 + 3 of users, 5 of the address, 6 + 6 of mail and ann, 12 of paths, 4 in
        // shadow mode.
        let is_whole = |counted: &CountingStatsd| counted.sum_of(".total_hits") == 58;
        until("both have sent everything", || {
            is_whole(&theirs) && is_whole(&ours) && theirs.all() == ours.all()
        });
        let expected = [
            ("kind_mail.to.within_limit", 5),
            ("remote_address_10_0_0_1.over_limit", 2),
            ("user.near_limit", 4),
            ("watched.shadow_mode", 2),
        ];
        for (name, count) in expected {
            let name = format!("ratelimit.service.rate_limit.shop_http.{name}");
            assert_eq!(ours.all().get(&name), Some(&count), "{name}");
        }
        Vec::new()
    });
}
