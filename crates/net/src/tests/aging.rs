//! The maximum age of a connection, in virtual time.

use super::kit::{IDLE, SocketlessServer, piece, statuses};
use super::multiplexed::{connect, send, text};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use std::convert::Infallible;
use std::time::Duration;
use tidegate_policy::listen::ConnectionAge;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// Less than the time after which an idle connection closes.
const AGE: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_mins(10);

fn house() -> SocketlessServer {
    SocketlessServer::aging(Some(ConnectionAge {
        max: AGE,
        grace: GRACE,
    }))
}

/// Asserts that `since` is as long ago as the maximum age and `more`, give or take a tenth of the age and the
/// time of closing.
fn assert_aged(since: Instant, more: Duration) {
    let (elapsed, late) = (since.elapsed(), Duration::from_secs(1));
    let range = AGE * 9 / 10 + more..=AGE * 11 / 10 + more + late;
    assert!(range.contains(&elapsed), "{elapsed:?} is not in {range:?}");
}

#[tokio::test(start_paused = true)]
async fn an_old_connection_finishes_its_requests_and_accepts_no_more() {
    let house = house();
    let since = Instant::now();
    let mut client = connect(&house).await;
    let (more, rest) = oneshot::channel();
    let body = StreamBody::new(stream::once(async {
        let rest: &'static str = rest.await.unwrap();
        Ok::<_, Infallible>(Frame::data(Bytes::from(rest)))
    }));
    let request = Request::post("http://a/echo").body(body.boxed_unsync());
    let begun = client.send_request(request.unwrap());
    let young = send(&mut client, "/echo", "").await.unwrap();
    assert_eq!(young.status(), StatusCode::OK);
    while let Ok(answer) = send(&mut client, "/echo", "x").await {
        // Empty or unread bodies count as a flood.
        assert_eq!(text(answer).await, "x");
        sleep(Duration::from_millis(100)).await;
    }
    assert_aged(since, Duration::ZERO);
    more.send("late").unwrap();
    assert_eq!(text(begun.await.unwrap()).await, "late");
    house.finished().await;
    assert_aged(since, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_outlasts_the_grace_is_cut() {
    let house = house();
    let since = Instant::now();
    let mut client = connect(&house).await;
    let never = send(&mut client, "/never", "");
    assert!(never.await.is_err());
    assert_aged(since, GRACE);
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn an_old_http1_connection_is_closed_between_requests() {
    let house = house();
    let since = Instant::now();
    let mut client = house.connect();
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    client.write_all(&get("/echo")).await.unwrap();
    assert_eq!(statuses(&piece(&mut client).await), ["200"]);
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    assert_aged(since, Duration::ZERO);

    let since = Instant::now();
    let mut client = house.connect();
    client.write_all(&get("/never")).await.unwrap();
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    assert_aged(since, GRACE);
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_maximum_age_stays() {
    let house = SocketlessServer::new();
    let mut client = connect(&house).await;
    for _ in 0..100 {
        send(&mut client, "/echo", "").await.unwrap();
        sleep(IDLE / 2).await;
    }
}
