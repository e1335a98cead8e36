//! A complete configuration, and the order in which its sections are read.

use crate::admin::Admin;
use crate::alerts::Alerts;
use crate::collector;
use crate::environment::{Environment, NoEnvironment, overrides};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::Shape::{Either, List, Map, Text, Word};
use crate::language::table::{FieldReader, FieldTable, optional, required};
use crate::language::words::PLAIN_MODE;
use crate::problem::{ConfigErrors, ConfigProblem};
use crate::sections::addresses::ADDRESSES;
use crate::sections::admin::ADMIN;
use crate::sections::alerts::ALERTS;
use crate::sections::guard::GUARD;
use crate::sections::statsd::STATSD;
use crate::sections::traces::{LOGS, TRACES};
use crate::sections::{
    addresses, admin, alerts, client, concurrent, guard, listen, listen_warnings, long_windows,
    naming, plans, policy, respond, route, sources, statsd, store, traces, units,
};
use crate::source::PolicySource;
use crate::statsd::Statsd;
use crate::syntax;
use crate::tables::client::CLIENT;
use crate::tables::plans::PLANS;
use crate::tables::respond::RESPOND;
use crate::tables::route::ROUTE;
use crate::tables::sources::SOURCE;
use crate::tables::store::STORE;
use crate::tables::{LISTEN, POLICY};
use crate::traces::{Logs, Traces};
use tidegate_core::LimitMode;
use tidegate_policy::addresses::AddressLimits;
use tidegate_policy::client::Client;
use tidegate_policy::guard::Guards;
use tidegate_policy::listen::Listen;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::plan_source::PlanSource;
use tidegate_policy::policy::Policy;
use tidegate_policy::respond::Layer;
use tidegate_policy::route::Routes;
use tidegate_policy::store::{KeyNameStyle, LayoutWord, StoreSettings};
use tidegate_policy::text::{ConfigFault, YamlNode};

/// The fields of the whole configuration.
pub(crate) static CONFIG: FieldTable = FieldTable {
    what: "the configuration",
    fields: &[
        optional(
            "mode",
            Word(&PLAIN_MODE),
            "`shadow`: all limits and guards are decided and counted, and refuse no request. Default: \
             `enforce`.",
        ),
        optional("listen", Map(&LISTEN), "Listeners: one address per API."),
        optional(
            "store",
            Either(&[Text("redis://127.0.0.1:6379"), Map(&STORE)]),
            "Bucket storage: a URL, `memory`, or a map. Default: `memory`.",
        ),
        optional(
            "client",
            Map(&CLIENT),
            "Client identity: address, user, API key, attributes and cost.",
        ),
        optional(
            "respond",
            Map(&RESPOND),
            "Response headers and refusals. A policy can override it.",
        ),
        optional(
            "guards",
            List(&Map(&GUARD)),
            "Blocklists and allowlists, checked before any limit; allowlists first.",
        ),
        optional(
            "routes",
            List(&Map(&ROUTE)),
            "Routes of the gateway; the first match applies.",
        ),
        optional("plans", List(&Map(&PLANS)), "Sources of per-subject rates."),
        optional(
            "sources",
            List(&Map(&SOURCE)),
            "Sources of more policies, guards and routes, appended to those of the file in this \
             order.",
        ),
        optional(
            "addresses",
            Map(&ADDRESSES),
            "Request counts per address, and bans for addresses with too many requests.",
        ),
        optional("alerts", Map(&ALERTS), "Webhook for alerts."),
        optional(
            "traces",
            Map(&TRACES),
            "OpenTelemetry traces: collector and sampling.",
        ),
        optional(
            "statsd",
            Map(&STATSD),
            "Statsd server for limit statistics.",
        ),
        optional("logs", Map(&LOGS), "Logging of single requests."),
        optional(
            "admin",
            Map(&ADMIN),
            "Administrators of the admin API, and its audit log. Default: the admin API is disabled.",
        ),
        required(
            "policies",
            List(&Map(&POLICY)),
            "Policies. The first is the default for requests that name none.",
        ),
    ],
    exactly_one: &[],
};

/// A complete, validated configuration.
///
/// ```
/// use tidegate_config::Config;
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
/// # Ok::<(), tidegate_config::ConfigErrors>(())
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
        let nothing = ConfigFault::new("the config file is empty");
        let nothing = nothing.help("add at least `policies`, a list of policies");
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
    /// let config = tidegate_config::Config::from_yaml("
    /// routes: [{ name: all, upstreams: [http://127.0.0.1:9001], policy: [api, web] }]
    /// policies:
    ///   - { name: api, limits: [{ name: per-client, key: ip, rate: 10/s }] }
    ///   - { name: web, limits: [{ name: all, rate: 100/s }] }
    /// ")?;
    /// let written: Vec<&str> = config.written().map(|it| it.name.as_str()).collect();
    /// assert_eq!(written, ["api", "web"]);
    /// assert!(config.policy(Some("api+web")).is_some());
    /// # Ok::<(), tidegate_config::ConfigErrors>(())
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
    /// is so if `store.redis.key_names` is `literal`. It is also the default in the open layout if a source
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
    let fields = reader.fields(root, &CONFIG);
    let fields = fields.as_ref();
    let section = |name| fields.and_then(|fields| fields.get(name));
    let mode = mode(reader, fields);
    let written = section("routes");
    let listen = listen::read(reader, section("listen").as_ref(), written.as_ref());
    let (store, template) = store::read(reader, section("store").as_ref());
    let in_redis = store.target.redis().is_some();
    listen_warnings::warn(reader, section("listen").as_ref(), &listen, &store);
    let client = client::read(reader, section("client").as_ref());
    let naming = naming::KeyNamer::new(&store.target, template);
    let respond = respond::read(reader, section("respond").as_ref(), &Layer::bottom());
    let around = guard::GuardScope {
        respond: &respond,
        store: &store.target,
        addresses: client.address_rules(),
    };
    let guards = guards(reader, section("guards").as_ref(), &around).in_mode(mode);
    let addresses = section("addresses");
    let addresses = addresses.and_then(|it| addresses::read(reader, &it, &guards, in_redis));
    let plans = section("plans");
    let plans = plans.map_or_else(Vec::new, |value| plans::read_all(reader, &value, &store));
    let mut policies = policies(reader, fields, naming, (&respond, &plans));
    if listen.grpc.is_some() {
        policies.iter_mut().for_each(Policy::expect_descriptors);
    }
    let routes = routes(reader, fields, &mut policies, &plans).with_paths(listen.paths);
    let sources =
        section("sources").map_or_else(Vec::new, |value| sources::read_all(reader, &value, &store));
    check_policies(
        reader,
        fields,
        (&policies, &client),
        (&listen, &sources, &store),
    );
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

/// Checks the limits against the sections that identify clients, and that keep buckets.
fn check_policies(
    reader: &mut ConfigReader<'_>,
    fields: Option<&FieldReader<'_>>,
    (policies, client): (&[Policy], &Client),
    (listen, sources, store): (&Listen, &[PolicySource], &StoreSettings),
) {
    let section = |name| fields.and_then(|fields| fields.get(name));
    let Some(value) = section("policies") else {
        return;
    };
    let around = (section("guards"), sources);
    client::warn(reader, (&value, policies), client, &around);
    long_windows::warn(reader, (&value, policies), store);
    concurrent::check(
        reader,
        (&value, policies),
        (section("listen").as_ref(), store),
    );
    let around = units::UnitScope {
        policies,
        client,
        listen,
        sources,
    };
    units::check(reader, &value, section("client").as_ref(), &around);
}

/// Reads `guards`.
fn guards(
    reader: &mut ConfigReader<'_>,
    value: Option<&ConfigValue<'_>>,
    around: &guard::GuardScope<'_>,
) -> Guards {
    Guards::new(value.map_or_else(Vec::new, |value| guard::read_all(reader, value, around)))
}

/// Reads `policies`, and warns about plans that none of them uses.
fn policies(
    reader: &mut ConfigReader<'_>,
    fields: Option<&FieldReader<'_>>,
    mut naming: naming::KeyNamer,
    (respond, plans): (&Layer, &[PlanSource]),
) -> Vec<Policy> {
    let written = fields.and_then(|fields| fields.get("policies"));
    let common = policy::CommonSettings { respond, plans };
    let policies = written.map_or_else(Vec::new, |value| {
        policy::read_all(reader, &value, &mut naming, &common)
    });
    if let Some(value) = fields.and_then(|fields| fields.get("plans")) {
        plans::warn_about_unused(reader, &value, plans, &policies);
    }
    policies
}

/// Reads `routes`. A route that lists several policies adds one to `policies` that joins them.
fn routes(
    reader: &mut ConfigReader<'_>,
    fields: Option<&FieldReader<'_>>,
    policies: &mut Vec<Policy>,
    plans: &[PlanSource],
) -> Routes {
    let Some(value) = fields.and_then(|fields| fields.get("routes")) else {
        return Routes::default();
    };
    let written = fields.and_then(|fields| fields.get("policies"));
    let routes = route::read_all(reader, &value, written.as_ref(), policies);
    plans::warn_about_routes(reader, (&value, &routes), plans, policies);
    routes
}

/// Reads the global `mode`. Default: enforce.
fn mode(reader: &mut ConfigReader<'_>, fields: Option<&FieldReader<'_>>) -> LimitMode {
    let mode =
        fields.and_then(|fields| reader.setting(fields, "mode", |word| PLAIN_MODE.parse(word)));
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
