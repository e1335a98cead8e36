//! Any bytes as the response of an upstream: it is read or rejected, and nothing panics.
//!
//! How: the first byte selects the method and where the rest is cut. Every cut must give the same
//! result; missing bytes give none; and no field contains a line end.

use http::Method;
use tidegate_proxy::http1::whole::{WholeResponse, read};

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
    // The first error depends on how much has arrived.
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
