//! Keys of etcd with a text in each, by its JSON gateway.
//!
//! `PREFIX` and a name after it hold a text each. What they are at is told by the highest
//! revision among them and how many they are: a key that was changed has a higher one, and one that went
//! leaves fewer.
//!
//! | module | what it is |
//! |---|---|
//! | this one | reading them, and hearing of changes |
//! | `write` | changes to them |
//! | `said` | what is said to a member, and what it answers |

mod said;
mod write;

use super::{Change, Shelf, Shelved, Trouble, Version, WriteError};
use crate::errand::Errand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use parking_lot::Mutex;
use said::{Failed, decoded, headers, is_unknown, number, refused, send};
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

/// How long one watch may last: longer than anybody asks at the latest.
const WATCHED_MAX: Duration = Duration::from_hours(25);

/// The most bytes of an answer.
const BYTES_MAX: usize = 64 << 20;

/// Keys of etcd.
#[derive(Debug)]
pub(super) struct EtcdShelf {
    etcd: Etcd,
    members: Vec<Member>,
    /// What a member gave for the password.
    token: Mutex<Option<String>>,
    /// Up to which revision everything has been read.
    read_to: AtomicU64,
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
    fn new(url: &str, tls: &UpstreamTls, time_max: Duration) -> Result<Self, String> {
        let to = |path: &str, time_max| {
            Errand::to(&format!("{url}/v3/{path}"), tls, time_max, BYTES_MAX)
        };
        Ok(Self {
            range: to("kv/range", time_max)?,
            txn: to("kv/txn", time_max)?,
            authenticate: to("auth/authenticate", time_max)?,
            // Whoever watches says for how long.
            watch: to("watch", WATCHED_MAX)?,
        })
    }
}

impl EtcdShelf {
    pub(super) fn new(etcd: &Etcd, time_max: Duration) -> Result<Self, String> {
        let members = etcd.endpoints.iter();
        let members = members.map(|url| Member::new(url, &etcd.tls, time_max));
        Ok(Self {
            etcd: etcd.clone(),
            members: members.collect::<Result<_, _>>()?,
            token: Mutex::new(None),
            read_to: AtomicU64::new(0),
        })
    }

    /// The key of what is called `name` below the prefix, as the gateway has it.
    fn key(&self, name: &str) -> String {
        STANDARD.encode(format!("{}{name}", self.etcd.prefix))
    }

    async fn ask(&self, seen: Option<&Version>) -> Result<Option<Shelved>, Trouble> {
        let asked = json!({ "key": self.key(""), "range_end": self.end() });
        let answer = self.call(|it| &it.range, &asked).await.map_err(Trouble)?;
        let (version, found) = self.read_pairs(&answer).map_err(Trouble)?;
        let revision = answer.get("header").and_then(|it| it.get("revision"));
        self.read_to.store(number(revision), Relaxed);
        Shelved::new(&version, found, seen).map_err(|_| {
            let prefix = &self.etcd.prefix;
            Trouble(format!("everything below `{prefix}` is gone"))
        })
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

    /// The texts of an answer, and what they are at.
    fn read_pairs(&self, answer: &Value) -> Result<(String, Vec<(String, String)>), String> {
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

    /// Asks the members in turn until one answers.
    async fn call(&self, errand: fn(&Member) -> &Errand, asked: &Value) -> Result<Value, String> {
        let mut why = "there are no members".to_owned();
        for member in &self.members {
            match self.call_one(member, errand, asked).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => why = failed.into_why(),
            }
        }
        Err(why)
    }

    async fn call_one(
        &self,
        member: &Member,
        errand: fn(&Member) -> &Errand,
        asked: &Value,
    ) -> Result<Value, Failed> {
        let token = self.token.lock().clone();
        let had_token = token.is_some();
        let (status, body) = send(errand(member), asked, token.as_deref()).await?;
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
        // Who is not known has changed nothing.
        let unsent = |failed: Failed| Failed::Unsent(failed.into_why());
        let answer = send(&member.authenticate, &who, None).await;
        let (status, body) = answer.map_err(unsent)?;
        let token = body.get("token").and_then(Value::as_str).map(str::to_owned);
        let Some(token) = token.filter(|_| status == StatusCode::OK) else {
            let why = refused(status, &body).into_why();
            return Err(Failed::Unsent(format!("etcd did not take us: {why}")));
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

impl Shelf for EtcdShelf {
    fn read<'a>(
        &'a self,
        seen: Option<&'a Version>,
    ) -> BoxFuture<'a, Result<Option<Shelved>, Trouble>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self, most: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Either is reason enough to look.
            timeout(most, self.hear()).await.ok();
        })
    }

    fn write<'a>(
        &'a self,
        expected: &'a Version,
        changes: &'a [Change],
    ) -> BoxFuture<'a, Result<Version, WriteError>> {
        Box::pin(self.change(expected, changes))
    }
}
