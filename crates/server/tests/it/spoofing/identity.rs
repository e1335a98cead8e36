//! Forged identities and costs.

use super::{ONCE, statuses};
use crate::admin::samples;
use crate::kit::{Client, CuttableServer, Server, ask, get};

/// Attack: a cost of 0 always passes, a negative or huge one overflows or refuses, and of two the
/// cheaper is used.
#[tokio::test]
async fn a_cost_outside_its_bounds_is_clamped() {
    let it = CuttableServer::start(ONCE).await;
    let plain = ask("/v1/auth/cost");
    let mut left = 100;
    for (cost, taken) in [
        ("0", 1),
        ("-1", 1),
        ("1", 1),
        ("7", 7),
        ("10", 10),
        ("11", 10),
        ("18446744073709551615", 10),
        ("18446744073709551616", 10),
        ("99999999999999999999999999", 10),
        ("1e3", 1),
        ("0x10", 1),
        ("2.5", 1),
        ("NaN", 1),
        ("", 1),
        ("3, 4", 1),
    ] {
        let reply = plain
            .clone()
            .header("x-cost", cost)
            .at(it.server.http)
            .await;
        left -= taken;
        let remaining = reply.header("x-ratelimit-remaining").unwrap();
        assert_eq!(
            (reply.status, remaining),
            (200, left.to_string().as_str()),
            "{cost}"
        );
    }
    let twice = plain.header("x-cost", "9").header("x-cost", "9");
    let reply = twice.at(it.server.http).await;
    let left = (left - 1).to_string();
    assert_eq!(reply.header("x-ratelimit-remaining"), Some(left.as_str()));
}

/// Attack: of two values the limiter counts one and the application uses the other, so each request
/// has a separate bucket.
#[tokio::test]
async fn a_duplicate_identity_is_absent() {
    let it = CuttableServer::start(ONCE).await;
    for (policy, header) in [
        ("key", "x-api-key"),
        ("user", "x-user-id"),
        ("tenant", "x-tenant"),
    ] {
        let plain = ask(&format!("/v1/auth/{policy}"));
        let twice =
            |one: &str, other: &str| plain.clone().header(header, one).header(header, other);
        let asked = [
            twice("a", "b"),
            twice("b", "a"),
            twice("c", "c"),
            plain.clone().header(header, ""),
            plain.clone(),
        ];
        // All of them count by address, except for those with an identity.
        assert_eq!(
            statuses(&it.server, asked).await,
            [200, 429, 429, 429, 429],
            "{header}"
        );
        let asked = [plain.clone().header(header, "a"), plain.header(header, "a")];
        assert_eq!(statuses(&it.server, asked).await, [200, 429], "{header}");
    }
}

/// Attack: long keys fill the store, or are truncated so that different clients share a bucket; or
/// they are shown.
#[tokio::test]
async fn keys_of_eight_kilobytes_are_distinct_and_short() {
    let it = CuttableServer::start(ONCE).await;
    let long = "k".repeat(8 << 10);
    for (policy, header) in [
        ("key", "x-api-key"),
        ("tenant", "x-tenant"),
        ("user", "x-user-id"),
    ] {
        let sent = |value: String| ask(&format!("/v1/auth/{policy}")).header(header, &value);
        let asked = [
            sent(format!("{long}1")),
            sent(format!("{long}2")),
            sent(format!("{long}1")),
        ];
        assert_eq!(
            statuses(&it.server, asked.clone()).await,
            [200, 200, 429],
            "{header}"
        );
        let [_, _, again] = asked;
        let reply = again.at(it.server.http).await;
        assert!(
            format!("{reply:?}").len() < 2_000,
            "the key is not repeated"
        );
    }
    // Requests with too large headers are not examined.
    let huge = ask("/v1/auth/key").header("x-api-key", &long.repeat(3));
    assert_eq!(huge.at(it.server.http).await.status, 431);
}

/// Attack: invented keys take unbounded memory. Here there are more of them than the store has room
/// for, and the rest share one bucket.
#[tokio::test]
async fn invented_keys_do_not_outgrow_the_store() {
    let server = Server::start(
        "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
store: { max_keys: 100 }
policies: [{ name: key, limits: [{ name: x, key: api-key, rate: 1000/h }] }]
",
    )
    .await;
    let mut client = Client::connect(server.http).await;
    for nth in 0..2_000 {
        let asked = ask("/v1/auth").header("x-api-key", &format!("{nth}{}", "k".repeat(1_000)));
        client.ask(&asked.text()).await;
    }
    let samples = samples(&get(server.admin, "/metrics").await.body);
    assert!(samples["tidegate_store_buckets"] < 1_000.0, "{samples:?}");
    assert!(
        samples["tidegate_store_overflowed_total"] > 0.0,
        "{samples:?}"
    );
}
