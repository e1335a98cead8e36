//! A complete configuration, read from YAML or JSON. All errors are reported together.
//!
//! | module | contents |
//! |---|---|
//! | `syntax` | the text as a tree of nodes with their positions |
//! | `overrides`, `defaults`, `collector`, `environment` | settings from environment variables and files |
//! | `table`, `fields`, `words` | the language: every field and every word, defined once |
//! | `reader` | the walk over the tree, which collects the errors |
//! | `listen`, `doors`, `store`, `addresses`, `admin`, `alerts`, `traces`, `statsd`, `client`, `respond`, `guard`, `route`, `policy`, `domain`, `reserve`, `limit`, `condition`, `descriptor`, `key`, `band`, `planned`, `plans`, `warn`, `unlimited`, `waiting`, `block`, `replaces` | its sections and fields |
//! | `template`, `naming` | names of keys in the open layout |
//! | `rate`, `duration`, `size`, `host`, `address`, `foreign_path`, `local_share`, `scalar`, `secret` | single values |
//! | `problem`, `fault`, `excerpt`, `suggest` | error messages |
//! | `alone`, `gateway` | single sections, and a configuration made from a few flags |
//! | `explain` | a description of a configuration in plain words |
//! | `schema` | the language as a JSON Schema, for editors |

mod address;
mod addresses;
mod admin;
mod alerts;
mod alone;
mod band;
mod block;
mod client;
mod collector;
mod condition;
mod defaults;
mod descriptor;
mod domain;
mod doors;
mod duration;
mod environment;
mod excerpt;
mod explain;
mod fault;
mod fields;
mod foreign_path;
mod gateway;
mod guard;
mod host;
mod key;
mod limit;
mod listen;
mod local_share;
mod naming;
mod overrides;
mod planned;
mod plans;
mod policy;
mod problem;
mod rate;
mod reader;
mod replaces;
mod reserve;
mod respond;
mod route;
mod scalar;
mod schema;
mod secret;
mod secret_setting;
mod size;
mod sources;
mod statsd;
mod store;
mod suggest;
mod syntax;
mod table;
mod template;
mod traces;
mod unlimited;
mod waiting;
mod warn;
mod words;

pub use address::ListenAddress;
pub(crate) use band::{
    BandDefaults, build_planned as build_band, down_by_amount, parse as parse_band,
    parse_changing as parse_band_changing,
};
pub(crate) use client::parse_alone as parse_client;
pub use defaults::Setting;
pub(crate) use duration::parse as parse_duration_us;
pub use duration::read as duration;
pub use environment::{Environment, NoEnvironment};
pub use explain::{costs, explain, shadow};
pub(crate) use fault::ConfigFault;
pub(crate) use fields::{BANDS_MAX, KEY_PARTS_MAX, LIMITS_MAX, POLICIES_MAX, optional, required};
pub(crate) use key::part as parse_key_part;
pub use key::read_part as key_part;
pub use listen::{ConnectionAge, Listen, Listener, Tls};
pub use local_share::LocalShare;
pub use overrides::overrides;
pub(crate) use plans::http_url as parse_http_url;
pub use problem::{ConfigErrors, ConfigProblem, Severity};
pub(crate) use rate::{amount as parse_amount, numbers as parse_rate};
pub(crate) use reader::{AppendedText, ConfigReader, ConfigValue};
pub(crate) use respond::parse_alone as parse_respond;
pub(crate) use scalar::{header_name as parse_header_name, name as parse_name};
pub use schema::json_schema;
pub use secret::Secret;
pub(crate) use sources::read_from as read_sources;
pub use store::{
    KeyNameStyle, LayoutWord, RedisAddress, RedisIdentity, RedisMode, RedisSettings, RedisTls,
    StoreSettings, StoreTarget,
};
pub(crate) use suggest::closest;
pub(crate) use syntax::{
    MapEntry, MapKey, NodeKind, TextSpan, YamlNode, read as read_syntax,
    read_up_to as read_syntax_up_to,
};
pub(crate) use table::{FieldReader, FieldTable, Shape};
pub(crate) use template::parse_alone as parse_template;

use crate::addresses::AddressLimits;
use crate::admin::Admin;
use crate::alerts::Alerts;
use crate::client::Client;
use crate::guard::Guards;
use crate::limit::Policy;
use crate::matching::KeyRules;
use crate::plan::PlanSource;
use crate::respond::Layer;
use crate::route::Routes;
use crate::source::PolicySource;
use crate::statsd::Statsd;
use crate::traces::{Logs, Traces};
use tidegate_core::LimitMode;

/// A complete, validated configuration.
///
/// ```
/// use tidegate_policy::Config;
///
/// let text = "
/// policies:
///   - name: api
///     limits:
///       - name: per-client
///         key: ip
///         rate: 10/s burst 50
/// ";
/// let config = Config::from_yaml(text)?;
/// assert_eq!(config.policies[0].limits[0].name, "per-client");
///
/// let errors = Config::from_yaml("polices: []").unwrap_err();
/// assert!(errors.to_string().contains("did you mean `policies`?"));
/// # Ok::<(), tidegate_policy::ConfigErrors>(())
/// ```
#[derive(Debug)]
pub struct Config {
    /// The global mode. In shadow mode, limits, guards, blocks and bans are decided and counted, and
    /// every request passes. [`policies`](Self::policies) and [`guards`](Self::guards) are then already
    /// in shadow mode.
    pub mode: LimitMode,
    /// The addresses of the listeners.
    pub listen: Listen,
    /// The store of the buckets.
    pub store: StoreSettings,
    /// The rules that find a client's address and its other identities.
    pub client: Client,
    /// The allowlists, blocklists and bans that are evaluated before any limit.
    pub guards: Guards,
    /// The policies, in the order written; there is always at least one. The first applies to requests
    /// that name none. Policies joined for routes that list several follow them.
    pub policies: Vec<Policy>,
    /// The routes of the gateway; empty without a gateway.
    pub routes: Routes,
    /// The sources of rates that are not written in the configuration.
    pub plans: Vec<PlanSource>,
    /// The settings for counting requests by address, if enabled.
    pub addresses: Option<AddressLimits>,
    /// The sources of further policies, guards and routes, in order.
    pub sources: Vec<PolicySource>,
    /// The receivers of alerts.
    pub alerts: Option<Alerts>,
    /// The export of spans.
    pub traces: Option<Traces>,
    /// The export of limit statistics, over the statsd protocol.
    pub statsd: Option<Statsd>,
    /// The requests that are logged one by one.
    pub logs: Logs,
    /// The credentials and audit settings of the admin API.
    pub admin: Option<Admin>,
    warnings: Vec<ConfigProblem>,
}

impl Config {
    /// The configuration that `tidegate serve` uses without a file: a burst of five, then one request a
    /// second, so that a handful of requests shows both decisions.
    pub const BUILT_IN: &str = "\
policies:
  - name: default
    limits:
      - name: per-client
        key: ip
        rate: 1/s burst 5
";

    /// Reads a configuration in YAML or JSON. Messages call the file `name`.
    ///
    /// Variables and files that the text refers to come from `environment`. Its variables also override
    /// settings of the text.
    ///
    /// # Errors
    ///
    /// Returns all errors found, each with its line or environment variable.
    pub fn parse(
        text: &str,
        name: &str,
        environment: &dyn Environment,
    ) -> Result<Self, ConfigErrors> {
        let mut reader = ConfigReader::new(name, text, environment);
        let nothing = ConfigFault::new("the file says nothing");
        let nothing = nothing.help("it needs at least `policies`, a list of policies");
        let (tree, faults) = syntax::read(text, nothing);
        for (place, fault) in faults {
            reader.error((place, String::new()), fault);
        }
        Self::from_tree(reader, tree, environment)
    }

    /// Reads a configuration from a tree that is already parsed, as far as parsing succeeded.
    pub(crate) fn from_tree(
        mut reader: ConfigReader<'_>,
        tree: Option<YamlNode>,
        environment: &dyn Environment,
    ) -> Result<Self, ConfigErrors> {
        let Some(mut tree) = tree else {
            let name = reader.file().to_owned();
            return Err(reader.finish().err().unwrap_or_else(|| unreadable(&name)));
        };
        overrides::apply(&mut tree, environment);
        collector::apply(&mut reader, &mut tree);
        let config = read(&mut reader, &ConfigValue::root(&tree));
        let warnings = reader.finish()?;
        Ok(Self { warnings, ..config })
    }

    /// Reads a self-contained configuration in YAML or JSON: no variable and no file is looked up.
    /// Messages call it `configuration`.
    ///
    /// To look them up, [`parse`](Self::parse) it with an [`Environment`].
    ///
    /// # Errors
    ///
    /// Returns all errors found in the text, each with its line.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigErrors> {
        Self::parse(text, "configuration", &NoEnvironment)
    }

    /// Returns [`Config::BUILT_IN`], parsed. Environment variables do not override it; for that, parse
    /// the text.
    #[expect(clippy::missing_panics_doc, reason = "a test reads the text")]
    pub fn built_in() -> Self {
        Self::parse(Self::BUILT_IN, "built-in", &NoEnvironment).expect("the text is sound")
    }

    /// Returns the warnings: valid settings that are probably not intended. They are in the order of
    /// the file.
    pub fn warnings(&self) -> &[ConfigProblem] {
        &self.warnings
    }

    /// Returns the policy called `name`, or the first one if `name` is `None`.
    pub fn policy(&self, name: Option<&str>) -> Option<&Policy> {
        match name {
            Some(name) => self.policies.iter().find(|policy| policy.name == name),
            None => self.policies.first(),
        }
    }

    /// Returns the policies that are written in the configuration, in order. Policies that routes join
    /// are left out: their limits and buckets belong to the written ones.
    ///
    /// ```
    /// let config = tidegate_policy::Config::from_yaml("
    /// routes: [{ id: all, upstreams: [http://127.0.0.1:9001], policy: [api, web] }]
    /// policies:
    ///   - { name: api, limits: [{ name: per-client, key: ip, rate: 10/s }] }
    ///   - { name: web, limits: [{ name: all, rate: 100/s }] }
    /// ")?;
    /// let written: Vec<&str> = config.written().map(|it| it.name.as_str()).collect();
    /// assert_eq!(written, ["api", "web"]);
    /// assert!(config.policy(Some("api+web")).is_some());
    /// # Ok::<(), tidegate_policy::ConfigErrors>(())
    /// ```
    pub fn written(&self) -> impl Iterator<Item = &Policy> + Clone {
        self.policies.iter().filter(|policy| !policy.is_joined())
    }

    /// Returns the rules that turn identities into keys. They are the same on every instance with the
    /// same configuration.
    pub fn key_rules(&self) -> KeyRules {
        KeyRules {
            address: self.client.address_rules(),
            secret: self.store.hash_key(),
            literal: self.has_literal_keys(),
        }
    }

    /// Returns true if API keys and other secrets appear unhashed in the names of keys in Redis. That
    /// is so if `store.key_names` is `literal`. It is also the default in the open layout if a source
    /// has rules of `FluxGate`, which names its keys this way.
    pub fn has_literal_keys(&self) -> bool {
        let redis = self.store.target.redis();
        let is_open = redis.is_some_and(|redis| redis.layout == LayoutWord::Open);
        let is_literal = self
            .store
            .key_names
            .map(|names| names == KeyNameStyle::Literal);
        let by_default = || self.sources.iter().any(PolicySource::is_fluxgate);
        is_open && is_literal.unwrap_or_else(by_default)
    }
}

fn read(reader: &mut ConfigReader<'_>, root: &ConfigValue<'_>) -> Config {
    let fields = reader.fields(root, &fields::CONFIG);
    let section = |name| fields.as_ref().and_then(|fields| fields.get(name));
    let mode = mode(reader, fields.as_ref());
    let routes = section("routes");
    let listen = listen::read(reader, section("listen").as_ref(), routes.as_ref());
    let (store, template) = store::read(reader, section("store").as_ref());
    doors::warn(reader, section("listen").as_ref(), &listen, &store);
    let client = client::read(reader, section("client").as_ref());
    let mut naming = naming::KeyNamer::new(&store.target, template);
    let respond = respond::read(reader, section("respond").as_ref(), &Layer::bottom());
    let around = guard::GuardScope {
        respond: &respond,
        store: &store.target,
        addresses: client.address_rules(),
    };
    let guards =
        section("guards").map_or_else(Vec::new, |value| guard::read_all(reader, &value, &around));
    let guards = Guards::new(guards).in_mode(mode);
    let addresses = section("addresses")
        .and_then(|value| addresses::read(reader, &value, &guards, store.target.redis().is_some()));
    let plans =
        section("plans").map_or_else(Vec::new, |value| plans::read_all(reader, &value, &store));
    let common = policy::Common {
        respond: &respond,
        plans: &plans,
    };
    let mut policies = section("policies").map_or_else(Vec::new, |value| {
        policy::read_all(reader, &value, &mut naming, &common)
    });
    if let Some(value) = section("plans") {
        plans::warn_about_unused(reader, &value, &plans, &policies);
    }
    if listen.grpc.is_some() {
        policies.iter_mut().for_each(Policy::expect_descriptors);
    }
    let routes = routes.map_or_else(Routes::default, |value| {
        let written = section("policies");
        let routes = route::read_all(reader, &value, written.as_ref(), &mut policies);
        plans::warn_about_routes(reader, (&value, &routes), &plans, &policies);
        routes.with_paths(listen.paths)
    });
    let sources =
        section("sources").map_or_else(Vec::new, |value| sources::read_all(reader, &value, &store));
    if let Some(value) = section("policies") {
        let around = (section("guards"), sources.as_slice());
        client::warn(reader, (&value, &policies), &client, &around);
    }
    let logs = section("logs").and_then(|value| traces::read_logs(reader, &value));
    let admin = section("admin").and_then(|value| admin::read(reader, &value, &listen, &store));
    for policy in &mut policies {
        prepare(policy, &guards, addresses.is_some(), mode);
    }
    Config {
        mode,
        listen,
        store,
        client,
        guards,
        policies,
        routes,
        plans,
        addresses,
        sources,
        alerts: section("alerts").and_then(|value| alerts::read(reader, &value)),
        traces: section("traces").and_then(|value| traces::read(reader, &value)),
        statsd: section("statsd").and_then(|value| statsd::read(reader, &value)),
        logs: logs.unwrap_or_default(),
        admin,
        warnings: Vec::new(),
    }
}

/// Reads the global `mode`. Default: enforce.
fn mode(reader: &mut ConfigReader<'_>, fields: Option<&FieldReader<'_>>) -> LimitMode {
    let mode = fields
        .and_then(|fields| reader.setting(fields, "mode", |word| words::PLAIN_MODE.parse(word)));
    mode.unwrap_or_default()
}

/// Prepares a policy for the other sections of the configuration.
fn prepare(policy: &mut Policy, guards: &Guards, counts_addresses: bool, mode: LimitMode) {
    policy.guarded_by(guards);
    if counts_addresses {
        policy.count_addresses();
    }
    if mode == LimitMode::Shadow {
        policy.put_in_shadow();
    }
}

/// Returns an error without problems. The callers need it only if there is neither a tree nor a fault,
/// which does not happen today.
fn unreadable(name: &str) -> ConfigErrors {
    ConfigErrors::new(name.into(), Vec::new(), 1)
}
