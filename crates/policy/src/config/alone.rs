//! Single sections of a configuration, for programs that write the rest in code.

use super::environment::{Environment, NoEnvironment};
use super::fault::ConfigFault;
use super::problem::ConfigErrors;
use super::reader::{ConfigReader, ConfigValue};
use super::scalar;
use super::store::{self, StoreSettings};
use super::syntax::{self, NodeKind, TextSpan, YamlNode};
use crate::limit::Condition;
use crate::matching::{HostPattern, PathPattern};

impl StoreSettings {
    /// Reads the settings of `store`, in YAML or JSON. Variables, and the files that hold secrets and
    /// certificates, come from `environment`. Environment variables override nothing here.
    ///
    /// ```
    /// use tidegate_policy::config::{NoEnvironment, StoreSettings};
    ///
    /// let text = "{ url: 'redis://db', prefix: 'shop:', timeout: 5ms }";
    /// let store = StoreSettings::from_yaml(text, &NoEnvironment)?;
    /// assert_eq!(store.timeout.as_millis(), 5);
    /// # Ok::<(), tidegate_policy::ConfigErrors>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns all errors found in the text. `template` is one of them: it names the keys of limits,
    /// which only a configuration has.
    pub fn from_yaml(text: &str, environment: &dyn Environment) -> Result<Self, ConfigErrors> {
        let mut reader = ConfigReader::new("store", text, environment);
        let nothing = ConfigFault::new("there are no settings of a store here");
        let nothing = nothing.help("write at least where it is, for example `url: redis://HOST`");
        let (mut tree, faults) = syntax::read(text, nothing);
        for (place, fault) in faults {
            reader.error((place, String::new()), fault);
        }
        if let Some(tree) = &mut tree {
            store::spell_out(tree);
        }
        let (settings, _) = store::read(&mut reader, tree.as_ref().map(ConfigValue::root).as_ref());
        if let Some(template) = tree.as_ref().and_then(|tree| tree.get("template")) {
            let fault =
                ConfigFault::new("`template` names the keys of limits that a configuration has");
            let fault = fault.help("remove it, or write the limits into the configuration");
            reader.error((template.place, "template".to_owned()), fault);
        }
        reader.finish()?;
        Ok(settings)
    }

    /// Returns the settings of the store at `url`, written as in `store.url`: `memory`, or the URL of
    /// Redis. All other settings have their defaults.
    ///
    /// ```
    /// use tidegate_policy::config::StoreSettings;
    ///
    /// let store = StoreSettings::from_url("redis://:secret@db")?;
    /// assert_eq!(store.target.to_string(), "redis://:***@db:6379");
    /// # Ok::<(), tidegate_policy::ConfigErrors>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if `url` is invalid.
    pub fn from_url(url: &str) -> Result<Self, ConfigErrors> {
        let mut reader = ConfigReader::new("url", url, &NoEnvironment);
        let place = TextSpan::at(1, 1, url.chars().count().max(1));
        let kind = NodeKind::Text(url.to_owned());
        let mut tree = YamlNode { place, kind };
        store::spell_out(&mut tree);
        let (settings, _) = store::read(&mut reader, Some(&ConfigValue::root(&tree)));
        reader.finish()?;
        Ok(settings)
    }

    /// Returns the key that identities are hashed with, derived from `key_secret`; `None` without one.
    /// It is the same on every instance with the same secret.
    pub fn hash_key(&self) -> Option<[u8; 32]> {
        let secret = self.key_secret.as_ref()?;
        let secret = secret.expose().as_bytes();
        Some(blake3::derive_key("tidegate 2025 store.key_secret", secret))
    }
}

/// Conditions built in code, in the syntax of the configuration. Errors include the correct form.
impl Condition {
    /// Restricts the condition to paths that match `pattern`.
    pub fn with_path(mut self, pattern: &str) -> Result<Self, String> {
        self.path = Some(PathPattern::parse(pattern)?);
        Ok(self)
    }

    /// Adds a method. The condition holds for any of the methods added.
    pub fn with_method(mut self, method: &str) -> Result<Self, String> {
        let method = scalar::method(method).map_err(ConfigFault::into_sentence)?;
        self.methods.push(method);
        Ok(self)
    }

    /// Adds a host pattern. The condition holds for hosts that match any of the patterns added.
    pub fn with_host(mut self, pattern: &str) -> Result<Self, String> {
        self.hosts.push(HostPattern::parse(pattern)?);
        Ok(self)
    }

    /// Adds a header. All headers added must match.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not a header name or was added before.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, String> {
        let name = scalar::header_name(name).map_err(ConfigFault::into_sentence)?;
        if self.headers.iter().any(|(other, _)| *other == name) {
            return Err(format!("the header `{name}` is there twice"));
        }
        self.headers.push((name, value.to_owned()));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, NoEnvironment, StoreSettings};

    #[test]
    fn a_url_alone_is_read_as_in_a_configuration() {
        let at = |url: &str| StoreSettings::from_url(url).map(|store| store.target.to_string());
        assert_eq!(at("memory").as_deref(), Ok("memory"));
        assert_eq!(
            at("rediss://ann:hunter2@db:7000/3").as_deref(),
            Ok("rediss://ann:***@db:7000/3")
        );
        for (url, said) in [
            ("", "there is no URL here"),
            ("localhost:6379", "this is not the URL of a store"),
            ("redis+sentinel://a", "the name of the master"),
            ("rediz://:hunter2@db", "redis"),
            ("redis://:hunter2@db:nine", "port"),
        ] {
            let errors = at(url).unwrap_err().to_string();
            assert!(errors.contains(said), "{url}: {errors}");
            assert!(!errors.contains("hunter2"), "{errors}");
        }
    }

    #[test]
    fn no_settings_at_all_were_said_to_need_policies() {
        for text in ["", " ", "# nothing yet"] {
            let errors = StoreSettings::from_yaml(text, &NoEnvironment).unwrap_err();
            let said = errors.to_string();
            assert!(said.contains("no settings of a store"), "{said}");
            assert!(said.contains("`url: redis://HOST`"), "{said}");
            assert!(!said.contains("policies"), "{said}");
        }
    }

    #[test]
    fn a_template_for_limits_in_code_is_refused() {
        let text = "{ url: 'redis://db', layout: open, template: 'x:{key}' }";
        let errors = StoreSettings::from_yaml(text, &NoEnvironment).unwrap_err();
        assert_eq!(errors.problems()[0].path(), "template");
    }

    #[test]
    fn conditions_in_code_are_spelt_as_in_a_configuration() {
        let condition = Condition::default()
            .with_method("post")
            .and_then(|it| it.with_host("API.example.com"))
            .and_then(|it| it.with_header("X-Tier", "Gold"))
            .unwrap();
        assert_eq!(condition.methods, ["POST"]);
        assert_eq!(condition.headers[0].0, "x-tier");

        assert!(Condition::default().with_method("*").is_err());
        assert!(Condition::default().with_host("a b").is_err());
        assert!(Condition::default().with_header("x y", "").is_err());
        assert!(condition.with_header("x-tier", "silver").is_err());
    }
}
