//! Keys of etcd with a document in each, by its JSON gateway.
//!
//! `PREFIX` + `policy/NAME` and so on hold a document each. What they are at is told by the highest
//! revision among them and how many they are: a key that was changed has a higher one, and one that went
//! leaves fewer.

use super::BYTES_MAX;
use crate::errand::{Errand, ErrandError};
use crate::live::documents::Documents;
use crate::live::edit::Edit;
use crate::live::source::{Loaded, Source, Trouble, Version, WriteError, Writer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_policy::route::UpstreamTls;
use tidegate_policy::source::Etcd;
use tokio::time::{sleep, timeout};

/// The key below the prefix that every change writes: who has seen it has seen all that came before.
const COUNT: &str = "version";

/// How long to wait before changes are watched for again that could not be.
const PAUSE: Duration = Duration::from_secs(1);

/// Keys of etcd.
#[derive(Debug)]
pub(super) struct EtcdSource {
    etcd: Etcd,
    members: Vec<Member>,
    /// What a member gave for the password.
    token: Mutex<Option<String>>,
    /// Up to which revision everything has been read.
    read_to: AtomicU64,
    every: Duration,
}

/// The errands to one member.
#[derive(Debug)]
struct Member {
    range: Errand,
    txn: Errand,
    authenticate: Errand,
    watch: Errand,
}

impl Member {
    fn new(url: &str, time_max: Duration, every: Duration) -> Result<Self, String> {
        let tls = UpstreamTls::default();
        let to = |path: &str, time_max| {
            Errand::to(&format!("{url}/v3/{path}"), &tls, time_max, BYTES_MAX)
        };
        Ok(Self {
            range: to("kv/range", time_max)?,
            txn: to("kv/txn", time_max)?,
            authenticate: to("auth/authenticate", time_max)?,
            watch: to("watch", every.saturating_add(time_max))?,
        })
    }
}

impl EtcdSource {
    pub(super) fn new(etcd: &Etcd, time_max: Duration, every: Duration) -> Result<Self, String> {
        let members = etcd.endpoints.iter();
        let members = members.map(|url| Member::new(url, time_max, every));
        Ok(Self {
            etcd: etcd.clone(),
            members: members.collect::<Result<_, _>>()?,
            token: Mutex::new(None),
            read_to: AtomicU64::new(0),
            every,
        })
    }

    /// The key of what is called `name` below the prefix, as the gateway has it.
    fn key(&self, name: &str) -> String {
        STANDARD.encode(format!("{}{name}", self.etcd.prefix))
    }

    async fn ask(&self, seen: Option<&Version>) -> Result<Loaded, Trouble> {
        let asked = json!({ "key": self.key(""), "range_end": self.end() });
        let answer = self.call(|it| &it.range, &asked).await.map_err(Trouble)?;
        let (version, found) = self.read(&answer).map_err(Trouble)?;
        let revision = answer.get("header").and_then(|it| it.get("revision"));
        self.read_to.store(number(revision), Relaxed);
        if seen.is_some_and(|seen| seen.0 == version) {
            return Ok(Loaded::Unchanged);
        }
        if Documents::are_gone(&version, found.len(), seen) {
            let prefix = &self.etcd.prefix;
            return Err(Trouble(format!("everything below `{prefix}` is gone")));
        }
        Ok(Documents::load(&version, found, seen))
    }

    /// The first key that does not begin with the prefix any more.
    fn end(&self) -> String {
        let mut end = self.etcd.prefix.clone().into_bytes();
        while let Some(last) = end.pop() {
            if let Some(next) = last.checked_add(1) {
                end.push(next);
                return STANDARD.encode(end);
            }
        }
        // All that there are.
        STANDARD.encode([0])
    }

    /// The documents of an answer, and what they are at.
    fn read(&self, answer: &Value) -> Result<(String, Vec<(String, String)>), String> {
        let pairs = answer.get("kvs").and_then(Value::as_array);
        let (mut highest, mut found) = (0, Vec::new());
        for pair in pairs.into_iter().flatten() {
            let key = decoded(pair.get("key"))?;
            let value = decoded(pair.get("value"))?;
            highest = highest.max(number(pair.get("mod_revision")));
            let name = key.strip_prefix(&self.etcd.prefix).unwrap_or(&key);
            if name != COUNT {
                found.push((name.to_owned(), value));
            }
        }
        let version = match highest {
            0 => "0".to_owned(),
            _ => format!("{highest}-{}", found.len()),
        };
        Ok((version, found))
    }

    async fn change(&self, expected: &Version, edits: &[Edit]) -> Result<Version, WriteError> {
        // Nothing below the prefix may have a higher revision than what was seen: neither the count,
        // which every change of ours raises, nor what somebody else changed by hand.
        let seen = expected.0.split('-').next().unwrap_or("0");
        let mut compare = vec![json!({
            "key": self.key(""), "range_end": self.end(),
            "target": "MOD", "result": "LESS", "mod_revision": above(seen),
        })];
        let mut success = Vec::new();
        for edit in edits {
            let key = self.key(&Documents::key(edit));
            success.push(match &edit.document {
                Some(document) => {
                    let value = STANDARD.encode(document);
                    json!({ "request_put": { "key": key, "value": value } })
                }
                None => {
                    // It is there, or somebody else removed it meanwhile.
                    compare.push(json!({
                        "key": key, "target": "CREATE", "result": "GREATER", "create_revision": "0",
                    }));
                    json!({ "request_delete_range": { "key": key } })
                }
            });
        }
        let count = json!({ "key": self.key(COUNT), "value": STANDARD.encode(seen) });
        success.push(json!({ "request_put": count }));
        // In the same step, so that what is told is what this change made.
        let range = json!({ "key": self.key(""), "range_end": self.end() });
        success.push(json!({ "request_range": range }));
        let asked = json!({ "compare": compare, "success": success });
        let answer = self
            .call(|it| &it.txn, &asked)
            .await
            .map_err(WriteError::Away)?;
        if answer.get("succeeded").and_then(Value::as_bool) != Some(true) {
            return Err(WriteError::Conflict);
        }
        let responses = answer.get("responses").and_then(Value::as_array);
        let range = responses.and_then(|it| it.last()?.get("response_range"));
        let range = range.ok_or_else(|| WriteError::Away("etcd told no version".to_owned()))?;
        let (version, _) = self.read(range).map_err(WriteError::Away)?;
        Ok(Version(version))
    }

    /// Asks the members in turn until one answers.
    async fn call(&self, errand: fn(&Member) -> &Errand, asked: &Value) -> Result<Value, String> {
        let mut why = "there are no members".to_owned();
        for member in &self.members {
            match self.call_one(member, errand, asked).await {
                Ok(answer) => return Ok(answer),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    async fn call_one(
        &self,
        member: &Member,
        errand: fn(&Member) -> &Errand,
        asked: &Value,
    ) -> Result<Value, String> {
        let token = self.token.lock().clone();
        let had_token = token.is_some();
        let answer = send(errand(member), asked, token.as_deref()).await?;
        let (status, body) = answer;
        if status == StatusCode::OK {
            return Ok(body);
        }
        let Some(password) = self
            .etcd
            .password
            .as_ref()
            .filter(|_| is_unknown(&body) || !had_token)
        else {
            return Err(refused(status, &body));
        };
        let who = json!({
            "name": self.etcd.user.as_deref().unwrap_or("root"),
            "password": password.expose(),
        });
        let (status, body) = send(&member.authenticate, &who, None).await?;
        let token = body.get("token").and_then(Value::as_str).map(str::to_owned);
        let Some(token) = token.filter(|_| status == StatusCode::OK) else {
            return Err(format!("etcd did not take us: {}", refused(status, &body)));
        };
        *self.token.lock() = Some(token.clone());
        match send(errand(member), asked, Some(&token)).await? {
            (StatusCode::OK, body) => Ok(body),
            (status, body) => Err(refused(status, &body)),
        }
    }

    /// Waits until a member tells of a change.
    async fn hear(&self) {
        // From where reading ended, so that nothing is missed that happened since.
        let from = self.read_to.load(Relaxed).saturating_add(1).to_string();
        let asked = json!({
            "create_request": {
                "key": self.key(""), "range_end": self.end(), "start_revision": from,
            },
        });
        loop {
            let token = self.token.lock().clone();
            for member in &self.members {
                if watched(&member.watch, &asked, token.as_deref()).await {
                    return;
                }
            }
            sleep(PAUSE).await;
        }
    }
}

/// Whether a change was told of.
async fn watched(errand: &Errand, asked: &Value, token: Option<&str>) -> bool {
    let Ok(headers) = headers(token) else {
        return false;
    };
    let body = Bytes::from(asked.to_string());
    // The first line says that it is watched; the next that something happened.
    let wanted = |line: &[u8]| memchr::memmem::find(line, b"\"events\"").is_some();
    errand.listen(headers, body, wanted).await.unwrap_or(false)
}

fn headers(token: Option<&str>) -> Result<HeaderMap, String> {
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

async fn send(
    errand: &Errand,
    asked: &Value,
    token: Option<&str>,
) -> Result<(StatusCode, Value), String> {
    let body = Bytes::from(asked.to_string());
    let answer = errand.run(Method::POST, headers(token)?, body).await;
    let answer = answer.map_err(|error: ErrandError| error.to_string())?;
    let body = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    Ok((answer.status, body))
}

/// Whether etcd wants to know who asks, and does not.
fn is_unknown(body: &Value) -> bool {
    let message = body
        .get("error")
        .and_then(Value::as_str)
        .unwrap_or_default();
    message.contains("token") || message.contains("user name is empty")
}

fn refused(status: StatusCode, body: &Value) -> String {
    match body.get("error").and_then(Value::as_str) {
        Some(error) => format!("it was answered {status}: {error}"),
        None => format!("it was answered {status}"),
    }
}

fn decoded(value: Option<&Value>) -> Result<String, String> {
    // A value that is empty is left out.
    let text = value.and_then(Value::as_str).unwrap_or_default();
    let bytes = STANDARD
        .decode(text)
        .map_err(|_| "etcd's answer is not in Base64".to_owned())?;
    String::from_utf8(bytes).map_err(|_| "a document is not text in UTF-8".to_owned())
}

/// Numbers of 64 bits are text in JSON.
fn number(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::String(number)) => number.parse().unwrap_or_default(),
        Some(number) => number.as_u64().unwrap_or_default(),
        None => 0,
    }
}

fn above(revision: &str) -> String {
    let revision: u64 = revision.parse().unwrap_or_default();
    revision.saturating_add(1).to_string()
}

impl Source for EtcdSource {
    fn load<'a>(&'a self, seen: Option<&'a Version>) -> BoxFuture<'a, Result<Loaded, Trouble>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // Either is reason enough to look.
            timeout(self.every, self.hear()).await.ok();
        })
    }

    fn writer(&self) -> Option<&dyn Writer> {
        self.etcd.writable.then_some(self)
    }
}

impl Writer for EtcdSource {
    fn write<'a>(
        &'a self,
        expected: &'a Version,
        edits: &'a [Edit],
    ) -> BoxFuture<'a, Result<Version, WriteError>> {
        Box::pin(self.change(expected, edits))
    }
}
