//! `DEL`, `UNLINK`, `EXISTS`, `TYPE`, `TTL` and `PTTL` of the keys that `CL.THROTTLE` uses.
//!
//! Keys of policies are not reachable here: every key names a bucket of `CL.THROTTLE`.

use super::check;
use super::command::CommandKind;
use super::parse::RespCommand;
use super::reply::Replies;
use crate::decider::Decider;
use futures_util::future::try_join_all;
use std::time::Duration;
use tidegate::{CheckError, Rules, Store};

/// The number of keys of one command that the store looks up at a time.
const AT_ONCE: usize = 64;

/// A reply, before it is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyReply {
    Count(u64),
    Type {
        exists: bool,
    },
    /// Seconds or milliseconds.
    Left(Option<u64>),
}

/// Executes a command of one of these kinds.
pub(super) async fn answer<S: Store>(
    decider: &Decider<S>,
    rules: &Rules,
    (kind, command): (CommandKind, RespCommand<'_>),
) -> Result<KeyReply, CheckError> {
    let left = async |key| decider.throttle_reset_after(rules, key).await;
    let key = command.word(1);
    Ok(match kind {
        CommandKind::Type => KeyReply::Type {
            exists: left(key).await?.is_some(),
        },
        CommandKind::Ttl => KeyReply::Left(left(key).await?.map(|left| whole(left, 1_000_000))),
        CommandKind::Pttl => KeyReply::Left(left(key).await?.map(|left| whole(left, 1_000))),
        _ => {
            let keys: Vec<_> = command.words().skip(1).collect();
            let mut count = 0_u64;
            for keys in keys.chunks(AT_ONCE) {
                let counting = keys.iter().map(async |key| match kind {
                    CommandKind::Exists => Ok(left(key).await?.is_some()),
                    _ => decider.reset_throttle(rules, key).await,
                });
                let counted = try_join_all(counting).await?;
                let found = counted.into_iter().filter(|found| *found).count();
                count = count.saturating_add(u64::try_from(found).unwrap_or(u64::MAX));
            }
            KeyReply::Count(count)
        }
    })
}

/// Rounds up to units of this many microseconds, like `CL.THROTTLE`: an existing key has a time of at least
/// 1.
fn whole(left: Duration, unit_us: u128) -> u64 {
    u64::try_from(left.as_micros().div_ceil(unit_us)).unwrap_or(u64::MAX)
}

pub(super) fn write(found: &Result<KeyReply, CheckError>, replies: &mut Replies) {
    match found {
        Ok(KeyReply::Count(count)) => replies.natural(*count),
        // The type of redis-cell's keys: programs that check it see no difference.
        Ok(KeyReply::Type { exists: true }) => replies.simple("string"),
        Ok(KeyReply::Type { exists: false }) => replies.simple("none"),
        Ok(KeyReply::Left(Some(left))) => replies.natural(*left),
        Ok(KeyReply::Left(None)) => replies.integer(-2),
        Err(error) => check::write_error(error, replies),
    }
}
