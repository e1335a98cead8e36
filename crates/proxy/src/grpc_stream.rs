//! A gRPC stream in both directions, to a server that Tidegate calls.
//!
//! Each stream has a separate HTTP/2 connection. Messages are plain bytes: their readers and writers know
//! the fields. A response may begin only with its first message, so the head is read together with it.

use crate::connection_kind::ConnectionKind;
use crate::dial::DialSettings;
use crate::multiplex::TaskExecutor;
use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tidegate_net::tasks::Tasks;
use tidegate_policy::route::{Http2Use, Upstream, UpstreamScheme};
use tidegate_policy::tls::ClientTls;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::debug;

/// The length of the prefix before a message: a flag, and the length of the message.
const PREFIX: usize = 5;

/// The messages that wait to be sent. A server that does not read ends the stream.
const OUTGOING_MAX: usize = 16;

/// The interval of pings on a stream, and the maximum time for their reply. Servers of gRPC end connections
/// that ping more often than every five minutes.
const PING_INTERVAL: Duration = Duration::from_secs(330);
const PING_PATIENCE: Duration = Duration::from_secs(20);

/// The maximum size of a response head in bytes.
const HEAD_BYTES: u32 = 64 << 10;

/// The maximum length of a server's error message that is kept, in bytes.
const MESSAGE_MAX: usize = 512;

/// The name of a status without a name.
const UNKNOWN: &str = "UNKNOWN";

/// The names of the status codes, in the order of their numbers.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    UNKNOWN,
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The target of gRPC streams.
pub struct GrpcTarget {
    dial: DialSettings,
    scheme: &'static str,
    authority: String,
    time_max: Duration,
}

/// An open stream. Dropping it closes its connection.
pub struct GrpcStream {
    outgoing: mpsc::Sender<Bytes>,
    incoming: IncomingPart,
    /// Received bytes that are not a whole message yet.
    buffer: BytesMut,
    /// The connection, and what it spawned.
    tasks: Arc<Tasks>,
}

/// The progress of a response.
enum IncomingPart {
    Head(Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>),
    Body(Incoming),
    Ended,
}

/// The body of a request: messages as they are sent.
struct OutgoingBody(mpsc::Receiver<Bytes>);

/// The reason why a stream could not be opened, or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcStreamError(String);

// === impl GrpcTarget ===

impl GrpcTarget {
    /// Creates the target at `url`, which is `http://` for HTTP/2 without TLS, or `https://`. Connecting
    /// takes at most `time_max`. Returns an error message if it is invalid.
    pub fn to(url: &str, tls: &ClientTls, time_max: Duration) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| "it is not a URL".to_owned())?;
        let (scheme, name) = match uri.scheme_str() {
            Some("http") => (UpstreamScheme::H2c, "http"),
            Some("https") => (UpstreamScheme::Https, "https"),
            _ => return Err("it does not start with `http://` or `https://`".to_owned()),
        };
        let host = uri.host().unwrap_or_default();
        let upstream = Upstream {
            scheme,
            // The brackets of an IPv6 address belong to the URL.
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(scheme.port()),
            prefix: String::new(),
            weight: 1,
            http2: Http2Use::Always,
        };
        Ok(Self {
            dial: DialSettings::new(&upstream, tls, time_max)?,
            scheme: name,
            authority: uri.authority().map_or("", |it| it.as_str()).to_owned(),
            time_max,
        })
    }

    /// Calls the method at `path` with `headers`. The stream is open as soon as the call is sent: errors of
    /// the server are those of the first message.
    pub async fn open(
        &self,
        path: &str,
        headers: HeaderMap,
    ) -> Result<GrpcStream, GrpcStreamError> {
        let opened = timeout(self.time_max, self.opened(path, headers)).await;
        opened.unwrap_or_else(|_| Err(GrpcStreamError("timeout".to_owned())))
    }

    async fn opened(&self, path: &str, headers: HeaderMap) -> Result<GrpcStream, GrpcStreamError> {
        let dialled = self.dial.dial(ConnectionKind::Fresh).await;
        let dialled = dialled.map_err(|error| GrpcStreamError(error.to_string()))?;
        let tasks = Arc::new(Tasks::new());
        let (mut sender, connection) = http2::Builder::new(TaskExecutor::new(&tasks))
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_PATIENCE)
            .max_header_list_size(HEAD_BYTES)
            .handshake(TokioIo::new(dialled.stream))
            .await
            .map_err(broken)?;
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                debug!(event = "grpc_connection_failed", %error, "connection of a gRPC stream failed");
            }
        });
        let (outgoing, body) = mpsc::channel(OUTGOING_MAX);
        // From here on, dropping the stream ends the tasks.
        let mut stream = GrpcStream {
            outgoing,
            incoming: IncomingPart::Ended,
            buffer: BytesMut::new(),
            tasks,
        };
        sender.ready().await.map_err(broken)?;
        let request = self.request(path, headers, OutgoingBody(body))?;
        let answer = sender.send_request(request);
        // The sender keeps the connection open for further calls: there are none.
        stream.incoming = IncomingPart::Head(Box::pin(answer));
        Ok(stream)
    }

    fn request(
        &self,
        path: &str,
        headers: HeaderMap,
        body: OutgoingBody,
    ) -> Result<Request<OutgoingBody>, GrpcStreamError> {
        let uri = Uri::builder()
            .scheme(self.scheme)
            .authority(self.authority.as_str())
            .path_and_query(path);
        let uri = uri
            .build()
            .map_err(|_| GrpcStreamError("the address is invalid".to_owned()))?;
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        for (name, value) in [
            (CONTENT_TYPE, "application/grpc"),
            (TE, "trailers"),
            (USER_AGENT, "tidegate"),
        ] {
            let value = HeaderValue::from_static(value);
            request.headers_mut().insert(name, value);
        }
        Ok(request)
    }
}

impl fmt::Debug for GrpcTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrpcTarget({})", self.authority)
    }
}

// === impl GrpcStream ===

impl GrpcStream {
    /// Sends a message. Fails if the server has stopped reading.
    pub fn send(&self, message: &[u8]) -> Result<(), GrpcStreamError> {
        let length = u32::try_from(message.len());
        let length = length.map_err(|_| GrpcStreamError("the message is too long".to_owned()))?;
        let mut framed = Vec::with_capacity(PREFIX.saturating_add(message.len()));
        framed.push(0);
        framed.extend_from_slice(&length.to_be_bytes());
        framed.extend_from_slice(message);
        let sent = self.outgoing.try_send(framed.into());
        sent.map_err(|_| GrpcStreamError("the server does not read".to_owned()))
    }

    /// Returns the next message, of at most `bytes_max` bytes; or the reason why the stream ended. If this
    /// future is dropped, nothing is lost.
    pub async fn next(&mut self, bytes_max: usize) -> Result<Bytes, GrpcStreamError> {
        loop {
            if let Some(message) = split(&mut self.buffer, bytes_max)? {
                return Ok(message);
            }
            match &mut self.incoming {
                IncomingPart::Head(answer) => {
                    let answer = answer.await;
                    self.incoming = IncomingPart::Ended;
                    let (head, body) = answer.map_err(broken)?.into_parts();
                    accept(head.status, &head.headers)?;
                    self.incoming = IncomingPart::Body(body);
                }
                IncomingPart::Body(body) => {
                    let Some(frame) = body.frame().await else {
                        self.incoming = IncomingPart::Ended;
                        continue;
                    };
                    match frame.map_err(broken)?.into_data() {
                        Ok(data) => self.buffer.extend_from_slice(&data),
                        Err(frame) => {
                            if let Some(trailers) = frame.trailers_ref() {
                                return Err(ended(trailers));
                            }
                        }
                    }
                }
                IncomingPart::Ended => {
                    return Err(GrpcStreamError("the server closed the stream".to_owned()));
                }
            }
        }
    }
}

impl Drop for GrpcStream {
    fn drop(&mut self) {
        // The connection's task holds the group that it is in.
        self.tasks.abort();
    }
}

impl fmt::Debug for GrpcStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcStream").finish_non_exhaustive()
    }
}

/// Splits the first message off `buffer`; `None` if it is incomplete.
fn split(buffer: &mut BytesMut, bytes_max: usize) -> Result<Option<Bytes>, GrpcStreamError> {
    let Some((prefix, rest)) = buffer.split_first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        let why = "the server sent a compressed message, although it was not offered";
        return Err(GrpcStreamError(why.to_owned()));
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > bytes_max {
        let why = format!("a message has {length} bytes; at most {bytes_max} are supported");
        return Err(GrpcStreamError(why));
    }
    if rest.len() < length {
        return Ok(None);
    }
    buffer.advance(PREFIX);
    Ok(Some(buffer.split_to(length).freeze()))
}

/// Checks the head of a response. A call that fails at once has its status there.
fn accept(status: StatusCode, headers: &HeaderMap) -> Result<(), GrpcStreamError> {
    if headers.contains_key("grpc-status") {
        return Err(ended(headers));
    }
    if status != StatusCode::OK {
        return Err(GrpcStreamError(format!("the response status was {status}")));
    }
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
        return Ok(());
    }
    Err(GrpcStreamError("the server does not speak gRPC".to_owned()))
}

/// Returns the error for the status at the end of a call. A stream that ends well has ended as well.
fn ended(trailers: &HeaderMap) -> GrpcStreamError {
    let code = trailers.get("grpc-status").and_then(|it| it.to_str().ok());
    let code = code.and_then(|code| code.parse::<usize>().ok());
    if code == Some(0) {
        return GrpcStreamError("the server closed the stream".to_owned());
    }
    let name = code.and_then(|code| CODES.get(code)).unwrap_or(&UNKNOWN);
    let message = trailers.get("grpc-message").map(HeaderValue::as_bytes);
    let message = unescaped(message.unwrap_or_default());
    GrpcStreamError(if message.is_empty() {
        format!("the server answered {name}")
    } else {
        format!("the server answered {name}: {message}")
    })
}

/// Decodes the percent-encoding of a `grpc-message`, for one line of a log.
fn unescaped(message: &[u8]) -> String {
    let mut bytes = Vec::new();
    let mut rest = message;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.split_first_chunk::<2>();
        let decoded = digits.filter(|_| byte == b'%').and_then(|(digits, after)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let (byte, after) = decoded.unwrap_or((byte, after));
        bytes.push(byte);
        rest = after;
        if bytes.len() == MESSAGE_MAX {
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let visible = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    visible.collect()
}

// === impl OutgoingBody ===

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.get_mut().0.poll_recv(context);
        message.map(|message| message.map(|message| Ok(Frame::data(message))))
    }
}

// === impl GrpcStreamError ===

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn broken(error: hyper::Error) -> GrpcStreamError {
    GrpcStreamError(format!("the connection broke: {error}"))
}

impl fmt::Display for GrpcStreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GrpcStreamError {}

#[cfg(test)]
mod tests {
    use super::{ended, split};
    use bytes::BytesMut;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn grpc_messages_are_split_by_their_prefixes() {
        let mut buffer = BytesMut::from(&b"\0\0\0\0\x02hi\0\0\0\0\0\0\0\0"[..]);
        assert_eq!(split(&mut buffer, 2).unwrap().unwrap(), "hi");
        assert_eq!(split(&mut buffer, 2).unwrap().unwrap(), "");
        assert_eq!(split(&mut buffer, 2), Ok(None));
        buffer.extend_from_slice(b"\0\x03a");
        let error = split(&mut buffer, 2).unwrap_err().to_string();
        assert_eq!(error, "a message has 3 bytes; at most 2 are supported");
        let mut buffer = BytesMut::from(&b"\x01\0\0\0\0"[..]);
        assert!(split(&mut buffer, 2).is_err());
    }

    #[test]
    fn a_grpc_status_is_one_line() {
        for (code, message, expected) in [
            ("16", "no%20token%0A%", "UNAUTHENTICATED: no token %"),
            ("99", "", "UNKNOWN"),
            ("x", "%zz", "UNKNOWN: %zz"),
        ] {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_str(code).unwrap());
            trailers.insert("grpc-message", HeaderValue::from_str(message).unwrap());
            let error = ended(&trailers).to_string();
            assert_eq!(error, format!("the server answered {expected}"));
        }
    }
}
