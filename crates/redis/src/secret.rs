//! A secret that all instances have in common who share the store: `<prefix>seal`.

use crate::error::CallError;
use crate::script::Script;
use crate::shared::RedisInner;
use redis::Value;
use tidegate_core::StoreError;
use tokio::time::timeout;

/// The secret that is there, else the proposal; kept for a day more each time that somebody asks. By
/// commands that decisions need as well, so that no further rights do.
const AGREE: &str = "\
local secret = redis.call('GET', KEYS[1])
if not secret or #secret ~= 32 then secret = ARGV[1] end
redis.call('SET', KEYS[1], secret, 'PX', 86400000)
return secret";

/// What is kept, or `proposal` from now on. Takes no longer than a decision may.
pub(crate) async fn agree(shared: &RedisInner, proposal: [u8; 32]) -> Result<[u8; 32], StoreError> {
    let script = Script::new("agree", AGREE.to_owned());
    let mut key = shared.naming.prefix().to_vec();
    key.extend_from_slice(b"seal");
    let keys = [key];
    let args = [proposal];
    let asked = shared.connection.evalsha(&script, &keys, &args);
    match timeout(shared.timeout, asked).await {
        Ok(Ok(Value::BulkString(secret))) => secret
            .try_into()
            .map_err(|_| CallError::malformed("a secret of 32 bytes was expected").into()),
        Ok(Ok(_)) => Err(CallError::malformed("a secret was expected").into()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(shared.too_late()),
    }
}
