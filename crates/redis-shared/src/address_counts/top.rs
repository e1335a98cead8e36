//! The largest counts of a map.

use super::OTHER;
use crate::foreign_keys;
use crate::sets::{ScanStep, ScanVerb, SetScan};
use tidegate_redis_client::protocol::{self, Value};
use tidegate_redis_client::{CallError, Connection, NodeChoice};

/// The number of names held beyond the wanted ones before the smallest are dropped.
const SPARE: usize = 1_000;

pub(super) async fn top(
    connection: &Connection,
    key: &[u8],
    n: usize,
) -> Result<Vec<(Vec<u8>, u64)>, CallError> {
    let mut largest = Vec::new();
    let mut walk = SetScan::new(connection, ScanVerb::Hash, key);
    loop {
        match walk.next().await? {
            ScanStep::Found(found) => largest.extend(read(found)),
            ScanStep::Again => largest.clear(),
            ScanStep::End => break,
        }
        if largest.len() > n.saturating_mul(2).saturating_add(SPARE) {
            keep(&mut largest, n);
        }
    }
    keep(&mut largest, n);
    Ok(largest)
}

/// The number of names read by one command.
const AT_ONCE: usize = 1_000;

/// The counts of `names`, in their order; 0 for those that have none, or no number.
pub(super) async fn counts<N: AsRef<[u8]>>(
    connection: &Connection,
    key: &[u8],
    names: &[N],
) -> Result<Vec<u64>, CallError> {
    let mut counts = Vec::with_capacity(names.len());
    for some in names.chunks(AT_ONCE) {
        let mut command = protocol::cmd("HMGET");
        command.arg(key);
        for name in some {
            command.arg(name.as_ref());
        }
        let reply = connection.command(NodeChoice::Key(key), &command).await;
        let reply = reply.map_err(|error| foreign_keys::named(error, key, "hash"))?;
        let Value::Array(found) = reply else {
            return Err(CallError::malformed(
                "unexpected reply: expected a count for each name",
            ));
        };
        counts.extend(found.iter().map(|count| match count {
            Value::BulkString(text) => foreign_keys::number(text).unwrap_or_default(),
            _ => 0,
        }));
    }
    Ok(counts)
}

/// Fields and values in turn.
fn read(found: Vec<Vec<u8>>) -> impl Iterator<Item = (Vec<u8>, u64)> {
    let mut found = found.into_iter();
    std::iter::from_fn(move || Some((found.next()?, found.next()?)))
        .filter(|(name, _)| name != OTHER.as_bytes())
        .filter_map(|(name, value)| Some((name, foreign_keys::number(&value)?)))
}

/// The `n` largest, largest first. Of a name that was seen twice, the larger count, for counts grow.
fn keep(counts: &mut Vec<(Vec<u8>, u64)>, n: usize) {
    counts.sort_unstable_by(|(a, x), (b, y)| a.cmp(b).then(y.cmp(x)));
    counts.dedup_by(|(a, _), (b, _)| a == b);
    counts.sort_unstable_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
    counts.truncate(n);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_name_is_kept_once_with_its_larger_count() {
        let of = |names: &[(&str, u64)]| -> Vec<(Vec<u8>, u64)> {
            let names = names.iter();
            names
                .map(|(name, count)| (name.as_bytes().to_vec(), *count))
                .collect()
        };
        let mut counts = of(&[("a", 1), ("b", 9), ("c", 5), ("a", 7), ("d", 5), ("b", 8)]);
        keep(&mut counts, 3);
        assert_eq!(counts, of(&[("b", 9), ("a", 7), ("c", 5)]));
    }
}
