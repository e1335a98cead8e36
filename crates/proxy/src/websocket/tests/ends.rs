//! The end of relays, and the Close frames for each side.

use super::super::relay_end::RelayEnd;
use super::super::violation::Violation;
use super::kit::*;
use crate::tunnel::Side;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

const REFUSAL: &str = "rate limit exceeded; retry after 3 s";

/// Longer than any operation that does not wait for another.
const SOON: Duration = Duration::from_millis(100);

const REFUSED: RelayEnd = RelayEnd::Refused {
    retry_after: Some(Duration::from_millis(2500)),
};

/// A payload that must never be parsed as frames.
const HALF: &[u8] = &[FIN | CLOSE, 0, 0, 0];

/// Replies to a Close frame, as both sides have to, and waits for the end of the connection.
async fn answer_close(side: Side, stream: &mut DuplexStream) {
    let close = frame(side, FIN | CLOSE, &[0x03, 0xe8]);
    stream.write_all(&close).await.unwrap();
    assert!(rest(stream).await.is_empty());
}

/// Asserts that nothing comes.
async fn receives_nothing(stream: &mut DuplexStream) {
    let mut byte = [0];
    assert!(timeout(SOON, stream.read(&mut byte)).await.is_err());
}

/// Returns a future, and the sender that makes it ready.
fn drain() -> (oneshot::Sender<()>, impl Future<Output = ()>) {
    let (go, gone) = oneshot::channel();
    (go, async { gone.await.unwrap() })
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_ends_both_sides_and_is_not_forwarded() {
    let begin = Instant::now();
    let ended = play(Allowance(1), never(), async |mut client, mut upstream| {
        let refused = frame(Side::Client, TEXT, &vec![1; 5000]);
        let after = frame(Side::Client, FIN | CONTINUATION, &vec![1; 50_000]);
        let stream = [says("first"), refused, after, says("third")].concat();
        let serve = async {
            expect(&mut upstream, &says("first")).await;
            expect(&mut upstream, &told_upstream(1001, "")).await;
            upstream.write_all(&answers("too late")).await.unwrap();
            answer_close(Side::Upstream, &mut upstream).await;
        };
        // It is still sending when it is refused, and reads the reason nevertheless.
        let ask = async {
            client.write_all(&stream).await.unwrap();
            expect(&mut client, &told_client(1008, REFUSAL)).await;
            answer_close(Side::Client, &mut client).await;
        };
        tokio::join!(serve, ask);
    })
    .await;
    assert_eq!((ended.why, ended.messages), (REFUSED, 1));
    assert_eq!(
        ended.to_upstream,
        u64::try_from(says("first").len()).unwrap()
    );
    assert_eq!(ended.to_client, 0);
    assert_eq!(begin.elapsed(), Duration::ZERO, "something waited");
}

#[tokio::test(start_paused = true)]
async fn a_client_gets_its_close_frame_between_upstream_frames() {
    let ended = play(Allowance(0), never(), async |mut client, mut upstream| {
        let answer = frame(Side::Upstream, FIN | BINARY, &HALF.repeat(2));
        let (begin, end) = answer.split_at(2 + HALF.len());
        upstream.write_all(begin).await.unwrap();
        expect(&mut client, begin).await;
        client.write_all(&says("refused")).await.unwrap();
        expect(&mut upstream, &told_upstream(1001, "")).await;
        receives_nothing(&mut client).await;

        let late = [end, &answers("thrown away")].concat();
        upstream.write_all(&late).await.unwrap();
        expect(&mut client, end).await;
        expect(&mut client, &told_client(1008, REFUSAL)).await;
        answer_close(Side::Client, &mut client).await;
        answer_close(Side::Upstream, &mut upstream).await;
    })
    .await;
    assert_eq!(ended.why, REFUSED);
    assert_eq!(ended.to_client, 10);
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_frame_times_out() {
    let ended = play(Allowance(0), never(), async |mut client, mut upstream| {
        let begin = [FIN | BINARY, 100, 1, 2, 3];
        upstream.write_all(&begin).await.unwrap();
        expect(&mut client, &begin).await;
        client.write_all(&says("refused")).await.unwrap();
        // No Close frame could be sent within the frame.
        assert!(rest(&mut client).await.is_empty());
        assert_eq!(rest(&mut upstream).await, told_upstream(1001, ""));
    })
    .await;
    assert_eq!(ended.why, REFUSED);
}

#[tokio::test(start_paused = true)]
async fn an_unforwarded_frame_header_is_no_open_frame() {
    let ended = play(Allowance(0), never(), async |mut client, mut upstream| {
        upstream.write_all(&[FIN | BINARY]).await.unwrap();
        receives_nothing(&mut client).await;
        client.write_all(&says("refused")).await.unwrap();
        expect(&mut client, &told_client(1008, REFUSAL)).await;
        // The reply after it is still found.
        upstream.write_all(&[0]).await.unwrap();
        answer_close(Side::Client, &mut client).await;
        expect(&mut upstream, &told_upstream(1001, "")).await;
        answer_close(Side::Upstream, &mut upstream).await;
    })
    .await;
    assert_eq!(ended.why, REFUSED);
}

#[tokio::test(start_paused = true)]
async fn a_broken_frame_is_not_awaited() {
    let begin = Instant::now();
    let ended = play(Allowance(0), never(), async |mut client, mut upstream| {
        let half = [FIN | BINARY, 100, 1, 2, 3];
        upstream.write_all(&half).await.unwrap();
        expect(&mut client, &half).await;
        client.write_all(&says("refused")).await.unwrap();
        expect(&mut upstream, &told_upstream(1001, "")).await;
        drop(upstream);
        answer_close(Side::Client, &mut client).await;
    })
    .await;
    assert_eq!(ended.why, REFUSED);
    assert_eq!(begin.elapsed(), Duration::ZERO, "something waited");
}

#[tokio::test(start_paused = true)]
async fn a_side_is_closed_after_its_close_reply() {
    let ended = play(Allowance(0), never(), async |mut client, mut upstream| {
        // Frames that it sent meanwhile are taken neither for its reply nor for a violation.
        let ping = frame(Side::Client, FIN | PING, b"ping");
        let stream = [says("refused"), ping, says("another")].concat();
        client.write_all(&stream).await.unwrap();
        expect(&mut client, &told_client(1008, REFUSAL)).await;
        expect(&mut upstream, &told_upstream(1001, "")).await;
        client.write_all(&says("one more")).await.unwrap();
        upstream.write_all(&answers("too late")).await.unwrap();
        receives_nothing(&mut client).await;
        receives_nothing(&mut upstream).await;
        answer_close(Side::Client, &mut client).await;
        receives_nothing(&mut upstream).await;
        answer_close(Side::Upstream, &mut upstream).await;
    })
    .await;
    assert_eq!(ended.why, REFUSED);
}

#[tokio::test(start_paused = true)]
async fn invalid_data_after_a_refusal_is_not_awaited() {
    let begin = Instant::now();
    let ended = play(Allowance(0), never(), async |mut client, mut upstream| {
        let stream = [says("refused"), vec![0xff; 100_000]].concat();
        client.write_all(&stream).await.unwrap();
        assert_eq!(rest(&mut client).await, told_client(1008, REFUSAL));
        drop(client);
        expect(&mut upstream, &told_upstream(1001, "")).await;
        answer_close(Side::Upstream, &mut upstream).await;
    })
    .await;
    assert_eq!(ended.why, REFUSED);
    assert_eq!(begin.elapsed(), Duration::ZERO, "something waited");
}

#[tokio::test(start_paused = true)]
async fn a_violating_client_that_keeps_sending_is_not_cut_at_once() {
    play(Allowance(9), never(), async |mut client, mut upstream| {
        client.write_all(&[FIN | 0x3]).await.unwrap();
        expect(&mut upstream, &told_upstream(1001, "")).await;
        answer_close(Side::Upstream, &mut upstream).await;
        client.write_all(&vec![0; 100_000]).await.unwrap();
        let why = "a frame has a reserved opcode";
        assert_eq!(rest(&mut client).await, told_client(1002, why));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn sides_without_a_close_reply_time_out() {
    let ended = play(Allowance(0), never(), async |mut client, mut upstream| {
        client.write_all(&says("refused")).await.unwrap();
        assert_eq!(rest(&mut client).await, told_client(1008, REFUSAL));
        assert_eq!(rest(&mut upstream).await, told_upstream(1001, ""));
    })
    .await;
    assert_eq!(ended.why, REFUSED);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_times_out() {
    let ended = play(Allowance(0), never(), async |mut client, mut upstream| {
        let many = answers("unread").repeat(10_000);
        let flood = upstream.write_all(&many);
        assert!(timeout(SOON, flood).await.is_err());
        client.write_all(&says("refused")).await.unwrap();
        assert_eq!(rest(&mut upstream).await, told_upstream(1001, ""));
    })
    .await;
    assert_eq!(ended.why, REFUSED);
}

#[tokio::test(start_paused = true)]
async fn a_violating_client_is_closed_with_the_rule() {
    let begin = Instant::now();
    let ended = play(Allowance(9), never(), async |mut client, mut upstream| {
        let bad = frame(Side::Upstream, FIN | TEXT, b"not masked");
        let stream = [says("good"), bad].concat();
        client.write_all(&stream).await.unwrap();
        expect(&mut upstream, &says("good")).await;
        expect(&mut upstream, &told_upstream(1001, "")).await;
        answer_close(Side::Upstream, &mut upstream).await;
        let why = "a frame of a client is not masked";
        assert_eq!(rest(&mut client).await, told_client(1002, why));
    })
    .await;
    let side = Side::Client;
    let violation = Violation::NotMasked;
    assert_eq!(ended.why, RelayEnd::Violated { side, violation });
    assert_eq!(ended.messages, 1);
    assert_eq!(begin.elapsed(), Duration::ZERO, "something waited");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_violation_closes_the_upstream_and_not_the_client() {
    let ended = play(Allowance(9), never(), async |mut client, mut upstream| {
        let stream = [answers("good"), vec![FIN | 0x3, 0]].concat();
        upstream.write_all(&stream).await.unwrap();
        expect(&mut client, &answers("good")).await;
        expect(&mut client, &told_client(1011, "the upstream failed")).await;
        answer_close(Side::Client, &mut client).await;
        let why = "a frame has a reserved opcode";
        assert_eq!(rest(&mut upstream).await, told_upstream(1002, why));
    })
    .await;
    let side = Side::Upstream;
    let violation = Violation::ReservedOpcode;
    assert_eq!(ended.why, RelayEnd::Violated { side, violation });
}

#[tokio::test(start_paused = true)]
async fn a_relay_shutdown_sends_close_between_frames() {
    let (go, gone) = drain();
    let ended = play(Allowance(9), gone, async |mut client, mut upstream| {
        // Both are within a frame, and the client within a fragmented message.
        let question = frame(Side::Client, TEXT, &HALF.repeat(2));
        let (question_begin, question_end) = question.split_at(6 + HALF.len());
        client.write_all(question_begin).await.unwrap();
        expect(&mut upstream, question_begin).await;
        let answer = frame(Side::Upstream, FIN | BINARY, &HALF.repeat(2));
        let (answer_begin, answer_end) = answer.split_at(2 + HALF.len());
        upstream.write_all(answer_begin).await.unwrap();
        expect(&mut client, answer_begin).await;

        go.send(()).unwrap();
        receives_nothing(&mut client).await;
        receives_nothing(&mut upstream).await;
        let more = frame(Side::Client, CONTINUATION, b"thrown away");
        let late = [question_end, &more].concat();
        client.write_all(&late).await.unwrap();
        expect(&mut upstream, question_end).await;
        expect(&mut upstream, &told_upstream(1001, "")).await;
        upstream.write_all(answer_end).await.unwrap();
        expect(&mut client, answer_end).await;
        expect(&mut client, &told_client(1001, "")).await;
        answer_close(Side::Client, &mut client).await;
        answer_close(Side::Upstream, &mut upstream).await;
    })
    .await;
    assert_eq!((ended.why, ended.messages), (RelayEnd::GoingAway, 1));
}

#[tokio::test(start_paused = true)]
async fn a_side_gets_only_one_close_frame() {
    let (go, gone) = drain();
    let ended = play(Allowance(9), gone, async |mut client, mut upstream| {
        let farewell = frame(Side::Client, FIN | CLOSE, &[0x03, 0xe8]);
        client.write_all(&farewell).await.unwrap();
        expect(&mut upstream, &farewell).await;
        go.send(()).unwrap();
        expect(&mut client, &told_client(1001, "")).await;
        let answer = frame(Side::Upstream, FIN | CLOSE, &[0x03, 0xe8]);
        upstream.write_all(&answer).await.unwrap();
        assert!(rest(&mut upstream).await.is_empty());
        assert!(rest(&mut client).await.is_empty());
    })
    .await;
    assert_eq!(ended.why, RelayEnd::GoingAway);
}

#[tokio::test(start_paused = true)]
async fn an_idle_relay_times_out() {
    const REASON: &str = "nothing was sent for too long";
    let ended = play(Allowance(9), never(), async |mut client, mut upstream| {
        // From time to time something moves, one way or the other.
        for _ in 0..5 {
            client.write_all(&says("still here")).await.unwrap();
            expect(&mut upstream, &says("still here")).await;
            assert!(timeout(IDLE / 2, client.read_u8()).await.is_err());
            upstream.write_all(&answers("me too")).await.unwrap();
            expect(&mut client, &answers("me too")).await;
            assert!(timeout(IDLE / 2, client.read_u8()).await.is_err());
        }
        let begin = Instant::now();
        expect(&mut client, &told_client(1001, REASON)).await;
        assert!(begin.elapsed() <= IDLE, "it took {:?}", begin.elapsed());
        expect(&mut upstream, &told_upstream(1001, REASON)).await;
        answer_close(Side::Client, &mut client).await;
        answer_close(Side::Upstream, &mut upstream).await;
    })
    .await;
    assert_eq!((ended.why, ended.messages), (RelayEnd::Idle, 5));
}
