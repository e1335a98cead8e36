//! Calls from commands to a running server.

use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_config::Environment;
use tidegate_control::failure::Failure;
use tidegate_policy::text::Secret;
use tidegate_policy::tls::ClientTls;
use tidegate_proxy::http_fetch::{FetchedResponse, HttpFetch};

/// The maximum of `--timeout`, in seconds.
const TIMEOUT_MAX: u64 = 3600;

/// The arguments of a call to a server.
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// Variable with the token of the server's listener
    #[arg(long, value_name = "VARIABLE", conflicts_with = "token_file")]
    pub token_env: Option<String>,
    /// File with the token of the server's listener
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate authorities of the server, in PEM. Default: those of the system
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Seconds to wait for each response
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=TIMEOUT_MAX))]
    pub timeout: u64,
}

/// An endpoint of a server.
#[derive(Debug)]
pub(super) struct ServerEndpoint {
    fetch: HttpFetch,
    headers: HeaderMap,
    url: String,
}

impl ServerEndpoint {
    /// Creates the endpoint at `path` of the URL that `flag` gives. Responses have up to `response_max` bytes.
    pub(super) fn new(
        args: &ServerArgs,
        (flag, url): (&str, &str),
        (path, response_max): (&str, usize),
        environment: &dyn Environment,
    ) -> Result<Self, Failure> {
        Ok(Self {
            headers: headers(args, environment)?,
            fetch: fetch(args, (flag, url), (path, response_max), environment)?,
            url: url.to_owned(),
        })
    }

    /// Sends a body of JSON.
    pub(super) async fn post(&self, body: Bytes) -> Result<FetchedResponse, Failure> {
        let response = self.fetch.run(Method::POST, self.headers.clone(), body);
        response.await.map_err(|error| {
            let url = &self.url;
            Failure::runtime(format!("the server at {url} does not respond: {error}"))
        })
    }
}

/// Returns the failure for a response that is not a success. `result` is what it should have had.
pub(super) fn rejection(response: &FetchedResponse, result: &str) -> Failure {
    let problem: Option<Value> = serde_json::from_slice(&response.body).ok();
    let problem = problem.as_ref();
    let detail = problem.and_then(|it| it.get("detail")?.as_str());
    let detail = detail.unwrap_or("it gives no reason");
    // The admin API lists each error.
    let errors = problem.and_then(|it| it.get("errors")?.as_array());
    let errors = errors.into_iter().flatten();
    let errors = errors.filter_map(|it| it.get("message")?.as_str());
    let detail = errors.fold(detail.to_owned(), |text, error| format!("{text}: {error}"));
    let status = response.status;
    match status {
        StatusCode::UNAUTHORIZED => Failure::input(format!(
            "the server requires another token: {status}\n   help: set --token-env or --token-file"
        )),
        status if status.is_client_error() => Failure::input(format!(
            "the server rejected the request: {status}: {detail}"
        )),
        _ => Failure::runtime(format!("the server made no {result}: {status}: {detail}")),
    }
}

fn fetch(
    args: &ServerArgs,
    (flag, url): (&str, &str),
    (path, response_max): (&str, usize),
    environment: &dyn Environment,
) -> Result<HttpFetch, Failure> {
    let help = "write it like http://127.0.0.1:8080";
    let invalid = |why: String| Failure::input(format!("{flag}: {why}\n   help: {help}"));
    if url.contains(['?', '#']) {
        return Err(invalid("it has a query".to_owned()));
    }
    let tls = ClientTls {
        ca: match &args.ca {
            Some(path) => Some(Secret::new(file(path, environment)?)),
            None => None,
        },
        ..ClientTls::default()
    };
    let url = format!("{}{path}", url.trim_end_matches('/'));
    let timeout = Duration::from_secs(args.timeout);
    HttpFetch::to(&url, &tls, timeout, response_max).map_err(invalid)
}

fn headers(args: &ServerArgs, environment: &dyn Environment) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let token = secret(
        args.token_env.as_deref(),
        args.token_file.as_ref(),
        environment,
    )?;
    if let Some(token) = token {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        // Without the token, which is a secret.
        let mut value = value.map_err(|_| Failure::input("the token has invalid characters"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

/// Returns the secret in a variable or a file, without white space around it.
pub(super) fn secret(
    variable: Option<&str>,
    path: Option<&PathBuf>,
    environment: &dyn Environment,
) -> Result<Option<String>, Failure> {
    let (place, text) = match (variable, path) {
        (Some(name), _) => {
            let text = environment.variable(name);
            let text = text.ok_or_else(|| Failure::input(format!("{name} is not set")))?;
            (name.to_owned(), text)
        }
        (None, Some(path)) => (path.display().to_string(), file(path, environment)?),
        (None, None) => return Ok(None),
    };
    match text.trim() {
        "" => Err(Failure::input(format!("{place} is empty"))),
        text => Ok(Some(text.to_owned())),
    }
}

/// Reads a file that an argument names.
pub(super) fn file(path: &Path, environment: &dyn Environment) -> Result<String, Failure> {
    let name = path.display().to_string();
    let text = environment.file(&name);
    text.map_err(|error| Failure::input(format!("cannot read {name}: {error}")))
}
