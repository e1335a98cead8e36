//! Building a limiter with the store that the configuration names, in memory or across the network.

use super::{LimiterBuilder, memory};
use crate::any_store::AnyStore;
use crate::error::BuildError;
use crate::limiter::Limiter;
use crate::naming::BucketRenamer;
use crate::snapshot::{OpenedSnapshot, SourceOf};
#[cfg(feature = "config")]
use tidegate_config::Config;
use tidegate_core::{Clock, StoreError};
use tidegate_policy::Policy;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::store::{LocalShare, StoreSettings};

/// An opened store, reachable or not.
struct OpenedStore<C> {
    store: AnyStore<C>,
    /// The reason why it is not reachable yet.
    late: Option<StoreError>,
    /// Present if the store names buckets by their policies.
    naming: Option<BucketRenamer>,
    /// Present if the store is in memory and has a snapshot.
    snapshot: Option<OpenedSnapshot>,
}

impl<C: Clock + Clone + 'static> LimiterBuilder<C> {
    /// Builds the limiter with its buckets in the store that [`store_url`](Self::store_url) or the
    /// configuration names.
    ///
    /// # Errors
    ///
    /// [`BuildError::Unreachable`] if the store cannot be reached; other errors if the settings are invalid.
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use tidegate::{Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .yaml("policies: [{ name: api, limits: [{ name: everyone, rate: 10/s }] }]")?
    ///     .connect()
    ///     .await?;
    /// assert!(limiter.check(&Request::new()).await?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn connect(self) -> Result<Limiter<AnyStore<C>>, BuildError> {
        let mut opened = self.open().await?;
        match opened.late.take() {
            Some(source) => Err(BuildError::Unreachable { source }),
            None => {
                let limiter = self.over(opened)?;
                limiter.load_lists().await;
                Ok(limiter)
            }
        }
    }

    /// Builds the limiter with its buckets in the store that [`store_url`](Self::store_url) or the
    /// configuration names. If the store cannot be reached, that is logged once, `on_failure` applies, and
    /// the limiter uses the store as soon as it is reachable.
    ///
    /// With `store.redis.required` in the configuration, this is [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// If the settings are invalid.
    pub async fn start(self) -> Result<Limiter<AnyStore<C>>, BuildError> {
        let store = self.store_settings();
        let redis = store.and_then(|store| store.target.redis());
        if redis.is_some_and(|redis| redis.required_at_start) {
            return self.connect().await;
        }
        let opened = self.open().await?;
        let limiter = self.over(opened)?;
        limiter.load_lists().await;
        Ok(limiter)
    }

    async fn open(&self) -> Result<OpenedStore<C>, BuildError> {
        match self.store_settings() {
            Some(store) if !store.target.is_memory() => {
                #[cfg(feature = "config")]
                let named = (
                    self.config.as_ref().map_or(&[][..], |it| &it.policies),
                    self.config
                        .as_ref()
                        .map(Config::key_rules)
                        .unwrap_or_default(),
                );
                #[cfg(not(feature = "config"))]
                let named = (&[][..], KeyRules::default());
                let share = self.overrides.local_share.unwrap_or(store.local_share);
                let is_listed = self.is_listed || share == LocalShare::Auto;
                open_shared(store, named, is_listed).await
            }
            _ => {
                let settings = self.snapshot_settings();
                let (store, snapshot) = memory(self.clock.clone(), self.keys(), settings.as_ref())?;
                Ok(OpenedStore {
                    store: AnyStore::Memory(store),
                    late: None,
                    naming: None,
                    snapshot,
                })
            }
        }
    }

    fn over(mut self, opened: OpenedStore<C>) -> Result<Limiter<AnyStore<C>>, BuildError> {
        self.naming = opened.naming;
        let snapshot = (opened.snapshot, AnyStore::snapshot_source as SourceOf<_>);
        let limiter = self.build_over(opened.store, snapshot)?;
        if let Some(error) = opened.late {
            limiter.note_store(Err(&error));
        }
        Ok(limiter)
    }
}

/// Opens the network store that `store` names, for buckets of `policies` that are named by `keys`. If
/// `is_listed`, notifies the other instances that share it of this one.
#[cfg(feature = "redis")]
async fn open_shared<C>(
    store: &StoreSettings,
    (policies, keys): (&[Policy], KeyRules),
    is_listed: bool,
) -> Result<OpenedStore<C>, BuildError> {
    use crate::redis::{self, RedisStore};

    let (settings, options) = redis::settings(store, policies, &keys)?;
    let started = RedisStore::start(settings, options);
    let store = started.map_err(|error| BuildError::Unreachable {
        source: tidegate_redis::store_error(error),
    })?;
    let late = store.buckets().settled().await.err();
    if is_listed {
        store.list_instance();
    }
    let renamed = store.buckets().clone();
    let rename = move |policies: &[Policy], keys: &KeyRules| {
        renamed.rename(redis::open_layout(policies, keys));
    };
    Ok(OpenedStore {
        late,
        naming: Some(BucketRenamer::new(rename)),
        store: AnyStore::Redis(store),
        snapshot: None,
    })
}

/// Fails: there is no network store without the feature.
#[cfg(not(feature = "redis"))]
#[expect(clippy::unused_async, reason = "with the feature, it waits")]
async fn open_shared<C>(
    store: &StoreSettings,
    _named: (&[Policy], KeyRules),
    _is_listed: bool,
) -> Result<OpenedStore<C>, BuildError> {
    Err(BuildError::Store {
        url: store.target.to_string(),
    })
}
