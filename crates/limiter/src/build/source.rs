//! The sources of a limiter's settings: a configuration, its environment, and the store.

use super::LimiterBuilder;
#[cfg(feature = "config")]
use crate::error::BuildError;
#[cfg(feature = "config")]
use crate::overrides::ConfiguredEnvironment;
#[cfg(feature = "config")]
use std::path::Path;
#[cfg(feature = "config")]
use tidegate_config::{Config, Environment};
use tidegate_core::Clock;
use tidegate_policy::store::StoreSettings;

impl<C: Clock> LimiterBuilder<C> {
    /// Sets the environment in which calls of [`yaml`](Self::yaml) and [`file`](Self::file) *after this one*
    /// look up variables and the files that hold secrets, keys, certificates and tokens.
    /// [`Limiter::reload_file`](crate::Limiter::reload_file) uses the environment that was set last.
    ///
    /// By default, a file is read like the program `tidegate` reads it ([`ProcessEnvironment`](crate::ProcessEnvironment)), and for text
    /// nothing is looked up ([`NoEnvironment`](crate::NoEnvironment)). A function from names to values is an environment of
    /// variables without files.
    ///
    /// ```
    /// use tidegate::{Limiter, NoEnvironment};
    ///
    /// let text = "policies: [{ name: api, limits: [{ name: all, rate: '${RATE}' }] }]";
    /// let variables = |name: &str| (name == "RATE").then(|| "10/s".to_owned());
    /// let limiter = Limiter::builder().environment(variables).yaml(text)?.build()?;
    ///
    /// // Untrusted text must not read the variables of this process, or its files.
    /// assert!(Limiter::builder().environment(NoEnvironment).yaml(text).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "config")]
    pub fn environment(mut self, environment: impl Environment + Send + Sync + 'static) -> Self {
        self.overrides.environment = ConfiguredEnvironment::new(environment);
        self
    }

    /// Uses the policies and the client and store settings of `config`, in place of an earlier configuration.
    /// For programs that parse and inspect a configuration first.
    ///
    /// ```
    /// use tidegate::{Config, Limiter};
    ///
    /// let config = Config::from_yaml("policies: [{ name: api, limits: [{ name: all, rate: 10/s }] }]")?;
    /// assert_eq!(config.policies.len(), 1);
    /// let limiter = Limiter::builder().config(config).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "config")]
    pub fn config(self, config: Config) -> Self {
        Self {
            config: Some(config),
            ..self
        }
    }

    /// Uses a configuration in YAML or JSON, in place of an earlier one. Nothing is looked up unless an
    /// [`environment`](Self::environment) was set.
    ///
    /// # Errors
    ///
    /// [`BuildError::Config`] if the text is invalid. It lists all mistakes, each with its line and an
    /// excerpt.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{BuildError, Limiter};
    ///
    /// let text = "policies: [{ name: api, limits: [{ name: all, rte: 10/s }] }]";
    /// let Err(error) = Limiter::builder().yaml(text) else { panic!("`rte` is no field of a limit") };
    /// assert!(error.to_string().contains("`rate`"), "{error}");
    /// # Ok::<(), BuildError>(())
    /// ```
    #[cfg(feature = "config")]
    pub fn yaml(self, text: &str) -> Result<Self, BuildError> {
        let config = Config::parse(text, "configuration", self.overrides.environment.of_text())?;
        Ok(self.config(config))
    }

    /// Uses a configuration file. The variables and files that it names are looked up in this process unless
    /// an [`environment`](Self::environment) was set.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`] if the file cannot be read, [`BuildError::Config`] if it is invalid.
    #[cfg(feature = "config")]
    pub fn file(self, path: impl AsRef<Path>) -> Result<Self, BuildError> {
        let config = self.overrides.config(path.as_ref())?;
        Ok(self.config(config))
    }

    /// Sets the store and its connection settings, *in place of* the whole `store` section of the
    /// configuration. For limits in code, which have no configuration:
    ///
    /// ```
    /// use tidegate::{KeyPart, LimitSpec, Limiter, NoEnvironment};
    ///
    /// let text = "{ url: 'redis://db:6379', redis: { prefix: 'shop:' }, timeout: 5ms }";
    /// let builder = Limiter::builder()
    ///     .limit(LimitSpec::new("per-user").key(KeyPart::User).band("100/min"))
    ///     .store(tidegate::store_from_yaml(text, &NoEnvironment)?);
    /// // builder.start().await?
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn store(mut self, store: StoreSettings) -> Self {
        self.overrides.store = Some(store);
        self
    }

    /// Sets the store, as `store.url` is written in a configuration: `memory`, `redis://HOST`,
    /// `rediss+sentinel://A,B/MASTER` and so on. All other store settings take their defaults, *in place of*
    /// those of the configuration; [`store`](Self::store) sets them too.
    ///
    /// A store across the network needs [`start`](Self::start) or [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// [`BuildError::Config`] if `url` is invalid.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use tidegate::{KeyPart, LimitSpec, Limiter};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("per-user").key(KeyPart::User).band("100/min"))
    ///     .store_url("redis://127.0.0.1:6379")?
    ///     .start()
    ///     .await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "config")]
    pub fn store_url(self, url: &str) -> Result<Self, BuildError> {
        Ok(self.store(tidegate_config::store_from_url(url)?))
    }

    /// Returns the store settings made here, otherwise those of the configuration.
    pub(super) fn store_settings(&self) -> Option<&StoreSettings> {
        #[cfg(feature = "config")]
        let configured = self.config.as_ref().map(|config| &config.store);
        #[cfg(not(feature = "config"))]
        let configured = None;
        self.overrides.store.as_ref().or(configured)
    }
}
