//! The relay while the gate decides.

use super::super::MessageAdmission;
use super::super::relay_end::RelayEnd;
use super::super::violation::Violation;
use super::kit::*;
use crate::tunnel::Side;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Longer than any operation that does not wait for another.
const SOON: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_slow_gate_holds_the_client_back_and_not_the_upstream() {
    let (tell, told) = oneshot::channel();
    let gate = ScriptedGate(vec![told]);
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

        tell.send(MessageAdmission::Pass).unwrap();
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
async fn admitted_messages_do_not_wait_for_undecided_ones() {
    let (tell, told) = oneshot::channel();
    let (tell_second, told_second) = oneshot::channel();
    tell.send(MessageAdmission::Pass).unwrap();
    let gate = ScriptedGate(vec![told_second, told]);
    let ended = play(gate, never(), async |mut client, mut upstream| {
        let both = [says("first"), says("second")].concat();
        client.write_all(&both).await.unwrap();
        expect(&mut upstream, &says("first")).await;
        let mut byte = [0];
        assert!(timeout(SOON, upstream.read(&mut byte)).await.is_err());
        tell_second.send(MessageAdmission::Pass).unwrap();
        expect(&mut upstream, &says("second")).await;
    })
    .await;
    assert_eq!(ended.messages, 2);
}

#[tokio::test(start_paused = true)]
async fn time_waiting_for_a_decision_does_not_count_as_idle() {
    let ended = play(
        SlowGate(IDLE * 10),
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
async fn a_pending_decision_is_cancelled_when_the_relay_ends() {
    let (tell, told) = oneshot::channel();
    let (go, gone) = oneshot::channel();
    let going_away = async { gone.await.unwrap() };
    let ended = play(
        ScriptedGate(vec![told]),
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
async fn a_violating_upstream_is_not_awaited() {
    let (_tell, told) = oneshot::channel();
    let ended = play(
        ScriptedGate(vec![told]),
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
