//! WebSocket over HTTP/2 (RFC 8441): translates a client's extended `CONNECT` into an HTTP/1.1 upgrade at
//! the upstream.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use http::{HeaderMap, HeaderValue, Method, Request, Version};
use hyper::ext::Protocol;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use ring::rand::{SecureRandom, SystemRandom};

/// The suffix of a key before it is hashed (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The key sent to an upstream, and the response that proves that the upstream understands it. In HTTP/2
/// clients send no key.
#[derive(Debug)]
pub(super) struct Handshake {
    key: HeaderValue,
    accept: String,
}

/// Turns an extended `CONNECT` for a WebSocket into the equivalent `GET` of HTTP/1.1, so that it is
/// routed and limited as one.
pub(super) fn translate<B>(request: &mut Request<B>) {
    if request.version() == Version::HTTP_2
        && request.method() == Method::CONNECT
        && let Some(wanted) = request.extensions().get::<Protocol>()
        && wanted.as_str() == "websocket"
    {
        *request.method_mut() = Method::GET;
    }
}

/// Returns true if a request was translated.
pub(super) fn is_translated<B>(request: &Request<B>) -> bool {
    request.version() == Version::HTTP_2
        && request.method() == Method::GET
        && request.extensions().get::<Protocol>().is_some()
}

/// Adds a handshake key to a translated request, and nothing to any other. Fails if the request cannot
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

/// The route accepts no `WebSocket`, or the system has no randomness.
#[derive(Debug)]
pub(super) struct NoWebSocket;

impl Handshake {
    /// Returns a new key; `None` if the system has no randomness.
    fn new() -> Option<Self> {
        let mut bits = [0; 16];
        SystemRandom::new().fill(&mut bits).ok()?;
        let key = STANDARD.encode(bits);
        Some(Self {
            accept: accept(key.as_bytes()),
            key: HeaderValue::try_from(key).ok()?,
        })
    }

    /// Returns true if an upstream has accepted the handshake.
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
    fn a_websocket_key_gets_the_accept_value_of_the_rfc() {
        let accepted = accept(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accepted, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn only_a_single_correct_accept_header_is_valid() {
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
