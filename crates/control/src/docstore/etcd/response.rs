//! Requests to a member of etcd, and its responses: JSON both ways.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;
use tidegate_proxy::http_fetch::{HttpFetch, HttpFetchError};

/// The reason why a request to a member failed.
#[derive(Debug)]
pub(super) enum EtcdError {
    /// The member did not get the request.
    Unsent(String),
    /// The member rejected the request.
    Refused(String),
    /// The result is unknown.
    Lost(String),
}

impl EtcdError {
    pub(super) fn into_why(self) -> String {
        match self {
            Self::Unsent(why) | Self::Refused(why) | Self::Lost(why) => why,
        }
    }
}

pub(super) fn headers(token: Option<&str>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(token) = token {
        let value = HeaderValue::from_str(token);
        let mut value = value.map_err(|_| "the token cannot be sent".to_owned())?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

pub(super) async fn send(
    errand: &HttpFetch,
    asked: &Value,
    token: Option<&str>,
) -> Result<(StatusCode, Bytes), EtcdError> {
    let body = Bytes::from(asked.to_string());
    let headers = headers(token).map_err(EtcdError::Unsent)?;
    let answer = errand.run(Method::POST, headers, body).await;
    let answer = answer.map_err(|error| match error {
        HttpFetchError::Unreachable(why) => EtcdError::Unsent(why),
        HttpFetchError::TooSlow | HttpFetchError::Broken(_) => EtcdError::Lost(error.to_string()),
    })?;
    Ok((answer.status, answer.body))
}

/// Parses a response. An invalid one is an error, and does not mean that there are no keys.
pub(super) fn parse(answer: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(answer).map_err(|_| "etcd's answer is not in JSON".to_owned())
}

/// Returns true if etcd requires authentication, and the token is missing or invalid.
pub(super) fn is_unknown(body: &Value) -> bool {
    let message = body
        .get("error")
        .and_then(Value::as_str)
        .unwrap_or_default();
    message.contains("token") || message.contains("user name is empty")
}

pub(super) fn refused(status: StatusCode, body: &Value) -> EtcdError {
    let why = match body.get("error").and_then(Value::as_str) {
        Some(error) => format!("the response status was {status}: {error}"),
        None => format!("the response status was {status}"),
    };
    // A member that reports a timeout, or the loss of its leader, may have passed the request on before.
    if status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT {
        EtcdError::Refused(why)
    } else {
        EtcdError::Lost(why)
    }
}

pub(super) fn decoded(value: Option<&Value>) -> Result<String, String> {
    // An empty value is omitted.
    let text = value.and_then(Value::as_str).unwrap_or_default();
    let bytes = STANDARD
        .decode(text)
        .map_err(|_| "etcd's answer is not in Base64".to_owned())?;
    String::from_utf8(bytes).map_err(|_| "a document is not text in UTF-8".to_owned())
}

/// Parses a number. 64-bit numbers are text in JSON.
pub(super) fn number(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::String(number)) => number.parse().unwrap_or_default(),
        Some(number) => number.as_u64().unwrap_or_default(),
        None => 0,
    }
}
