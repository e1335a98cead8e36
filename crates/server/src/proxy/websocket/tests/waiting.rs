//! The relay while the gate decides.

use super::super::Admit;
use super::super::ended::RelayEnd;
use super::super::violation::Violation;
use super::kit::*;
use crate::proxy::tunnel::Side;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Longer than any operation that does not wait for another.
const SOON: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_slow_gate_holds_the_client_back_and_not_the_upstream() {
    let (tell, told) = oneshot::channel();
    let gate = Told(vec![told]);
    let message = frame(Side::Client, FIN | BINARY, &vec![1; 100_000]);
    let ended = play(gate, never(), async |mut client, mut upstream| {
        let mut written = 0;
        let write = async {
            loop {
                written += client.write(&message[written..]).await.unwrap();
            }
        };
        assert!(timeout(SOON, write).await.is_err());
        // The relay's buffer, and the data in transit.
        assert!(
            written <= (16 << 10) + (1 << 10),
            "{written} bytes were taken"
        );

        for _ in 0..10 {
            upstream.write_all(&answers("meanwhile")).await.unwrap();
            expect(&mut client, &answers("meanwhile")).await;
        }
        let mut byte = [0];
        assert!(timeout(SOON, upstream.read(&mut byte)).await.is_err());

        tell.send(Admit::Pass).unwrap();
        let send = async {
            client.write_all(&message[written..]).await.unwrap();
            client.shutdown().await.unwrap();
        };
        tokio::join!(send, async {
            assert!(rest(&mut upstream).await == message);
        });
    })
    .await;
    assert_eq!((ended.why, ended.messages), (RelayEnd::Closed, 1));
}

#[tokio::test(start_paused = true)]
async fn what_was_admitted_does_not_wait_for_what_was_not() {
    let (tell, told) = oneshot::channel();
    let (tell_second, told_second) = oneshot::channel();
    tell.send(Admit::Pass).unwrap();
    let gate = Told(vec![told_second, told]);
    let ended = play(gate, never(), async |mut client, mut upstream| {
        let both = [says("first"), says("second")].concat();
        client.write_all(&both).await.unwrap();
        expect(&mut upstream, &says("first")).await;
        let mut byte = [0];
        assert!(timeout(SOON, upstream.read(&mut byte)).await.is_err());
        tell_second.send(Admit::Pass).unwrap();
        expect(&mut upstream, &says("second")).await;
    })
    .await;
    assert_eq!(ended.messages, 2);
}

#[tokio::test(start_paused = true)]
async fn waiting_at_the_gate_is_not_held_against_anybody() {
    let ended = play(
        Slow(IDLE * 10),
        never(),
        async |mut client, mut upstream| {
            client.write_all(&says("patience")).await.unwrap();
            expect(&mut upstream, &says("patience")).await;
        },
    )
    .await;
    assert_eq!((ended.why, ended.messages), (RelayEnd::Closed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_question_is_withdrawn_when_the_relay_is_told_to_end() {
    let (tell, told) = oneshot::channel();
    let (go, gone) = oneshot::channel();
    let going_away = async { gone.await.unwrap() };
    let ended = play(
        Told(vec![told]),
        going_away,
        async |mut client, mut upstream| {
            client.write_all(&says("too late")).await.unwrap();
            upstream.write_all(&answers("news")).await.unwrap();
            expect(&mut client, &answers("news")).await;
            go.send(()).unwrap();
            expect(&mut upstream, &told_upstream(1001, "")).await;
            expect(&mut client, &told_client(1001, "")).await;
            assert!(tell.is_closed());
        },
    )
    .await;
    assert_eq!((ended.why, ended.messages), (RelayEnd::GoingAway, 0));
    assert_eq!(ended.to_upstream, 0);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_breaks_the_rules_meanwhile_is_not_waited_for() {
    let (_tell, told) = oneshot::channel();
    let ended = play(
        Told(vec![told]),
        never(),
        async |mut client, mut upstream| {
            client.write_all(&says("hello?")).await.unwrap();
            upstream.write_all(&says("masked")).await.unwrap();
            expect(&mut client, &told_client(1011, "the upstream failed")).await;
        },
    )
    .await;
    let side = Side::Upstream;
    let violation = Violation::Masked;
    assert_eq!(ended.why, RelayEnd::Violated { side, violation });
}
