//! Requests that are rejected unread.

use super::kit::{SocketlessServer, exchange, statuses};
use crate::strict::StrictReader;
use crate::strict::tests::{BAD, GOOD, anything};
use proptest::prelude::*;

/// Returns the number of complete requests in `bytes` before they are rejected, or before they end.
fn whole(bytes: &[u8]) -> u64 {
    let mut reader = StrictReader::default();
    reader.read(bytes).ok();
    reader.heads() - u64::from(reader.is_in_body())
}

/// Paused time advances automatically when nothing else happens, so a connection that waits for more is
/// closed.
#[tokio::test(start_paused = true)]
async fn ambiguous_requests_get_400_and_reach_no_frontend() {
    for (name, bytes, reason) in BAD {
        let house = SocketlessServer::new();
        let replies = exchange(house.connect(), bytes.as_bytes()).await;
        let seen = house.seen().len() as u64;
        assert_eq!(seen, whole(bytes.as_bytes()), "{name}");
        let statuses = statuses(&replies);
        assert_eq!(
            statuses.last(),
            Some(&"400"),
            "{name} ({reason:?}): {replies}"
        );
        assert_eq!(statuses.len() as u64, seen + 1, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn unusual_but_unambiguous_requests_are_answered() {
    for (name, bytes, requests) in GOOD {
        let house = SocketlessServer::new();
        let replies = exchange(house.connect(), bytes.as_bytes()).await;
        assert_eq!(house.seen().len() as u64, *requests, "{name}: {replies}");
        let statuses = statuses(&replies);
        let answers = statuses.iter().filter(|status| **status != "100");
        assert!(answers.clone().all(|status| *status == "200"), "{name}");
        assert_eq!(answers.count() as u64, *requests, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn frontends_see_no_more_requests_than_the_strict_reader(bytes in anything()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (seen, replies) = runtime.block_on(async {
            let house = SocketlessServer::new();
            let replies = exchange(house.connect(), &bytes).await;
            (house.seen(), replies)
        });
        // There may be fewer: hyper checks more than the boundaries of requests.
        prop_assert!(seen.len() as u64 <= whole(&bytes), "{:?} {}", seen, replies);
    }
}
