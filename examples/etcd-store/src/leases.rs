//! Leases that many keys share, so that a write seldom needs a new one.

use crate::client::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::StoreError;
use tokio::time::Instant;

/// The leases in use, by their length in seconds: a power of two, so that there are few.
#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<BTreeMap<u64, Lease>>);

#[derive(Clone, Debug)]
struct Lease {
    id: String,
    ends: Instant,
}

impl Leases {
    /// Returns the id of a lease that lasts for at least `time` from now, and at most four times as long.
    pub(crate) async fn at_least(
        &self,
        client: &Client,
        time: Duration,
    ) -> Result<String, StoreError> {
        let seconds = time.as_secs().saturating_add(1);
        // Twice as long as it has to: half of its time it can be shared.
        let length = seconds.saturating_mul(2).checked_next_power_of_two();
        let length = length.unwrap_or(u64::MAX >> 1);
        let now = Instant::now();
        let known = self.0.lock().get(&length).cloned();
        if let Some(lease) = known.filter(|it| it.ends.saturating_duration_since(now) >= time) {
            return Ok(lease.id);
        }
        let grant = json!({ "TTL": length.to_string() });
        let granted = client.call("lease/grant", &grant).await?;
        let id = granted.get("ID").and_then(Value::as_str);
        let id = id.ok_or_else(|| StoreError::permanent("etcd granted a lease without an id"))?;
        if let Some(ends) = now.checked_add(Duration::from_secs(length)) {
            let id = id.to_owned();
            self.0.lock().insert(length, Lease { id, ends });
        }
        Ok(id.to_owned())
    }

    /// Grants new leases from now on.
    pub(crate) fn forget(&self) {
        self.0.lock().clear();
    }
}
