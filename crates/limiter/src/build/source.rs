//! The sources of a limiter's settings: a configuration, its environment, and the store.

use super::LimiterBuilder;
use crate::error::BuildError;
use crate::process::ProcessEnvironment;
use std::fmt;
use std::path::Path;
use tidegate_core::Clock;
use tidegate_policy::Config;
use tidegate_policy::config::{Environment, NoEnvironment, StoreSettings};

/// The environment of configurations, if one was set.
#[derive(Default)]
pub(super) struct Surroundings(Option<Box<dyn Environment + Send + Sync>>);

static PROCESS: ProcessEnvironment = ProcessEnvironment::new();

impl Surroundings {
    /// Returns the environment for a file.
    pub(super) fn of_files(&self) -> &dyn Environment {
        match &self.0 {
            Some(told) => told.as_ref(),
            None => &PROCESS,
        }
    }

    /// Returns the environment for text, which is self-contained by default.
    fn of_text(&self) -> &dyn Environment {
        match &self.0 {
            Some(told) => told.as_ref(),
            None => &NoEnvironment,
        }
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.0.as_ref().map(|_| "..");
        f.debug_tuple("Surroundings").field(&told).finish()
    }
}

impl<C: Clock> LimiterBuilder<C> {
    /// Sets the environment in which calls of [`yaml`](Self::yaml) and [`file`](Self::file) *after this one*
    /// look up variables and the files that hold secrets, keys, certificates and tokens.
    /// [`Limiter::reload_file`](crate::Limiter::reload_file) uses the environment that was set last.
    ///
    /// By default, a file is read like the program `tidegate` reads it ([`ProcessEnvironment`]), and for text
    /// nothing is looked up ([`NoEnvironment`]). A function from names to values is an environment of
    /// variables without files.
    ///
    /// ```
    /// use tidegate::{Limiter, NoEnvironment};
    ///
    /// let text = "policies: [{ name: api, limits: [{ name: all, rate: '${RATE}' }] }]";
    /// let told = |name: &str| (name == "RATE").then(|| "10/s".to_owned());
    /// let limiter = Limiter::builder().environment(told).yaml(text)?.build()?;
    ///
    /// // Text from elsewhere is not to ask for the variables of this process, or for its files.
    /// let error = Limiter::builder().environment(NoEnvironment).yaml(text).unwrap_err();
    /// assert!(error.to_string().contains("nothing is looked up here"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn environment(mut self, environment: impl Environment + Send + Sync + 'static) -> Self {
        self.told.environment = Surroundings(Some(Box::new(environment)));
        self
    }

    /// Uses the policies and the client and store settings of `config`.
    pub fn config(self, config: Config) -> Self {
        Self {
            config: Some(config),
            ..self
        }
    }

    /// Uses a configuration in YAML or JSON. Nothing is looked up unless an
    /// [`environment`](Self::environment) was set.
    ///
    /// # Errors
    ///
    /// [`BuildError::Config`] if the text is invalid.
    pub fn yaml(self, text: &str) -> Result<Self, BuildError> {
        let config = Config::parse(text, "configuration", self.told.environment.of_text())?;
        Ok(self.config(config))
    }

    /// Uses a configuration file. The variables and files that it names are looked up in this process unless
    /// an [`environment`](Self::environment) was set.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`] if the file cannot be read, [`BuildError::Config`] if it is invalid.
    pub fn file(self, path: impl AsRef<Path>) -> Result<Self, BuildError> {
        let config = self.told.config(path.as_ref())?;
        Ok(self.config(config))
    }

    /// Sets the store and its connection settings, *in place of* the whole `store` section of the
    /// configuration. For limits in code, which have no configuration:
    ///
    /// ```
    /// use tidegate::{KeyPart, LimitSpec, Limiter, NoEnvironment, StoreSettings};
    ///
    /// let text = "{ url: 'redis://db:6379', prefix: 'shop:', timeout: 5ms }";
    /// let builder = Limiter::builder()
    ///     .limit(LimitSpec::new("per-user").key(KeyPart::User).band("100/min"))
    ///     .store(StoreSettings::from_yaml(text, &NoEnvironment)?);
    /// // builder.start().await?
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn store(mut self, store: StoreSettings) -> Self {
        self.told.store = Some(store);
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
    pub fn store_url(self, url: &str) -> Result<Self, BuildError> {
        Ok(self.store(StoreSettings::from_url(url)?))
    }

    /// Returns the store settings made here, otherwise those of the configuration.
    pub(super) fn store_settings(&self) -> Option<&StoreSettings> {
        let configured = self.config.as_ref().map(|config| &config.store);
        self.told.store.as_ref().or(configured)
    }
}
