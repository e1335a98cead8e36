//! Single sections of a configuration, for programs that write the rest in code.

use super::environment::{Environment, NoEnvironment};
use super::problem::ConfigErrors;
use super::syntax::{self, YamlNode};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::sections::{client, respond, store, template};
use tidegate_policy::client::Client;
use tidegate_policy::plan::{PlanDocument, PlanErrors, PlanFormat};
use tidegate_policy::respond::Respond;
use tidegate_policy::store::StoreSettings;
use tidegate_policy::template::Template;
use tidegate_policy::text::ConfigFault;

/// Reads the settings of `store`, in YAML or JSON. Variables, and the files that hold secrets and
/// certificates, come from `environment`. Environment variables override nothing here.
///
/// ```
/// use tidegate_config::NoEnvironment;
/// use tidegate_config::store_from_yaml;
///
/// let text = "{ url: 'redis://db', redis: { prefix: 'shop:' }, timeout: 5ms }";
/// let store = store_from_yaml(text, &NoEnvironment)?;
/// assert_eq!(store.timeout.as_millis(), 5);
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns all errors found in the text. `template` is one of them: it names the keys of limits,
/// which only a configuration has.
pub fn store_from_yaml(
    text: &str,
    environment: &dyn Environment,
) -> Result<StoreSettings, ConfigErrors> {
    let mut reader = ConfigReader::new("store", text, environment);
    let nothing = ConfigFault::new("the store settings are empty");
    let nothing = nothing.help("set at least `url`, for example `url: redis://HOST`");
    let (mut tree, faults) = syntax::read(text, nothing);
    for (place, fault) in faults {
        reader.error((place, String::new()), fault);
    }
    if let Some(tree) = &mut tree {
        syntax::spell_out(tree);
    }
    let (settings, _) = store::read(&mut reader, tree.as_ref().map(ConfigValue::root).as_ref());
    if let Some(template) = tree
        .as_ref()
        .and_then(|tree| tree.get("redis")?.get("template"))
    {
        let fault = ConfigFault::new("`template` is only for a configuration with limits");
        let fault = fault.help("remove it, or move the limits into the configuration");
        reader.error((template.place, "redis.template".to_owned()), fault);
    }
    reader.finish()?;
    Ok(settings)
}

/// Returns the settings of the store at `url`, written as in `store.url`: `memory`, or the URL of
/// Redis. All other settings have their defaults.
///
/// ```
/// use tidegate_config::store_from_url;
///
/// let store = store_from_url("redis://:secret@db")?;
/// assert_eq!(store.target.to_string(), "redis://:***@db:6379");
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns an error if `url` is invalid.
pub fn store_from_url(url: &str) -> Result<StoreSettings, ConfigErrors> {
    store::from_url(url)
}

/// Reads the settings of `client`, in YAML or JSON. Nothing is looked up: no variable and no file.
///
/// ```
/// let client = tidegate_config::client_from_yaml("trusted_proxies: [10.0.0.0/8]")?;
/// assert!(client.trusts("10.0.0.7".parse().unwrap()));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns all errors found in the text.
pub fn client_from_yaml(text: &str) -> Result<Client, ConfigErrors> {
    client::parse_alone(text, "client", &NoEnvironment)
}

/// Reads the settings of `respond`, in YAML or JSON. Environment variables are not expanded.
///
/// ```
/// use tidegate_config::respond_from_yaml;
///
/// let respond = respond_from_yaml("{ profile: gateway, names: hidden }")?;
/// assert_eq!(respond.refusal.content_type, "application/json");
/// assert!(respond_from_yaml("body: '{titel}'").is_err());
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns all errors found in the text.
pub fn respond_from_yaml(text: &str) -> Result<Respond, ConfigErrors> {
    respond::parse_alone(text, "respond")
}

/// Reads a template of key names, as in `store.redis.template`. The error describes the mistake and its fix.
///
/// ```
/// use tidegate_config::template_from_text;
/// use tidegate_policy::template::KeyOf;
///
/// let template = template_from_text("ratelimit:{limit}:{key}").unwrap();
/// let of = KeyOf { policy: "api", limit: "reads", subject: "ip:192.0.2.1", band: "default" };
/// assert_eq!(template.render(&of), "ratelimit:reads:192.0.2.1");
///
/// let error = template_from_text("ratelimit:{client}").unwrap_err();
/// assert!(error.contains("`{client}` is not a placeholder"));
/// ```
pub fn template_from_text(text: &str) -> Result<Template, String> {
    template::parse(text).map_err(ConfigFault::into_sentence)
}

/// Parses a document of plans in JSON or YAML. `hides_subjects` is true if the ids of subjects are secrets,
/// such as API keys.
///
/// Fails only if the text cannot be parsed at all; [`PlanDocument::table`] reports errors in single entries.
///
/// ```
/// use tidegate_config::plans_from_text;
/// use tidegate_policy::plan::UnsetShare;
///
/// let text = "
/// plans: { free: 100/min, pro: { rate: 1000/min } }
/// groups: { acme: { plan: pro, quota: { rate: 1M/d } } }
/// subjects: { p1: { group: acme }, p2: { group: acme, amount: 50 }, p3: { plan: free } }
/// ";
/// let table = plans_from_text(text, false)?.table(UnsetShare::Unlimited)?;
/// assert_eq!((table.subjects(), table.groups(), table.rates_count()), (3, 1, 4));
///
/// let text = "{\"subjects\": {\"s3cr3t\": {\"amount\": \"many\"}}}";
/// let wrong = plans_from_text(text, true)?.table(UnsetShare::Unlimited).unwrap_err().to_string();
/// assert!(wrong.contains("`many` is not an amount") && !wrong.contains("s3cr3t"));
/// # Ok::<(), tidegate_policy::plan::PlanErrors>(())
/// ```
pub fn plans_from_text(text: &str, hides_subjects: bool) -> Result<PlanDocument, PlanErrors> {
    plans_in_format(text, PlanFormat::Tidegate, hides_subjects)
}

/// Parses a document of plans as [`plans_from_text`] does, in the format of another system.
///
/// ```
/// use tidegate_config::plans_in_format;
/// use tidegate_policy::plan::{PlanFormat, RateName, UnsetShare};
///
/// let text = "projects: { p1: { rateLimitSettings: { N: 100, T: 60 } } }";
/// let table = plans_in_format(text, PlanFormat::Collector, false)?.table(UnsetShare::Unlimited)?;
/// let rates = table.rates(&RateName::default());
/// assert_eq!(rates[0].to_string(), "100/min");
/// # Ok::<(), tidegate_policy::plan::PlanErrors>(())
/// ```
pub fn plans_in_format(
    text: &str,
    format: PlanFormat,
    hides_subjects: bool,
) -> Result<PlanDocument, PlanErrors> {
    PlanDocument::check_size(text)?;
    if let Some(document) = PlanDocument::from_json(text, format, hides_subjects) {
        return document;
    }
    // A source of tokens whose format is not set must not print them either.
    let may_hold_tokens = format.hides_subjects() || text.contains("tokens");
    let root = plans_tree(text, hides_subjects || may_hold_tokens)?;
    PlanDocument::of_tree(&root, format, hides_subjects)
}

/// Parses a text in YAML. If keys may be secrets, errors contain only their line.
fn plans_tree(text: &str, hides: bool) -> Result<YamlNode, PlanErrors> {
    let nothing = ConfigFault::new("it is empty").help("it needs `plans`, `groups` or `subjects`");
    let (root, faults) = syntax::read_up_to(text, nothing, PlanDocument::TEXT_MAX);
    // An empty text contains no secret.
    let hides = hides && !text.trim().is_empty();
    let mut errors = PlanErrors::default();
    for (place, fault) in faults {
        errors.add_at(place, || {
            if hides {
                "this is invalid (hidden because it may be a secret)".to_owned()
            } else {
                fault.into_sentence()
            }
        });
    }
    match root {
        Some(root) => errors.or(root),
        None => Err(errors),
    }
}

#[cfg(test)]
mod tests {
    use super::{store_from_url, store_from_yaml};
    use crate::environment::NoEnvironment;

    #[test]
    fn a_bare_url_is_parsed_as_in_a_configuration() {
        let at = |url: &str| store_from_url(url).map(|store| store.target.to_string());
        assert_eq!(at("memory").as_deref(), Ok("memory"));
        assert_eq!(
            at("rediss://ann:hunter2@db:7000/3").as_deref(),
            Ok("rediss://ann:***@db:7000/3")
        );
        for (url, said) in [
            ("", "the URL is missing"),
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
    fn an_empty_set_of_settings_was_reported_as_missing_policies() {
        for text in ["", " ", "# nothing yet"] {
            let errors = store_from_yaml(text, &NoEnvironment).unwrap_err();
            let message = errors.to_string();
            assert!(
                message.contains("the store settings are empty"),
                "{message}"
            );
            assert!(message.contains("`url: redis://HOST`"), "{message}");
            assert!(!message.contains("policies"), "{message}");
        }
    }

    #[test]
    fn a_template_for_limits_in_code_is_refused() {
        let text = "{ url: 'redis://db', redis: { layout: open, template: 'x:{key}' } }";
        let errors = store_from_yaml(text, &NoEnvironment).unwrap_err();
        assert_eq!(errors.problems()[0].path(), "redis.template");
    }
}
