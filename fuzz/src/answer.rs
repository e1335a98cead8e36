//! Any bytes as the answer of an upstream: it is read or refused, and nothing panics either way.
//!
//! How: the first byte says what was asked and where the rest is cut. However it is cut, the same must
//! be made of it; nothing is made of bytes that did not come; and no field holds the end of a line.

use http::Method;
use tidegate_server::answer::{WholeResponse, read};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else {
        return;
    };
    let method = if first & 1 == 0 {
        Method::GET
    } else {
        Method::HEAD
    };
    let whole = read(&method, [bytes]);
    let length = usize::from(first >> 1) + 1;
    // What is wrong first depends on how much is there.
    let cut = read(&method, bytes.chunks(length));
    assert_eq!(cut.as_ref().ok(), whole.as_ref().ok());
    match whole {
        Ok(whole) => check(&whole, bytes),
        Err(why) => assert!(!why.contains(char::is_control), "{why:?}"),
    }
});

fn check(whole: &WholeResponse, bytes: &[u8]) {
    assert!(whole.body.len() + whole.stray <= bytes.len());
    assert!(whole.headers.len() <= 100);
    let trailers = whole.trailers.iter().flatten();
    for (_, value) in whole.headers.iter().chain(trailers) {
        let is_broken = value.as_bytes().iter().any(|byte| b"\r\n\0".contains(byte));
        assert!(!is_broken, "{value:?}");
    }
}
