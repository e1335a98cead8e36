//! WebSocket over HTTP/2 (RFC 8441): the extended `CONNECT` of a client becomes an upgrade of HTTP/1.1 at
//! the upstream.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use http::{HeaderMap, HeaderValue, Method, Request, Version};
use hyper::ext::Protocol;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use ring::rand::{SecureRandom, SystemRandom};

/// Completes a key before it is hashed (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The key that an upstream is sent, and the answer that proves that it has understood it. In HTTP/2
/// clients send none.
#[derive(Debug)]
pub(super) struct Handshake {
    key: HeaderValue,
    accept: String,
}

/// Makes an extended `CONNECT` for a WebSocket the `GET` that it would be in HTTP/1.1, so that it is
/// routed and limited as one.
pub(super) fn translate<B>(request: &mut Request<B>) {
    let wanted = request.extensions().get::<Protocol>();
    if request.version() == Version::HTTP_2
        && request.method() == Method::CONNECT
        && wanted.is_some_and(|it| it.as_str() == "websocket")
    {
        *request.method_mut() = Method::GET;
    }
}

/// Whether a request was translated.
pub(super) fn is_translated<B>(request: &Request<B>) -> bool {
    request.version() == Version::HTTP_2
        && request.method() == Method::GET
        && request.extensions().get::<Protocol>().is_some()
}

/// Adds the key of a handshake to a translated request; nothing to any other. An error where it cannot
/// become a `WebSocket`.
pub(super) fn handshake<B>(
    request: &mut Request<B>,
    becomes_websocket: bool,
) -> Result<Option<Handshake>, NoWebSocket> {
    if !is_translated(request) {
        return Ok(None);
    }
    let handshake = becomes_websocket.then(Handshake::new).flatten();
    let handshake = handshake.ok_or(NoWebSocket)?;
    let key = handshake.key.clone();
    request.headers_mut().insert(SEC_WEBSOCKET_KEY, key);
    Ok(Some(handshake))
}

/// The route takes no `WebSocket`, or the system has no randomness.
#[derive(Debug)]
pub(super) struct NoWebSocket;

impl Handshake {
    /// A fresh one; `None` where the system has no randomness.
    fn new() -> Option<Self> {
        let mut bits = [0; 16];
        SystemRandom::new().fill(&mut bits).ok()?;
        let key = STANDARD.encode(bits);
        Some(Self {
            accept: accept(key.as_bytes()),
            key: HeaderValue::try_from(key).ok()?,
        })
    }

    /// Whether an upstream has answered it.
    pub(super) fn is_answered(&self, headers: &HeaderMap) -> bool {
        let mut answers = headers.get_all(SEC_WEBSOCKET_ACCEPT).iter();
        let is_right = |answer: &HeaderValue| answer.as_bytes() == self.accept.as_bytes();
        answers.next().is_some_and(is_right) && answers.next().is_none()
    }
}

fn accept(key: &[u8]) -> String {
    let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key);
    hash.update(GUID);
    STANDARD.encode(hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455, 1.3.
    #[test]
    fn a_key_has_the_answer_that_the_rfc_gives_it() {
        let accepted = accept(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accepted, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn only_the_right_answer_once_is_one() {
        let handshake = Handshake::new().unwrap();
        let mut headers = HeaderMap::new();
        assert!(!handshake.is_answered(&headers));
        let answer = HeaderValue::try_from(&handshake.accept).unwrap();
        headers.append(SEC_WEBSOCKET_ACCEPT, answer.clone());
        assert!(handshake.is_answered(&headers));
        headers.append(SEC_WEBSOCKET_ACCEPT, answer);
        assert!(!handshake.is_answered(&headers));
        headers.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static("abc"));
        assert!(!handshake.is_answered(&headers));
    }
}
