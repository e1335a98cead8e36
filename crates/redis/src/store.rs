//! The store: buckets in Redis, shared by any number of instances.

use crate::across_slots::{self, SlotRefund, reserve};
use crate::clock::StoreClock;
use crate::deny::DenyCache;
use crate::deny::refuse::{Knowledge, invalidate, refuse};
use crate::dispatch::{AskOptions, RedisInner, Scripts, SharedOptions};
use crate::failure::store_error;
use crate::key::{HashTag, KeyNaming};
use crate::layout::{Form, Layout, OpenLayout};
use crate::request::{OwnedAsk, RequestOp, SlotAsks};
use crate::slots::{self, Groups, SlotRequest};
use crate::stats::RedisStats;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use tidegate_core::{
    Ask, Atomicity, Inspection, LimitMode, Outcome, Quota, Reply, Store, StoreError, Timestamp,
};
use tidegate_redis_client::{
    ConnectError, Connection, ConnectionSettings, RedisTopology, spawn_short,
};
use tokio::sync::watch;
use tokio::time::Instant;

/// The default size of the deny cache.
const DENY_CACHE: usize = 100_000;

/// Buckets in Redis or Valkey. Clones are cheap and share everything.
///
/// Instances with the same [`RedisOptions`] share buckets. Every decision is one call of a script, which
/// reads the server's clock; concurrent decisions travel together.
#[derive(Clone, Debug)]
pub struct RedisBuckets {
    shared: Arc<RedisInner>,
}

/// Options of the buckets: the same on every instance that shares them.
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisOptions {
    prefix: String,
    tag: HashTag,
    layout: Layout,
    deny_cache: usize,
    clock: StoreClock,
    #[cfg(feature = "test-clock")]
    script: Option<&'static str>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "tg:".to_owned(),
            tag: HashTag::default(),
            layout: Layout::default(),
            deny_cache: DENY_CACHE,
            clock: StoreClock::Server,
            #[cfg(feature = "test-clock")]
            script: None,
        }
    }
}

// === impl Options ===

impl RedisOptions {
    /// Begins every key with `prefix`. Default: `tg:`.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            ..self
        }
    }

    /// Keeps keys of a Cluster together by `tag`.
    pub fn tag(self, tag: HashTag) -> Self {
        Self { tag, ..self }
    }

    /// Keeps buckets in this form.
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// Remembers up to `buckets` that refused, and refuses without asking Redis while it would
    /// refuse too; 0 asks always.
    pub fn deny_cache(self, buckets: usize) -> Self {
        Self {
            deny_cache: buckets,
            ..self
        }
    }

    /// Takes the time from `clock` instead of the server's: for tests in virtual time.
    #[cfg(feature = "test-clock")]
    pub fn clock(self, clock: impl tidegate_core::Clock + 'static) -> Self {
        Self {
            clock: StoreClock::Argument(Arc::new(clock)),
            ..self
        }
    }

    /// Calls this script instead of its own: for tests with another version of this crate on the same
    /// Redis.
    #[cfg(feature = "test-clock")]
    pub fn script(self, script: &'static str) -> Self {
        Self {
            script: Some(script),
            ..self
        }
    }

    /// Returns the scripts for the layout and the clock.
    fn to_scripts(&self) -> Scripts {
        let own = Scripts::new(self.clock.variant(), &self.layout);
        #[cfg(feature = "test-clock")]
        if let Some(script) = self.script {
            return Scripts {
                general: tidegate_redis_client::Script::new("general", script.to_owned()),
                ..own
            };
        }
        own
    }
}

// === impl RedisBuckets ===

impl RedisBuckets {
    /// Connects to Redis.
    ///
    /// # Errors
    ///
    /// Redis is unreachable, rejects the credentials, or is too old.
    pub async fn connect(
        settings: ConnectionSettings,
        options: RedisOptions,
    ) -> Result<Self, ConnectError> {
        let scripts = options.to_scripts();
        let timeout = settings.timeout;
        let connection = Connection::open(settings, scripts.to_vec()).await?;
        Ok(Self::new(connection, scripts, options, timeout))
    }

    /// Connects in the background. Until then, every decision is an error.
    ///
    /// # Errors
    ///
    /// The settings can never work: there is no address, or a certificate cannot be read.
    pub fn start(
        settings: ConnectionSettings,
        options: RedisOptions,
    ) -> Result<Self, ConnectError> {
        let scripts = options.to_scripts();
        let timeout = settings.timeout;
        let connection = Connection::start(settings, scripts.to_vec())?;
        Ok(Self::new(connection, scripts, options, timeout))
    }

    /// Assembles the store, and clears the deny cache whenever the connection changes.
    fn new(
        connection: Connection,
        scripts: Scripts,
        options: RedisOptions,
        timeout: std::time::Duration,
    ) -> Self {
        connection.probe_with(format!("{}probe", options.prefix));
        let options = SharedOptions {
            clock: options.clock,
            naming: {
                let naming = KeyNaming::new(&options.prefix, options.tag);
                naming.set_layout(options.layout);
                naming
            },
            deny_cache: options.deny_cache,
            timeout,
        };
        let shared = Arc::new(RedisInner::new(connection, scripts, options));
        let changes = shared.connection.changes();
        spawn_short(forget_on_change(Arc::downgrade(&shared), changes));
        Self { shared }
    }

    /// Waits until the first attempt to connect has ended, and returns its result.
    pub async fn settled(&self) -> Result<(), StoreError> {
        self.connection().settled().await.map_err(store_error)
    }

    /// Returns the connection, for other commands.
    pub fn connection(&self) -> &Connection {
        &self.shared.connection
    }

    /// Returns the counters of this store.
    pub fn stats(&self) -> &RedisStats {
        &self.shared.stats
    }

    /// The beginning of all keys.
    pub fn prefix(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.shared.naming.prefix())
    }

    /// The name of a bucket's key in the packed layout.
    pub fn key(&self, bucket: &[u8]) -> Vec<u8> {
        self.shared.naming.packed(bucket).to_vec()
    }

    /// The name of the key that a bucket's band is kept under in this store's layout and, if that
    /// key is a hash for many, its field there.
    pub fn place(&self, bucket: &[u8], quota: &Quota) -> (Vec<u8>, Option<Vec<u8>>) {
        let naming = &self.shared.naming;
        let key = naming.key(bucket, quota);
        let key = naming.name(&key);
        let field = (key.form == Form::Window).then(|| key.field.to_vec());
        (key.name.to_vec(), field)
    }

    /// Names keys of the open layout by `layout` from now on: before a policy that it knows takes
    /// effect. Does nothing in a store whose layout is packed.
    pub fn rename(&self, layout: OpenLayout) {
        if self.shared.scripts.is_open {
            self.shared.naming.set_layout(Layout::Open(layout));
        }
    }

    /// A "no" that Redis would also give.
    fn refuse_here(&self, groups: &Groups, now: Instant) -> Option<Reply> {
        let deny = &self.shared.deny;
        let reply = match groups.as_slice() {
            _ if deny.is_empty() => None,
            [group] => refuse(deny, &group.request, now),
            groups => refuse_groups(deny, groups, now),
        }?;
        self.shared.stats.refused_here.add(1);
        Some(reply)
    }

    /// One bucket, outside a decision.
    fn single(&self, bucket: &[u8], quota: &Quota, op: RequestOp) -> SlotAsks {
        let mut request = SlotAsks::default();
        request.keys.push(self.shared.naming.key(bucket, quota));
        request.asks.push(OwnedAsk {
            key: 0,
            quota: *quota,
            op,
            limit: 0,
            mode: LimitMode::Enforce,
        });
        request
    }
}

impl Store for RedisBuckets {
    fn timeout(&self) -> Option<std::time::Duration> {
        Some(self.shared.timeout)
    }

    fn atomicity(&self) -> Atomicity {
        if *self.shared.connection.mode() != RedisTopology::Cluster {
            return Atomicity::WholeRequest;
        }
        if self.shared.scripts.is_open || self.shared.naming.tag() == HashTag::Subject {
            return Atomicity::PerSubject;
        }
        Atomicity::PerPolicy
    }

    fn present(&self) -> Option<Timestamp> {
        self.shared.clock.argument()
    }

    fn refund(&self, asks: &[Ask<'_>]) {
        let Ok(groups) = slots::groups(&self.shared, asks) else {
            return;
        };
        let refunds = groups
            .into_iter()
            .map(|SlotRequest { slot, request, .. }| SlotRefund { slot, request });
        across_slots::start(refunds, &self.shared);
    }

    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        let now = Instant::now();
        let mut groups = slots::groups(&self.shared, asks)?;
        if let Some(reply) = self.refuse_here(&groups, now) {
            return Ok(reply);
        }
        for group in &groups {
            invalidate(&self.shared.deny, &group.request, now);
        }
        let options = AskOptions {
            now,
            deadline: now + self.shared.timeout,
            wants_before: groups.len() > 1,
        };
        if groups.len() > 1 {
            return reserve(&self.shared, groups, options).await;
        }
        let Some(group) = groups.pop() else {
            // The request has no asks.
            return Ok(Reply::new(Timestamp::default(), true));
        };
        let pending = self.shared.send(group.slot, group.request, options)?;
        Ok(pending.answer().await?.reply)
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        if quota.algorithm().is_concurrent() {
            return Err(StoreError::no_permits());
        }
        let request = self.single(bucket, quota, RequestOp::Inspect);
        self.shared.look(&request).await
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        if quota.algorithm().is_concurrent() {
            return Err(StoreError::no_permits());
        }
        let request = self.single(bucket, quota, RequestOp::Drop);
        let was_there = self.shared.look(&request).await?.is_some();
        if let Some(key) = request.keys.first() {
            self.shared.deny.forget(key, quota);
        }
        Ok(was_there)
    }
}

/// Clears the deny cache whenever the connection changes, because the state may differ: after a failover,
/// a restart, a changed topology.
async fn forget_on_change(shared: std::sync::Weak<RedisInner>, mut changes: watch::Receiver<u64>) {
    while changes.changed().await.is_ok() {
        match shared.upgrade() {
            Some(shared) => shared.deny.clear(),
            None => return,
        }
    }
}

/// Refuses a request on several slots, if Redis would.
fn refuse_groups(deny: &DenyCache, groups: &[SlotRequest], now: Instant) -> Option<Reply> {
    let mut placed: SmallVec<[(u16, Outcome); 8]> = SmallVec::new();
    let mut all = Knowledge::default();
    for group in groups {
        let known = Knowledge::of(deny, &group.request, now)?;
        all.and(&known);
        placed.extend(group.places.iter().copied().zip(known.outcomes));
    }
    placed.sort_by_key(|(place, _)| *place);
    all.is_free_refusal().then(|| {
        let outcomes = placed.into_iter().map(|(_, outcome)| outcome);
        Reply::unchanged(all.at, false, outcomes.collect())
    })
}
