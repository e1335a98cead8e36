//! Fetches: single outgoing HTTP requests, and their responses.
//!
//! For occasional requests: fetching a document, sending a notification. Each opens a connection, sends one
//! request and closes; nothing is followed, retried or kept, and everything is bounded. TLS is verified, as
//! it is to upstreams.

use crate::connection_kind::ConnectionKind;
use crate::dial::DialSettings;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, USER_AGENT};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;
use tidegate_policy::route::{Http2Use, Upstream, UpstreamScheme};
use tidegate_policy::tls::ClientTls;
use tokio::time::timeout;

const NO_ANSWER: &str = "timeout";

const MAYBE_CUT: &str = "the response has neither `Content-Length` nor `Transfer-Encoding: \
    chunked`: it may be truncated";

/// The target and the bounds of a fetch.
pub struct HttpFetch {
    dial: DialSettings,
    /// The value of `Host`: the only part of the address that is ever shown.
    authority: String,
    /// Path and query.
    target: Uri,
    /// The maximum time of the whole fetch.
    time_max: Duration,
    /// The maximum bytes of a response.
    bytes_max: usize,
}

/// A response.
#[derive(Debug)]
pub struct FetchedResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, within the bound.
    pub body: Bytes,
    /// True if the response has an explicit end. Otherwise it ended with its connection, and may be
    /// truncated.
    pub is_whole: bool,
}

impl FetchedResponse {
    /// Returns the body, for callers that rely on its content, or an error if it may be truncated: the rest
    /// of a truncated list may well be valid, and limit less.
    ///
    /// # Errors
    ///
    /// A fixed message, if the end of the body is only the end of the connection.
    pub fn document(self) -> Result<Bytes, &'static str> {
        if self.is_whole {
            Ok(self.body)
        } else {
            Err(MAYBE_CUT)
        }
    }
}

impl HttpFetch {
    /// Creates a fetch from `url`. Returns an error message if it is invalid. The message does not contain
    /// the URL, which may hold a secret.
    ///
    /// # Errors
    ///
    /// The reason why `url` cannot be fetched: it is no `http` or `https` URL, or contains a user or a password. Or
    /// the reason why the TLS settings cannot be used.
    pub fn to(
        url: &str,
        tls: &ClientTls,
        time_max: Duration,
        bytes_max: usize,
    ) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| "it is not a URL".to_owned())?;
        let scheme = match uri.scheme_str() {
            Some("http") => UpstreamScheme::Http,
            Some("https") => UpstreamScheme::Https,
            _ => return Err("it does not start with `http://` or `https://`".to_owned()),
        };
        let authority = uri.authority().map_or("", |it| it.as_str());
        if authority.contains('@') {
            return Err("it contains a user or password".to_owned());
        }
        let host = uri.host().unwrap_or_default();
        let upstream = Upstream {
            scheme,
            // The brackets of an IPv6 address belong to the URL.
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(scheme.port()),
            prefix: String::new(),
            weight: 1,
            http2: Http2Use::Never,
        };
        let path = uri.path_and_query().map_or("/", |it| it.as_str());
        Ok(Self {
            dial: DialSettings::new(&upstream, tls, time_max)?,
            authority: authority.to_owned(),
            target: path.parse().map_err(|_| "it has no path".to_owned())?,
            time_max,
            bytes_max,
        })
    }

    /// Sets a shorter time limit for connecting: after that nothing was sent.
    #[must_use]
    pub fn reached_within(mut self, time_max: Duration) -> Self {
        self.dial = self.dial.within(time_max);
        self
    }

    /// Sends `body` with `headers`, and returns the response, with any status.
    ///
    /// # Errors
    ///
    /// A timeout, a failed connection, or a response beyond `bytes_max`. A status that reports an error is none.
    pub async fn run(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<FetchedResponse, HttpFetchError> {
        let request = self.request(method, headers, body)?;
        self.talk(request, async |head, body| {
            let body = Limited::new(body, self.bytes_max).collect().await;
            let body = body.map_err(|error| HttpFetchError::Broken(error.to_string()))?;
            Ok(FetchedResponse {
                status: head.status,
                is_whole: has_end(&head.headers),
                headers: head.headers,
                body: body.to_bytes(),
            })
        })
        .await
    }

    /// Posts `body` with `headers`, and reads the response line by line for as long as it comes, until a line
    /// is `wanted`. Returns true if one was.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), a status other than 200, or a line longer than `bytes_max`.
    pub async fn listen(
        &self,
        headers: HeaderMap,
        body: Bytes,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<bool, HttpFetchError> {
        let request = self.request(Method::POST, headers, body)?;
        self.talk(request, async |head, mut body| {
            if head.status != StatusCode::OK {
                let message = format!("the response status was {}", head.status);
                return Err(HttpFetchError::Broken(message));
            }
            let mut line = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(broken)?;
                let piece = frame.data_ref().map_or(&[][..], |it| it);
                for part in piece.split_inclusive(|byte| *byte == b'\n') {
                    line.extend_from_slice(part);
                    if line.len() > self.bytes_max {
                        return Err(HttpFetchError::Broken("a line is too long".to_owned()));
                    }
                    if part.ends_with(b"\n") {
                        if wanted(&line) {
                            return Ok(true);
                        }
                        line.clear();
                    }
                }
            }
            Ok(false)
        })
        .await
    }

    fn request(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, HttpFetchError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = headers;
        let host = HeaderValue::from_str(&self.authority);
        let host = host.map_err(|_| HttpFetchError::Broken("the host is invalid".to_owned()))?;
        request.headers_mut().insert(HOST, host);
        request
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        request
            .headers_mut()
            .insert(USER_AGENT, HeaderValue::from_static("tidegate"));
        Ok(request)
    }

    /// Sends `request`, and lets `read` read the response. The time limit applies to both.
    async fn talk<T>(
        &self,
        request: Request<Full<Bytes>>,
        read: impl AsyncFnOnce(Parts, Incoming) -> Result<T, HttpFetchError>,
    ) -> Result<T, HttpFetchError> {
        // A server that could not be reached in time has received nothing.
        let is_reached = AtomicBool::new(false);
        let exchange = timeout(self.time_max, self.exchange(request, read, &is_reached));
        match exchange.await {
            Ok(answer) => answer,
            Err(_) if is_reached.load(Relaxed) => Err(HttpFetchError::TooSlow),
            Err(_) => Err(HttpFetchError::Unreachable(NO_ANSWER.to_owned())),
        }
    }

    async fn exchange<T>(
        &self,
        request: Request<Full<Bytes>>,
        read: impl AsyncFnOnce(Parts, Incoming) -> Result<T, HttpFetchError>,
        is_reached: &AtomicBool,
    ) -> Result<T, HttpFetchError> {
        let dialled = self.dial.dial(ConnectionKind::Upgrade).await;
        let dialled = dialled.map_err(|error| HttpFetchError::Unreachable(error.to_string()))?;
        is_reached.store(true, Relaxed);
        let shaken = http1::handshake(TokioIo::new(dialled.stream)).await;
        let (mut sender, connection) = shaken.map_err(broken)?;
        let talk = async {
            let answer = sender.send_request(request).await.map_err(broken)?;
            let (head, body) = answer.into_parts();
            read(head, body).await
        };
        drive_alongside(connection, talk).await
    }
}

/// Returns true if the headers of a response mark the end of its body.
fn has_end(headers: &HeaderMap) -> bool {
    match headers.get_all(TRANSFER_ENCODING).iter().next_back() {
        // The coding applied last is decoded first.
        Some(codings) => {
            let last = codings.as_bytes().rsplit(|byte| *byte == b',').next();
            last.is_some_and(|it| it.trim_ascii().eq_ignore_ascii_case(b"chunked"))
        }
        None => headers.contains_key(CONTENT_LENGTH),
    }
}

/// Returns the result of `talk`, while `connection` is driven alongside it, until it ends.
async fn drive_alongside<T>(connection: impl Future, talk: impl Future<Output = T>) -> T {
    let (mut connection, mut talk) = (pin!(connection), pin!(talk));
    let mut is_over = false;
    poll_fn(|context| {
        if let Poll::Ready(said) = talk.as_mut().poll(context) {
            return Poll::Ready(said);
        }
        if !is_over && connection.as_mut().poll(context).is_ready() {
            is_over = true;
            // The data read last is still available.
            return talk.as_mut().poll(context);
        }
        Poll::Pending
    })
    .await
}

impl fmt::Debug for HttpFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errand({})", self.authority)
    }
}

/// The reason why there is no response.
#[derive(Debug, PartialEq, Eq)]
pub enum HttpFetchError {
    /// No connection could be made, so nothing was sent.
    Unreachable(String),
    /// It took too long.
    TooSlow,
    /// The connection broke, or the response is not HTTP, or too large.
    Broken(String),
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn broken(error: hyper::Error) -> HttpFetchError {
    HttpFetchError::Broken(error.to_string())
}

impl fmt::Display for HttpFetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => f.write_str(why),
            Self::TooSlow => f.write_str(NO_ANSWER),
            Self::Broken(why) => write!(f, "the response was cut short: {why}"),
        }
    }
}

impl std::error::Error for HttpFetchError {}

#[cfg(test)]
mod tests {
    use super::{HttpFetch, HttpFetchError};
    use bytes::Bytes;
    use http::{HeaderMap, Method};
    use std::time::Duration;
    use tidegate_policy::tls::ClientTls;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Answers one fetch with `answer`, and returns the request.
    async fn run(
        answer: &str,
        bytes_max: usize,
    ) -> (String, Result<super::FetchedResponse, HttpFetchError>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let url = format!("http://{address}/hook?key=1");
        let second = Duration::from_secs(5);
        let errand = HttpFetch::to(&url, &ClientTls::default(), second, bytes_max);
        let errand = errand.expect("a valid URL");
        let serve = async {
            let (mut stream, _) = listener.accept().await.expect("a client connects");
            let mut asked = vec![0; 4_096];
            let mut length = 0;
            while !asked[..length].ends_with(b"hello") {
                length += stream.read(&mut asked[length..]).await.expect("a request");
            }
            stream
                .write_all(answer.as_bytes())
                .await
                .expect("it listens");
            asked.truncate(length);
            String::from_utf8(asked).expect("text")
        };
        let mut headers = HeaderMap::new();
        headers.insert("x-one", "1".parse().expect("a value"));
        tokio::join!(
            serve,
            errand.run(Method::POST, headers, Bytes::from("hello"))
        )
    }

    #[tokio::test]
    async fn a_fetch_sends_its_request_and_returns_the_response() {
        let ok = "HTTP/1.1 201 Created\r\netag: \"7\"\r\ncontent-length: 2\r\n\r\nok";
        let (asked, answer) = run(ok, 64).await;
        assert!(
            asked.starts_with("POST /hook?key=1 HTTP/1.1\r\n"),
            "{asked}"
        );
        assert!(asked.contains("x-one: 1") && asked.contains("connection: close"));
        let answer = answer.expect("an answer");
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (201, &b"ok"[..])
        );
        assert_eq!(answer.headers["etag"], "\"7\"");
    }

    #[tokio::test]
    async fn an_answer_without_a_length_ends_with_its_connection() {
        let (_, answer) = run("HTTP/1.1 200 OK\r\n\r\nall of it", 64).await;
        let answer = answer.expect("an answer");
        assert_eq!(&answer.body[..], b"all of it");
        assert!(!answer.is_whole, "the outcome is unknown");
    }

    #[tokio::test]
    async fn a_response_with_framing_is_known_to_be_complete() {
        for (head, is_whole) in [
            ("content-length: 5\r\n\r\nwhole", true),
            (
                "transfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n",
                true,
            ),
            ("transfer-encoding: x\r\n\r\nwhole", false),
        ] {
            let (_, answer) = run(&format!("HTTP/1.1 200 OK\r\n{head}"), 64).await;
            let answer = answer.expect("an answer");
            assert_eq!(&answer.body[..], b"whole", "{head}");
            assert_eq!(answer.is_whole, is_whole, "{head}");
        }
    }

    #[tokio::test]
    async fn an_oversized_response_is_an_error() {
        let (_, answer) = run("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123456789", 8).await;
        assert!(
            matches!(answer, Err(HttpFetchError::Broken(_))),
            "{answer:?}"
        );
    }

    #[test]
    fn url_errors_do_not_show_the_url() {
        for url in ["ftp://hush.example", "http://hush:pw@example.com/", "hush"] {
            let refused = HttpFetch::to(url, &ClientTls::default(), Duration::MAX, 1);
            let why = refused.expect_err("not such a one");
            assert!(!why.contains("hush"), "{why}");
        }
    }
}
