//! Frames: generated streams are followed from frame to frame, and each violation has its name.

use super::super::frame::{FrameStep, WebSocketFrames};
use super::super::frame_steps::read;
use super::super::violation::Violation;
use super::kit::{BINARY, CLOSE, CONTINUATION, FIN, PING, PONG, TEXT, frame};
use crate::tunnel::Side;
use proptest::prelude::*;

fn violation(from: Side, stream: &[u8]) -> Option<Violation> {
    read(from, stream, &[]).violation
}

/// Returns the violation of a client frame of which only the head matters.
fn client(first: u8, rest: &[u8]) -> Option<Violation> {
    violation(Side::Client, &[&[first], rest].concat())
}

#[test]
fn every_violation_has_its_name() {
    use Violation::*;
    for opcode in [3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF] {
        assert_eq!(client(FIN | opcode, &[]), Some(ReservedOpcode), "{opcode}");
    }
    for opcode in [CLOSE, PING, PONG] {
        assert_eq!(client(opcode, &[]), Some(FragmentedControl), "{opcode}");
        assert_eq!(client(FIN | opcode, &[0xfe]), Some(LongControl), "{opcode}");
        assert_eq!(client(FIN | opcode, &[0xff]), Some(LongControl), "{opcode}");
        assert_eq!(client(FIN | opcode, &[0xfd]), None, "{opcode}");
    }
    assert_eq!(client(FIN | TEXT, &[0x05]), Some(NotMasked));
    let upstream = |stream: &[u8]| violation(Side::Upstream, stream);
    assert_eq!(upstream(&[FIN | TEXT, 0x85]), Some(Masked));
    assert_eq!(client(FIN | CONTINUATION, &[]), Some(NothingToContinue));
    assert_eq!(client(CONTINUATION, &[]), Some(NothingToContinue));
    for second in [TEXT, BINARY, FIN | TEXT, FIN | BINARY] {
        let within = [frame(Side::Client, TEXT, b"a"), vec![second]].concat();
        assert_eq!(violation(Side::Client, &within), Some(MessageInMessage));
    }
    let over = [
        frame(Side::Client, TEXT, b"a"),
        frame(Side::Client, FIN | CONTINUATION, b"b"),
        vec![FIN | CONTINUATION],
    ];
    assert_eq!(
        violation(Side::Client, &over.concat()),
        Some(NothingToContinue)
    );
}

#[test]
fn lengths_are_written_in_as_few_bytes_as_possible() {
    let two = |length: u16| client(FIN | BINARY, &[&[0xfe], &length.to_be_bytes()[..]].concat());
    let eight = |length: u64| client(FIN | BINARY, &[&[0xff], &length.to_be_bytes()[..]].concat());
    assert_eq!(two(125), Some(Violation::LengthNotMinimal));
    assert_eq!(two(126), None);
    assert_eq!(two(u16::MAX), None);
    assert_eq!(eight(0), Some(Violation::LengthNotMinimal));
    assert_eq!(eight(0xffff), Some(Violation::LengthNotMinimal));
    assert_eq!(eight(0x1_0000), None);
    assert_eq!(eight(u64::MAX >> 1), None);
    assert_eq!(eight(1 << 63), Some(Violation::LengthTooLarge));
    assert_eq!(eight(u64::MAX), Some(Violation::LengthTooLarge));
}

#[test]
fn the_largest_possible_frame_does_not_overflow() {
    let mut frames = WebSocketFrames::new(Side::Upstream);
    let head = [&[FIN | BINARY, 127], &(u64::MAX >> 1).to_be_bytes()[..]].concat();
    let told = FrameStep::Head {
        bytes: 10,
        begins_message: true,
    };
    assert_eq!(frames.next(&head), Ok(told));
    for _ in 0..3 {
        assert_eq!(
            frames.next(&[0; 1000]),
            Ok(FrameStep::Payload { bytes: 1000 })
        );
    }
    assert!(!frames.is_between());
}

#[test]
fn every_text_fits_into_a_close_frame() {
    use Violation::*;
    let all = [
        ReservedOpcode,
        FragmentedControl,
        LongControl,
        NotMasked,
        Masked,
        NothingToContinue,
        MessageInMessage,
        LengthNotMinimal,
        LengthTooLarge,
    ];
    for violation in all {
        assert!(violation.text().len() <= 123, "{violation}");
    }
}

/// A control frame other than Close: its opcode and its payload.
type Control = (u8, Vec<u8>);

fn control() -> impl Strategy<Value = Control> {
    (prop::sample::select(&[PING, PONG]), payload(125))
}

fn payload(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=longest)
}

/// Generates payloads with lengths of every encoding.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let large = (0..3_usize).prop_map(|more| vec![7; 0xffff - 1 + more]);
    prop_oneof![8 => payload(10), 4 => payload(300), 1 => large]
}

/// A message in parts, with control frames before each of them.
#[derive(Clone, Debug)]
pub(super) struct SentMessage {
    opcode: u8,
    /// The reserved bits.
    extension: u8,
    parts: Vec<(Vec<Control>, Vec<u8>)>,
}

/// Generates some messages.
pub(super) fn sent() -> impl Strategy<Value = Vec<SentMessage>> {
    let controls = prop::collection::vec(control(), 0..2);
    let parts = prop::collection::vec((controls, part()), 1..4);
    let opcode = prop::sample::select(&[TEXT, BINARY]);
    let message = (opcode, 0..8_u8, parts).prop_map(|(opcode, extension, parts)| SentMessage {
        opcode,
        extension: extension << 4,
        parts,
    });
    prop::collection::vec(message, 0..5)
}

/// Encodes the frames of `sent`.
pub(super) fn written(from: Side, sent: &[SentMessage]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for message in sent {
        let last = message.parts.len() - 1;
        for (index, (controls, part)) in message.parts.iter().enumerate() {
            for (opcode, payload) in controls {
                frames.push(frame(from, FIN | opcode, payload));
            }
            let fin = if index == last { FIN } else { 0 };
            let opcode = if index == 0 {
                message.opcode
            } else {
                CONTINUATION
            };
            frames.push(frame(from, fin | message.extension | opcode, part));
        }
    }
    frames
}

fn side() -> impl Strategy<Value = Side> {
    prop::sample::select(&[Side::Client, Side::Upstream])
}

/// Generates a stream in which up to two bytes may be wrong, and the positions at which it is cut.
fn damaged() -> impl Strategy<Value = (Side, Vec<u8>, Vec<usize>)> {
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..40);
    (side(), sent(), damage, cuts).prop_map(|(side, sent, damage, cuts)| {
        let mut stream = written(side, &sent).concat();
        if !stream.is_empty() {
            for (index, byte) in damage {
                *index.get_mut(&mut stream) = byte;
            }
        }
        let cuts = cuts.iter().map(|cut| cut.index(stream.len() + 1));
        let cuts = cuts.collect();
        (side, stream, cuts)
    })
}

proptest! {
    #[test]
    fn valid_frames_are_parsed(side in side(), sent in sent()) {
        let frames = written(side, &sent);
        let told = read(side, &frames.concat(), &[]);
        prop_assert_eq!(told.violation, None);
        prop_assert_eq!(told.messages, sent.len());
        prop_assert_eq!(told.left_over, 0);
        prop_assert!(told.is_between);
        prop_assert!(!told.has_closed);
        let lengths = told.frames.iter().map(|(head, payload)| head + payload);
        prop_assert_eq!(lengths.collect::<Vec<_>>(), frames.iter().map(Vec::len).collect::<Vec<_>>());
    }

    #[test]
    fn frames_are_parsed_at_any_split((side, stream, cuts) in damaged()) {
        let whole = read(side, &stream, &[]);
        prop_assert_eq!(&read(side, &stream, &cuts), &whole);
        if stream.len() < 2000 {
            let every: Vec<_> = (0..stream.len()).collect();
            prop_assert_eq!(&read(side, &stream, &every), &whole);
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(side in side(), stream in payload(64)) {
        let told = read(side, &stream, &[]);
        let followed: usize = told.frames.iter().map(|(head, payload)| head + payload).sum();
        prop_assert!(followed + told.left_over <= stream.len());
    }
}
