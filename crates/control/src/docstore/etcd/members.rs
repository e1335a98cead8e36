//! The members of etcd. They are tried in turn until one answers, beginning with the one that answered
//! last.
//!
//! A member that hangs takes only its share of the time, so that the next is tried while the caller still
//! waits.

use super::response::{EtcdError, is_unknown, parse, refused, send};
use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidegate_policy::documents::EtcdSource;
use tidegate_policy::text::Secret;
use tidegate_policy::tls::ClientTls;
use tidegate_proxy::http_fetch::{HttpFetch, HttpFetchError};
use tokio::time::{Instant, timeout};

/// The minimum time that one of several members gets before the next is tried.
const SHARE_MIN: Duration = Duration::from_millis(200);

/// The maximum duration of a watch: longer than the maximum interval between reads.
const WATCHED_MAX: Duration = Duration::from_hours(25);

/// The maximum length of a response in bytes.
const BYTES_MAX: usize = 64 << 20;

/// The members.
#[derive(Debug)]
pub(super) struct EtcdMembers {
    all: Vec<EtcdMember>,
    /// The member to try first: the one that answered last, or the one after it if it no longer does.
    first: AtomicUsize,
    time_max: Duration,
    user: Option<String>,
    password: Option<Secret>,
    /// The token that a member issued for the password.
    token: Mutex<Option<String>>,
}

/// The HTTP fetches for one member.
#[derive(Debug)]
pub(super) struct EtcdMember {
    pub(super) range: HttpFetch,
    pub(super) txn: HttpFetch,
    authenticate: HttpFetch,
    pub(super) watch: HttpFetch,
}

/// The attempt with one member. If it ends without an answer, for any reason, the next member becomes the
/// first.
pub(super) struct MemberAttempt<'a> {
    members: &'a EtcdMembers,
    pub(super) member: &'a EtcdMember,
    nth: usize,
    /// The number of members left to try after it.
    others: usize,
    is_answered: bool,
}

/// The deadline for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerDeadline {
    end: Instant,
    /// The first member has answered a moment ago.
    is_known: bool,
}

impl EtcdMember {
    /// Creates a member. Each request may take `time_max`, and connecting `share`.
    fn new(
        url: &str,
        tls: &ClientTls,
        time_max: Duration,
        share: Duration,
    ) -> Result<Self, String> {
        let to = |path: &str, time_max| {
            let errand = HttpFetch::to(&format!("{url}/v3/{path}"), tls, time_max, BYTES_MAX)?;
            Ok::<_, String>(errand.reached_within(share))
        };
        Ok(Self {
            range: to("kv/range", time_max)?,
            txn: to("kv/txn", time_max)?,
            authenticate: to("auth/authenticate", share)?,
            // The caller sets the duration of a watch.
            watch: to("watch", WATCHED_MAX)?,
        })
    }
}

impl EtcdMembers {
    pub(super) fn new(etcd: &EtcdSource, time_max: Duration) -> Result<Self, String> {
        let count = u32::try_from(etcd.endpoints.len()).unwrap_or(u32::MAX);
        let share = (time_max / count.max(1)).max(SHARE_MIN).min(time_max);
        let all = etcd.endpoints.iter();
        let all = all.map(|url| EtcdMember::new(url, &etcd.tls, time_max, share));
        Ok(Self {
            all: all.collect::<Result<_, _>>()?,
            first: AtomicUsize::new(0),
            time_max,
            user: etcd.user.clone(),
            password: etcd.password.clone(),
            token: Mutex::new(None),
        })
    }

    /// Returns the deadline for a request that begins now.
    pub(super) fn until(&self) -> AnswerDeadline {
        AnswerDeadline {
            end: Instant::now() + self.time_max,
            is_known: false,
        }
    }

    pub(super) fn token(&self) -> Option<String> {
        self.token.lock().clone()
    }

    /// Returns all members in the order in which to try them.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (usize, &EtcdMember)> {
        let members = self.all.iter().enumerate().cycle();
        members.skip(self.first.load(Relaxed)).take(self.all.len())
    }

    /// Returns an attempt for each member.
    pub(super) fn turns(&self) -> impl Iterator<Item = MemberAttempt<'_>> {
        let others = (0..self.all.len()).rev();
        let turns = self.in_order().zip(others);
        turns.map(|((nth, member), others)| MemberAttempt {
            members: self,
            member,
            nth,
            others,
            is_answered: false,
        })
    }

    /// Sends a request to the members in turn until one answers. Not for requests that must not be
    /// repeated.
    pub(super) async fn call(
        &self,
        errand: fn(&EtcdMember) -> &HttpFetch,
        asked: &Value,
        until: AnswerDeadline,
    ) -> Result<Bytes, String> {
        let mut why = "there are no members".to_owned();
        for mut turn in self.turns() {
            let asking = self.call_one(turn.member, errand, asked);
            match timeout(until.share(&turn), asking).await {
                Ok(Ok(answer)) => {
                    turn.answered();
                    return Ok(answer);
                }
                Ok(Err(failed)) => why = failed.into_why(),
                Err(_) => why = HttpFetchError::TooSlow.to_string(),
            }
        }
        Err(why)
    }

    pub(super) async fn call_one(
        &self,
        member: &EtcdMember,
        errand: fn(&EtcdMember) -> &HttpFetch,
        asked: &Value,
    ) -> Result<Bytes, EtcdError> {
        let token = self.token();
        let had_token = token.is_some();
        let (status, body) = send(errand(member), asked, token.as_deref()).await?;
        if status == StatusCode::OK {
            return Ok(body);
        }
        let body = parse(&body).unwrap_or_default();
        let Some(password) = self
            .password
            .as_ref()
            .filter(|_| is_unknown(&body) || !had_token)
        else {
            return Err(refused(status, &body));
        };
        let who = json!({
            "name": self.user.as_deref().unwrap_or("root"),
            "password": password.expose(),
        });
        // A caller that is not authenticated has changed nothing.
        let unsent = |failed: EtcdError| EtcdError::Unsent(failed.into_why());
        let answer = send(&member.authenticate, &who, None).await;
        let (status, body) = answer.map_err(unsent)?;
        let body = parse(&body).unwrap_or_default();
        let token = body.get("token").and_then(Value::as_str).map(str::to_owned);
        let Some(token) = token.filter(|_| status == StatusCode::OK) else {
            let why = refused(status, &body).into_why();
            return Err(EtcdError::Unsent(format!("etcd rejected the login: {why}")));
        };
        *self.token.lock() = Some(token.clone());
        match send(errand(member), asked, Some(&token)).await? {
            (StatusCode::OK, body) => Ok(body),
            (status, body) => Err(refused(status, &parse(&body).unwrap_or_default())),
        }
    }
}

impl MemberAttempt<'_> {
    /// Records that the member answered, so that it is tried first from now on.
    pub(super) fn answered(&mut self) {
        self.is_answered = true;
        self.members.first.store(self.nth, Relaxed);
    }
}

impl Drop for MemberAttempt<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let first = &self.members.first;
        let next = (self.nth + 1) % self.members.all.len().max(1);
        // Unless another task has found a member that answers meanwhile.
        first
            .compare_exchange(self.nth, next, Relaxed, Relaxed)
            .ok();
    }
}

impl AnswerDeadline {
    /// Returns the deadline for further requests to a member that has answered: it does not hang, and its
    /// response may be long.
    pub(super) fn known(self) -> Self {
        Self {
            is_known: true,
            ..self
        }
    }

    /// Returns the time that a member may take.
    fn share(self, turn: &MemberAttempt<'_>) -> Duration {
        let left = self.end.saturating_duration_since(Instant::now());
        let others = u32::try_from(turn.others).unwrap_or(u32::MAX);
        let is_first = turn.others + 1 == turn.members.all.len();
        let share = if self.is_known && is_first {
            left.saturating_sub(SHARE_MIN.saturating_mul(others))
        } else {
            left / others.saturating_add(1)
        };
        share.max(SHARE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME_MAX: Duration = Duration::from_secs(9);

    fn members(count: usize) -> EtcdMembers {
        let etcd = EtcdSource {
            endpoints: vec!["http://127.0.0.1:1".to_owned(); count],
            prefix: "/t/".to_owned(),
            user: None,
            password: None,
            tls: ClientTls::default(),
        };
        EtcdMembers::new(&etcd, TIME_MAX).unwrap()
    }

    fn order(members: &EtcdMembers) -> Vec<usize> {
        members.in_order().map(|(nth, _)| nth).collect()
    }

    #[test]
    fn the_member_that_responded_last_is_tried_first() {
        let members = members(3);
        for mut turn in members.turns().take(2) {
            if turn.nth == 1 {
                turn.answered();
            }
        }
        assert_eq!(order(&members), [1, 2, 0]);
        // An attempt may be dropped before its timeout.
        drop(members.turns().next());
        assert_eq!(order(&members), [2, 0, 1]);
        let mut turns = members.turns();
        let (fails, mut answers) = (turns.next().unwrap(), turns.next().unwrap());
        answers.answered();
        drop(fails);
        assert_eq!(order(&members), [0, 1, 2], "it answers, so it stays");
    }

    #[tokio::test(start_paused = true)]
    async fn members_share_the_timeout_and_pass_on_the_rest() {
        let members = members(3);
        let until = members.until();
        let mut turns = members.turns();
        let first = turns.next().unwrap();
        assert_eq!(until.share(&first), TIME_MAX / 3);
        let known = until.known().share(&first);
        assert_eq!(known + 2 * SHARE_MIN, TIME_MAX, "it may have much to say");
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = turns.next().unwrap();
        assert_eq!(until.share(&second), Duration::from_secs(4));
        assert_eq!(until.known().share(&second), Duration::from_secs(4));
        tokio::time::advance(TIME_MAX).await;
        assert_eq!(until.share(&turns.next().unwrap()), SHARE_MIN);
    }
}
