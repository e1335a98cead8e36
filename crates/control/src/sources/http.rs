//! A document at a URL, fetched only if it has changed.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tidegate::LoadedPlans;
use tidegate::plan::{PlanDocument, PlanErrors, PlanFormat};
use tidegate_config::plans_in_format;
use tidegate_net::tasks::blocking;
use tidegate_policy::text::Secret;
use tidegate_policy::tls::ClientTls;
use tidegate_proxy::http_fetch::{FetchedResponse, HttpFetch};

/// The maximum length of a document.
const BYTES_MAX: usize = 256 << 20;

/// The maximum length of a tag that is sent back.
const TAG_MAX: usize = 1_024;

/// A cache of HTTP clients, each with its destination: loading the system's certificate authorities takes
/// a while. It has as many as the configurations so far name.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetch {
    errands: Arc<Mutex<Vec<CachedClient>>>,
}

/// A client, with its URL, its TLS settings and its timeout.
type CachedClient = (String, ClientTls, Duration, Arc<HttpFetch>);

/// The parameters of a fetch.
pub(super) struct FetchTerms<'a> {
    pub(super) url: &'a str,
    pub(super) token: Option<&'a Secret>,
    pub(super) tls: &'a ClientTls,
    pub(super) format: PlanFormat,
    pub(super) time_max: Duration,
    pub(super) hides_subjects: bool,
}

impl Fetch {
    /// Fetches the document at a URL, unless it still has `tag`.
    pub(super) async fn load(
        &self,
        asked: &FetchTerms<'_>,
        tag: Option<String>,
    ) -> Result<LoadedPlans, String> {
        let errand = self.fetch(asked)?;
        let headers = headers(asked, tag.as_deref())?;
        let answer = errand.run(Method::GET, headers, Bytes::new()).await;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status {
            StatusCode::NOT_MODIFIED if tag.is_some() => Ok(LoadedPlans::Unchanged),
            StatusCode::OK => read(answer, asked.format, asked.hides_subjects).await,
            status => Err(format!("the response status was {status}")),
        }
    }

    fn fetch(&self, asked: &FetchTerms<'_>) -> Result<Arc<HttpFetch>, String> {
        let mut errands = self.errands.lock();
        let is_it = |(url, tls, time, _): &&CachedClient| {
            url == asked.url && tls == asked.tls && *time == asked.time_max
        };
        if let Some((.., errand)) = errands.iter().find(is_it) {
            return Ok(Arc::clone(errand));
        }
        let errand = HttpFetch::to(asked.url, asked.tls, asked.time_max, BYTES_MAX)?;
        let errand = Arc::new(errand);
        let (url, tls) = (asked.url.to_owned(), asked.tls.clone());
        errands.push((url, tls, asked.time_max, Arc::clone(&errand)));
        Ok(errand)
    }
}

fn headers(asked: &FetchTerms<'_>, tag: Option<&str>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let accept = HeaderValue::from_static("application/json, application/yaml;q=0.9");
    headers.insert(ACCEPT, accept);
    if let Some(token) = asked.token {
        let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
        let mut value = value.map_err(|_| "the token cannot be sent in a header".to_owned())?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(tag).ok()) {
        headers.insert(IF_NONE_MATCH, tag);
    }
    Ok(headers)
}

async fn read(
    answer: FetchedResponse,
    format: PlanFormat,
    hides_subjects: bool,
) -> Result<LoadedPlans, String> {
    let tag = answer.headers.get(ETAG).and_then(|it| it.to_str().ok());
    let tag = tag.filter(|tag| tag.len() <= TAG_MAX).map(str::to_owned);
    let body = answer.document()?;
    let document = blocking(move || {
        let text = std::str::from_utf8(&body);
        let text = text.map_err(|_| PlanErrors::one("it is not text in UTF-8"));
        let document = text.and_then(|text| plans_in_format(text, format, hides_subjects));
        document.unwrap_or_else(PlanDocument::from)
    });
    Ok(LoadedPlans::Changed {
        document: document.await.ok_or("it did not finish")?,
        tag,
    })
}

#[cfg(test)]
mod tests {
    use super::{Fetch, FetchTerms};
    use std::time::Duration;
    use tidegate::LoadedPlans;
    use tidegate::plan::{PlanFormat, UnsetShare};
    use tidegate_policy::text::Secret;
    use tidegate_policy::tls::ClientTls;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Sends each of `answers` to one client, and returns the requests.
    async fn serve(listener: TcpListener, answers: &[&str]) -> Vec<String> {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("a client connects");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut head).await.expect("a request");
            }
            stream
                .write_all(answer.as_bytes())
                .await
                .expect("it listens");
            asked.push(String::from_utf8(head).expect("text"));
        }
        asked
    }

    fn plans(body: &str, etag: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\netag: {etag}\r\ncontent-length: {length}\r\n\r\n{body}")
    }

    #[tokio::test]
    async fn a_truncated_document_was_accepted_and_later_subjects_had_no_plan() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let url = format!("http://{address}/plans");
        let asked = FetchTerms {
            url: &url,
            tls: &ClientTls::default(),
            format: PlanFormat::Tidegate,
            token: None,
            time_max: Duration::from_secs(5),
            hides_subjects: false,
        };
        let fetch = Fetch::default();
        // The first half of a list of two subjects is a valid document as well.
        let half = "HTTP/1.1 200 OK\r\n\r\nsubjects:\n  p: 5/s\n";
        let all = "subjects:\n  p: 5/s\n  q: 1/s\n";
        let chunk = format!("{:x}\r\n{all}\r\n0\r\n\r\n", all.len());
        let whole = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunk}");
        let answers = [half, whole.as_str()];
        let load = async {
            let cut = fetch
                .load(&asked, None)
                .await
                .expect_err("the outcome is unknown");
            assert!(cut.contains("may be truncated"), "{cut}");
            let Ok(LoadedPlans::Changed { document, .. }) = fetch.load(&asked, None).await else {
                panic!("there is a document");
            };
            let table = document
                .table(UnsetShare::Unlimited)
                .expect("a valid config");
            assert_eq!(table.subjects(), 2);
        };
        tokio::join!(serve(listener, &answers), load);
    }

    #[tokio::test]
    async fn a_document_is_fetched_again_only_after_a_change() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!(
            "http://{}/plans",
            listener.local_addr().expect("it listens")
        );
        let token = Secret::new("hush");
        let asked = FetchTerms {
            url: &url,
            tls: &ClientTls::default(),
            format: PlanFormat::Tidegate,
            token: Some(&token),
            time_max: Duration::from_secs(5),
            hides_subjects: false,
        };
        let fetch = Fetch::default();
        let first = plans(r#"{"subjects": {"p": "5/s"}}"#, "\"7\"");
        let answers = [
            first.as_str(),
            "HTTP/1.1 304 Not Modified\r\n\r\n",
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
            &plans("{\"subjects\": [", "\"8\""),
        ];
        let load = async {
            let Ok(LoadedPlans::Changed { document, tag }) = fetch.load(&asked, None).await else {
                panic!("there is a document");
            };
            let table = document
                .table(UnsetShare::Unlimited)
                .expect("a valid config");
            assert_eq!((table.subjects(), tag.as_deref()), (1, Some("\"7\"")));
            let same = fetch.load(&asked, tag.clone()).await;
            assert!(matches!(same, Ok(LoadedPlans::Unchanged)), "{same:?}");
            let away = fetch
                .load(&asked, tag.clone())
                .await
                .expect_err("it is away");
            assert!(away.contains("503"), "{away}");
            let Ok(LoadedPlans::Changed { document, .. }) = fetch.load(&asked, tag).await else {
                panic!("it answers: an invalid text is no outage");
            };
            let wrong = document
                .table(UnsetShare::Unlimited)
                .expect_err("an invalid document");
            let wrong = wrong.to_string();
            assert!(
                wrong.contains("not valid YAML or JSON") && !wrong.contains("hush"),
                "{wrong}"
            );
        };
        let (heads, ()) = tokio::join!(serve(listener, &answers), load);
        assert!(
            heads[0].starts_with("GET /plans HTTP/1.1\r\n"),
            "{}",
            heads[0]
        );
        assert!(
            heads[0].contains("authorization: Bearer hush"),
            "{}",
            heads[0]
        );
        assert!(!heads[0].contains("if-none-match"), "{}", heads[0]);
        assert!(heads[1].contains("if-none-match: \"7\""), "{}", heads[1]);
    }
}
