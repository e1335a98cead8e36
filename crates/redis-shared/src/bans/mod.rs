//! A set of whom to refuse, some of them only until their ban ends.
//!
//! The set may have other writers: people add and remove members by hand, and every member is banned. The
//! end of a ban that we made is kept in the sorted set `{SET}:until`, in Unix milliseconds on the
//! server's clock. A member without an entry there stays until an operator removes it.

use crate::foreign_keys;
use crate::same_slot::key_in_same_slot;
use crate::sets::{LoadError, ScanStep, ScanVerb, SetScan, within};
use std::time::Duration;
use tidegate_redis_client::protocol::{self, Value};
use tidegate_redis_client::{CallError, Connection, NodeChoice, Script};

/// The number of members in one call of a script: about a millisecond of the server's time.
const AT_ONCE: usize = 1_000;

/// The most calls of one `expire`. If the set fills faster than that, the rest waits for the next one.
const CALLS_MAX: usize = 10_000;

/// Bans in a Redis set.
///
/// Every call is one or several scripts that do all or nothing, by the server's clock; set and ends
/// share a slot. After an error every method may be called again.
///
/// # Examples
///
/// ```no_run
/// # async fn example(connection: tidegate_redis_client::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tidegate_redis_shared::Bans;
///
/// let bans = Bans::new(connection, "BlacklistIPsSet");
/// let hour = Duration::from_secs(3_600);
/// let new = bans.ban(&["192.0.2.1"], Some(hour)).await?;
/// assert_eq!(new, [b"192.0.2.1"]);
/// // At every refresh:
/// let lifted = bans.expire().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Bans {
    connection: Connection,
    /// The set, and the ends.
    keys: [Vec<u8>; 2],
    ban: Script,
    expire: Script,
    unban: Script,
}

impl Bans {
    /// Bans in the set of this name. If it has a hash tag, its companion has the same.
    pub fn new(connection: Connection, set: impl Into<Vec<u8>>) -> Self {
        let set = set.into();
        let ends = key_in_same_slot(&set, ":until");
        Self {
            connection,
            keys: [set, ends],
            ban: foreign_keys::script("ban", include_str!("ban.lua")),
            expire: foreign_keys::script("expire", include_str!("expire.lua")),
            unban: foreign_keys::script("unban", include_str!("unban.lua")),
        }
    }

    /// The key of the set.
    pub fn set(&self) -> &[u8] {
        let [set, _] = &self.keys;
        set
    }

    /// The key of the sorted set with the ends.
    pub fn until(&self) -> &[u8] {
        let [_, ends] = &self.keys;
        ends
    }

    /// Bans members for `length`, or permanently. Returns the ones that were not banned before. (If it is
    /// called again after an error, it does not return those that it has banned already.)
    ///
    /// With a length: a new member gets an end, and a member that has one keeps the later of both. A
    /// member without an end was added by hand, or permanently, and stays so. Without a length: a member
    /// that has an end loses it.
    ///
    /// Redis does not report that a member which we have banned for a while was also added by hand. That
    /// ban still ends, and [`Bans::ban`] with `None` (or `ZREM {SET}:until MEMBER`) makes it permanent.
    /// The same holds for a member that is removed and added by hand with no [`Bans::expire`] in between.
    pub async fn ban<M: AsRef<[u8]>>(
        &self,
        members: &[M],
        length: Option<Duration>,
    ) -> Result<Vec<Vec<u8>>, CallError> {
        let length = length.map_or_else(|| "ever".to_owned(), foreign_keys::millis);
        let mut new = Vec::new();
        for some in members.chunks(AT_ONCE) {
            let mut args = vec![length.as_bytes()];
            args.extend(some.iter().map(AsRef::as_ref));
            let reply = self.connection.evalsha(&self.ban, &self.keys, &args);
            new.extend(foreign_keys::strings(reply.await?)?);
        }
        Ok(new)
    }

    /// Removes the members whose ban has ended, and returns them. If several instances do this at the
    /// same time, each member is returned to one of them. Also forgets the ends of members that were
    /// removed by hand, so that they have none when they are added by hand again.
    ///
    /// Works on a thousand members at a time, so that no call keeps the server busy for long. After an
    /// error, the members removed so far are not returned.
    pub async fn expire(&self) -> Result<Vec<Vec<u8>>, CallError> {
        self.remove_ended(b"0").await
    }

    /// Does the same without looking for ends of members that were removed by hand, which takes a step
    /// for each end. For many instances, one of which does the whole.
    pub async fn expire_ended(&self) -> Result<Vec<Vec<u8>>, CallError> {
        self.remove_ended(b"").await
    }

    async fn remove_ended(&self, from: &[u8]) -> Result<Vec<Vec<u8>>, CallError> {
        let count = AT_ONCE.to_string().into_bytes();
        let mut cursor = from.to_vec();
        let mut lifted = Vec::new();
        for _ in 0..CALLS_MAX {
            let args = [&cursor, &count];
            let reply = self.connection.evalsha(&self.expire, &self.keys, &args);
            let mut reply = foreign_keys::strings(reply.await?)?.into_iter();
            let (Some(more), Some(next)) = (reply.next(), reply.next()) else {
                return Err(CallError::malformed(
                    "unexpected reply: expected the unbanned \
                    addresses",
                ));
            };
            lifted.extend(reply);
            cursor = next;
            if more == b"0" && cursor.is_empty() {
                break;
            }
        }
        Ok(lifted)
    }

    /// Removes a member, whether we or an operator banned it. Returns true if it was banned.
    pub async fn unban(&self, member: impl AsRef<[u8]>) -> Result<bool, CallError> {
        let args = [member];
        let reply = self.connection.evalsha(&self.unban, &self.keys, &args);
        match reply.await? {
            Value::Int(count) => Ok(count > 0),
            _ => Err(CallError::malformed("unexpected reply: expected a count")),
        }
    }

    /// Returns the members whose ban has an end, and the time that it still lasts by the server's clock;
    /// zero for those about to be removed. Other members stay until an operator removes them.
    ///
    /// A member may be returned more than once, and one that was removed by hand is still returned until
    /// the next [`Bans::expire`]. At most `max`, and within `time`, as
    /// [`RedisSets::members`](crate::RedisSets::members).
    pub async fn ends(
        &self,
        max: usize,
        time: Duration,
    ) -> Result<Vec<(Vec<u8>, Duration)>, LoadError> {
        within(time, self.collect(max)).await
    }

    async fn collect(&self, max: usize) -> Result<Vec<(Vec<u8>, Duration)>, LoadError> {
        let now = self.now().await?;
        let mut ends = Vec::new();
        let mut walk = SetScan::new(&self.connection, ScanVerb::Sorted, self.until());
        loop {
            match walk.next().await? {
                ScanStep::Found(found) => ends.extend(read_ends(found, now)),
                ScanStep::Again => ends.clear(),
                ScanStep::End => return Ok(ends),
            }
            if ends.len() > max {
                ends.sort_unstable();
                ends.dedup_by(|a, b| a.0 == b.0);
            }
            if ends.len() > max {
                return Err(LoadError::too_many(self.until(), max));
            }
        }
    }

    /// The server's clock, in milliseconds.
    async fn now(&self) -> Result<u64, CallError> {
        let command = protocol::cmd("TIME");
        let time = self
            .connection
            .command(NodeChoice::Key(self.set()), &command);
        let time = foreign_keys::strings(time.await?)?;
        let [seconds, micros] = time.as_slice() else {
            return Err(CallError::malformed("unexpected reply: expected a time"));
        };
        let (seconds, micros) = (foreign_keys::number(seconds), foreign_keys::number(micros));
        let now = seconds.zip(micros).map(|(seconds, micros)| {
            let millis = seconds.saturating_mul(1_000);
            millis.saturating_add(micros / 1_000)
        });
        now.ok_or_else(|| CallError::malformed("unexpected reply: expected a time"))
    }
}

/// Members and scores in turn. A score that was written by hand and is no instant, such as `inf`, is
/// skipped.
fn read_ends(found: Vec<Vec<u8>>, now: u64) -> Vec<(Vec<u8>, Duration)> {
    let mut ends = Vec::with_capacity(found.len() / 2);
    let mut found = found.into_iter();
    while let (Some(member), Some(score)) = (found.next(), found.next()) {
        if let Some(end) = instant(&score) {
            ends.push((member, Duration::from_millis(end.saturating_sub(now))));
        }
    }
    ends
}

/// A score as milliseconds; `None` where no instant is so late, or none is meant.
fn instant(score: &[u8]) -> Option<u64> {
    if !score.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return foreign_keys::number(score.split(|byte| *byte == b'.').next()?);
    }
    // Some write large numbers so, and round ones: `1.7e+12`.
    let millis: f64 = std::str::from_utf8(score).ok()?.parse().ok()?;
    let since = Duration::try_from_secs_f64(millis / 1_000.0).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_score_is_no_ban_end() {
        let words = [
            "a", "1700", "b", "inf", "c", "1500.75", "d", "-3", "e", "900",
        ];
        let found = words.map(|word| word.as_bytes().to_vec()).to_vec();
        let left = |millis| Duration::from_millis(millis);
        let expected = [("a", left(700)), ("c", left(500)), ("e", left(0))];
        let expected = expected.map(|(member, left)| (member.as_bytes().to_vec(), left));
        assert_eq!(read_ends(found, 1_000), expected);
    }

    #[test]
    fn a_score_with_an_exponent_was_read_as_an_expired_ban() {
        let end = |score: &str| instant(score.as_bytes());
        assert_eq!(end("1.7e+12"), Some(1_700_000_000_000));
        assert_eq!(end("1E3"), Some(1_000));
        assert_eq!(end("1.5e-05"), Some(0));
        for score in ["1.5e+30", "-1.7e+12", "1e999", "e", "1e"] {
            assert_eq!(end(score), None, "{score}");
        }
    }
}
