//! The secret of all instances that share a store: `<prefix>seal`.

use crate::failure::store_error;
use std::time::Duration;
use tidegate_core::{StoreError, StoreErrorKind};
use tidegate_redis_client::protocol::Value;
use tidegate_redis_client::{CallError, Connection, Script};
use tokio::time::timeout;

/// Returns the stored secret, else the proposal, and extends its lifetime to a day. Uses only commands
/// that decisions need as well, so that no further permission is needed.
const AGREE: &str = "\
local secret = redis.call('GET', KEYS[1])
if not secret or #secret ~= 32 then secret = ARGV[1] end
redis.call('SET', KEYS[1], secret, 'PX', 86400000)
return secret";

/// Returns the secret that is kept under `key`, or `proposal`, which is kept from now on. Fails after
/// `time`.
pub(crate) async fn agree(
    connection: &Connection,
    key: &[u8],
    proposal: [u8; 32],
    time: Duration,
) -> Result<[u8; 32], StoreError> {
    let script = Script::new("agree", AGREE.to_owned());
    let (keys, args) = ([key], [proposal]);
    let asked = connection.evalsha(&script, &keys, &args);
    match timeout(time, asked).await {
        Ok(Ok(Value::BulkString(secret))) => secret.try_into().map_err(|_| {
            store_error(CallError::malformed(
                "unexpected reply: expected a secret \
                of 32 bytes",
            ))
        }),
        Ok(Ok(_)) => Err(store_error(CallError::malformed(
            "unexpected reply: expected a secret",
        ))),
        Ok(Err(error)) => Err(store_error(error)),
        Err(_) => {
            let message = format!("Redis did not answer within {time:?}");
            Err(StoreError::transient(message).with_kind(StoreErrorKind::Timeout))
        }
    }
}
