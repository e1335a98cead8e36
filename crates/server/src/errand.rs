//! Fetches: single outgoing HTTP requests, and their responses.
//!
//! For occasional requests: fetching a document, sending a notification. Each opens a connection, sends one
//! request and closes; nothing is followed, retried or kept, and everything is bounded. TLS is verified, as
//! it is to upstreams.

use crate::proxy::dial::Dial;
use crate::proxy::target::Manner;
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
use tidegate_policy::route::{Http2Use, Upstream, UpstreamScheme, UpstreamTls};
use tokio::time::timeout;

const NO_ANSWER: &str = "no answer in time";

const MAYBE_CUT: &str = "the answer says neither how long it is nor where it ends (`Content-Length`, or \
                         `Transfer-Encoding: chunked`): it may have been cut off";

/// The target and the bounds of a fetch.
pub(crate) struct HttpFetch {
    dial: Dial,
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
pub(crate) struct FetchedResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// True if the response has an explicit end. Otherwise it ended with its connection, and may be
    /// truncated.
    pub(crate) is_whole: bool,
}

impl FetchedResponse {
    /// Returns the body, for callers that rely on its content, or an error if it may be truncated: the rest
    /// of a truncated list may well be valid, and limit less.
    pub(crate) fn document(self) -> Result<Bytes, &'static str> {
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
    pub(crate) fn to(
        url: &str,
        tls: &UpstreamTls,
        time_max: Duration,
        bytes_max: usize,
    ) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| "it is not a URL".to_owned())?;
        let scheme = match uri.scheme_str() {
            Some("http") => UpstreamScheme::Http,
            Some("https") => UpstreamScheme::Https,
            _ => return Err("it begins neither with `http://` nor with `https://`".to_owned()),
        };
        let authority = uri.authority().map_or("", |it| it.as_str());
        if authority.contains('@') {
            return Err("users and passwords do not belong into it".to_owned());
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
            dial: Dial::new(&upstream, tls, time_max)?,
            authority: authority.to_owned(),
            target: path.parse().map_err(|_| "it has no path".to_owned())?,
            time_max,
            bytes_max,
        })
    }

    /// Sets a shorter time limit for connecting: after that nothing was sent.
    pub(crate) fn reached_within(mut self, time_max: Duration) -> Self {
        self.dial = self.dial.within(time_max);
        self
    }

    /// Sends `body` with `headers`, and returns the response, with any status.
    pub(crate) async fn run(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<FetchedResponse, ErrandError> {
        let request = self.request(method, headers, body)?;
        self.talk(request, async |head, body| {
            let body = Limited::new(body, self.bytes_max).collect().await;
            let body = body.map_err(|error| ErrandError::Broken(error.to_string()))?;
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
    pub(crate) async fn listen(
        &self,
        headers: HeaderMap,
        body: Bytes,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<bool, ErrandError> {
        let request = self.request(Method::POST, headers, body)?;
        self.talk(request, async |head, mut body| {
            if head.status != StatusCode::OK {
                let message = format!("it was answered {}", head.status);
                return Err(ErrandError::Broken(message));
            }
            let mut line = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(broken)?;
                let piece = frame.data_ref().map_or(&[][..], |it| it);
                for part in piece.split_inclusive(|byte| *byte == b'\n') {
                    line.extend_from_slice(part);
                    if line.len() > self.bytes_max {
                        return Err(ErrandError::Broken("a line is too long".to_owned()));
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
    ) -> Result<Request<Full<Bytes>>, ErrandError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = headers;
        let host = HeaderValue::from_str(&self.authority);
        let host = host.map_err(|_| ErrandError::Broken("the host is not one".to_owned()))?;
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
        read: impl AsyncFnOnce(Parts, Incoming) -> Result<T, ErrandError>,
    ) -> Result<T, ErrandError> {
        // A server that could not be reached in time has received nothing.
        let is_reached = AtomicBool::new(false);
        let exchange = timeout(self.time_max, self.exchange(request, read, &is_reached));
        match exchange.await {
            Ok(answer) => answer,
            Err(_) if is_reached.load(Relaxed) => Err(ErrandError::TooSlow),
            Err(_) => Err(ErrandError::Unreachable(NO_ANSWER.to_owned())),
        }
    }

    async fn exchange<T>(
        &self,
        request: Request<Full<Bytes>>,
        read: impl AsyncFnOnce(Parts, Incoming) -> Result<T, ErrandError>,
        is_reached: &AtomicBool,
    ) -> Result<T, ErrandError> {
        let dialled = self.dial.dial(Manner::Upgrade).await;
        let dialled = dialled.map_err(|error| ErrandError::Unreachable(error.to_string()))?;
        is_reached.store(true, Relaxed);
        let shaken = http1::handshake(TokioIo::new(dialled.stream)).await;
        let (mut sender, connection) = shaken.map_err(broken)?;
        let talk = async {
            let answer = sender.send_request(request).await.map_err(broken)?;
            let (head, body) = answer.into_parts();
            read(head, body).await
        };
        beside(connection, talk).await
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
async fn beside<T>(connection: impl Future, talk: impl Future<Output = T>) -> T {
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
pub(crate) enum ErrandError {
    /// No connection could be made, so nothing was sent.
    Unreachable(String),
    /// It took too long.
    TooSlow,
    /// The connection broke, or the response is not HTTP, or too large.
    Broken(String),
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn broken(error: hyper::Error) -> ErrandError {
    ErrandError::Broken(error.to_string())
}

impl fmt::Display for ErrandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => f.write_str(why),
            Self::TooSlow => f.write_str(NO_ANSWER),
            Self::Broken(why) => write!(f, "the answer broke off: {why}"),
        }
    }
}

impl std::error::Error for ErrandError {}

#[cfg(test)]
mod tests {
    use super::{ErrandError, HttpFetch};
    use bytes::Bytes;
    use http::{HeaderMap, Method};
    use std::time::Duration;
    use tidegate_policy::route::UpstreamTls;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Answers one fetch with `answer`, and returns the request.
    async fn run(
        answer: &str,
        bytes_max: usize,
    ) -> (String, Result<super::FetchedResponse, ErrandError>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let url = format!("http://{address}/hook?key=1");
        let second = Duration::from_secs(5);
        let errand = HttpFetch::to(&url, &UpstreamTls::default(), second, bytes_max);
        let errand = errand.expect("a sound URL");
        let serve = async {
            let (mut stream, _) = listener.accept().await.expect("somebody comes");
            let mut asked = vec![0; 4_096];
            let mut length = 0;
            while !asked[..length].ends_with(b"hello") {
                length += stream.read(&mut asked[length..]).await.expect("it asks");
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
    async fn an_errand_says_its_piece_and_brings_the_answer() {
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
        assert!(!answer.is_whole, "nobody knows");
    }

    #[tokio::test]
    async fn an_answer_that_says_where_it_ends_is_known_to_be_whole() {
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
    async fn an_answer_that_is_too_long_is_none() {
        let (_, answer) = run("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123456789", 8).await;
        assert!(matches!(answer, Err(ErrandError::Broken(_))), "{answer:?}");
    }

    #[test]
    fn what_is_wrong_with_a_url_is_told_without_it() {
        for url in ["ftp://hush.example", "http://hush:pw@example.com/", "hush"] {
            let refused = HttpFetch::to(url, &UpstreamTls::default(), Duration::MAX, 1);
            let why = refused.expect_err("not such a one");
            assert!(!why.contains("hush"), "{why}");
        }
    }
}
