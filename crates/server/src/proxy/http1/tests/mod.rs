//! How: answers are read from bytes, cut in every place, and compared with what hyper makes of them.

mod answers;
mod chunks;
mod heads;
mod hyper;
mod refused;
mod sending;

use super::whole::{WholeResponse, read};
use http::Method;

/// The answer to a GET, from one piece.
fn get(bytes: &[u8]) -> Result<WholeResponse, String> {
    read(&Method::GET, [bytes])
}

/// Reads an answer in one piece, in two for every place between them, and byte by byte. It must not make
/// a difference.
fn however_cut(method: &Method, bytes: &[u8]) -> Result<WholeResponse, String> {
    let whole = read(method, [bytes]);
    for at in 0..bytes.len() {
        let (front, back) = bytes.split_at(at);
        assert_eq!(read(method, [front, back]), whole, "cut at {at}");
    }
    assert_eq!(read(method, bytes.chunks(1)), whole, "byte by byte");
    whole
}
