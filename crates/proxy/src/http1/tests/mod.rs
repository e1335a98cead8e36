//! Responses are read from bytes, cut at every position, and compared with hyper's reading.

mod answers;
mod chunks;
mod heads;
mod hyper;
mod refused;
mod sending;
mod templates;

use super::whole::{WholeResponse, read};
use http::Method;

/// Reads the response to a GET, from one piece.
fn get(bytes: &[u8]) -> Result<WholeResponse, String> {
    read(&Method::GET, [bytes])
}

/// Reads a response in one piece, in two pieces cut at every position, and byte by byte. All results must be
/// equal.
fn however_cut(method: &Method, bytes: &[u8]) -> Result<WholeResponse, String> {
    let whole = read(method, [bytes]);
    for at in 0..bytes.len() {
        let (front, back) = bytes.split_at(at);
        assert_eq!(read(method, [front, back]), whole, "cut at {at}");
    }
    assert_eq!(read(method, bytes.chunks(1)), whole, "byte by byte");
    whole
}
