//! Any bytes as frames of WebSocket from either side, split anywhere: nothing panics, every byte belongs to
//! one frame, and splits change nothing.

use tidegate_proxy::tunnel::Side;
use tidegate_proxy::websocket::frame_steps::read;

/// The largest head: two bytes, a length in eight, and a key.
const HEAD_BYTES_MAX: usize = 14;

fuzz_target!(|input: (bool, u16, u16, &[u8])| {
    let (is_client, first, second, bytes) = input;
    let side = if is_client { Side::Client } else { Side::Upstream };
    let cut = |at: u16| usize::from(at) % (bytes.len() + 1);
    let whole = read(side, bytes, &[]);
    let split = read(side, bytes, &[cut(first), cut(second)]);
    assert_eq!(whole, split);
    let parts = whole.frames.iter().map(|(head, payload)| head + payload);
    let followed: usize = parts.sum();
    if whole.is_violation() {
        assert!(followed <= bytes.len());
    } else {
        assert_eq!(followed + whole.left_over, bytes.len());
        // The relay waits for more only within a head.
        assert!(whole.left_over < HEAD_BYTES_MAX);
    }
    assert!(whole.messages <= whole.frames.len());
});
