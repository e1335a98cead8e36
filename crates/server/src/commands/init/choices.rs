//! The choices of `tidegate init`.

use super::InitArgs;
use super::prompt::TerminalPrompt;
use clap::ValueEnum;
use std::io::{BufRead, Write};
use tidegate_config::{Config, store_from_url};
use tidegate_control::failure::Failure;
use tidegate_core::Algorithm;
use tidegate_policy::Band;

/// The place of Tidegate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeploymentKind {
    /// Next to a proxy or an application, which ask it
    Service,
    /// As the proxy
    Gateway,
    /// Inside a Rust program
    Library,
    /// A service in a Kubernetes cluster
    Kubernetes,
}

/// The proxy that asks Tidegate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChosenProxy {
    /// None: your programs ask
    None,
    /// nginx, or ingress-nginx
    Nginx,
    /// Traefik
    Traefik,
    /// Caddy
    Caddy,
    /// `HAProxy`
    Haproxy,
    /// Envoy, or Envoy Gateway
    Envoy,
}

/// The identity that the limit counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChosenKey {
    /// Client address
    Ip,
    /// User, from the header X-User-Id
    User,
    /// API key, from the header X-API-Key
    ApiKey,
}

/// All choices. They are valid, and fit together.
#[derive(Debug)]
pub(super) struct SetupChoices {
    pub(super) run: DeploymentKind,
    pub(super) proxy: ChosenProxy,
    pub(super) upstream: String,
    pub(super) store: String,
    pub(super) limit: String,
    pub(super) key: ChosenKey,
}

const UPSTREAM: &str = "http://127.0.0.1:9001";
const STORE: &str = "memory";
const LIMIT: &str = "100/min";

impl DeploymentKind {
    /// Returns true if a proxy may ask.
    fn has_proxy(self) -> bool {
        matches!(self, Self::Service | Self::Kubernetes)
    }
}

impl ChosenProxy {
    /// Returns the name for people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::None => "your programs",
            Self::Nginx => "nginx",
            Self::Traefik => "Traefik",
            Self::Caddy => "Caddy",
            Self::Haproxy => "HAProxy",
            Self::Envoy => "Envoy",
        }
    }
}

impl SetupChoices {
    /// Returns the choices of the flags, else the defaults.
    pub(super) fn of_flags(args: &InitArgs) -> Result<Self, Failure> {
        let text = |flag: &Option<String>, default: &str| {
            flag.clone().unwrap_or_else(|| default.to_owned())
        };
        let choices = Self {
            run: args.run.unwrap_or(DeploymentKind::Service),
            proxy: args.proxy.unwrap_or(ChosenProxy::None),
            upstream: text(&args.upstream, UPSTREAM),
            store: text(&args.store, STORE),
            limit: text(&args.limit, LIMIT),
            key: args.key.unwrap_or(ChosenKey::Ip),
        };
        choices.fit(args)?;
        Ok(choices)
    }

    /// Asks for each choice that has no flag and matters.
    pub(super) fn ask<I: BufRead, O: Write>(
        args: &InitArgs,
        mut prompt: TerminalPrompt<I, O>,
    ) -> Result<Self, Failure> {
        let run = match args.run {
            Some(run) => run,
            None => prompt.choose("Where does Tidegate run?", &DeploymentKind::Service)?,
        };
        let proxy = match args.proxy {
            Some(proxy) => proxy,
            None if !run.has_proxy() => ChosenProxy::None,
            None => prompt.choose("Which proxy asks it?", &ChosenProxy::None)?,
        };
        let upstream = match &args.upstream {
            Some(upstream) => upstream.clone(),
            None if run != DeploymentKind::Gateway => UPSTREAM.to_owned(),
            None => prompt.text("Upstream of the gateway", UPSTREAM, check_upstream)?,
        };
        let store = match &args.store {
            Some(store) => store.clone(),
            None => prompt.text("Buckets in memory, or at a Redis URL", STORE, check_store)?,
        };
        let limit = match &args.limit {
            Some(limit) => limit.clone(),
            None => prompt.text("Rate, such as 10/s burst 50", LIMIT, check_limit)?,
        };
        let key = match args.key {
            Some(key) => key,
            None => prompt.choose("What does the limit count by?", &ChosenKey::Ip)?,
        };
        let choices = Self {
            run,
            proxy,
            upstream,
            store,
            limit,
            key,
        };
        choices.fit(args)?;
        Ok(choices)
    }

    /// Checks flags and that they fit together.
    fn fit(&self, args: &InitArgs) -> Result<(), Failure> {
        if !self.run.has_proxy() && self.proxy != ChosenProxy::None {
            return Err(Failure::input(
                "--proxy does not fit: no proxy calls a gateway or a library\n   help: use --run \
                 service or --run kubernetes",
            ));
        }
        if args.upstream.is_some() && self.run != DeploymentKind::Gateway {
            return Err(Failure::input(
                "--upstream does not fit\n   help: use --run gateway",
            ));
        }
        let flag = |name: &str, checked: Result<(), String>| {
            checked.map_err(|why| Failure::input(format!("{name}: {why}")))
        };
        flag("--limit", check_limit(&self.limit))?;
        flag("--store", check_store(&self.store))?;
        flag("--upstream", check_upstream(&self.upstream))
    }
}

fn check_limit(text: &str) -> Result<(), String> {
    Band::parse(text, Algorithm::TokenBucket).map(|_| ())
}

fn check_store(text: &str) -> Result<(), String> {
    let (_, rest) = text.split_once("://").unwrap_or(("", text));
    let user = rest.rsplit_once('@').map_or("", |(user, _)| user);
    let password = user.split_once(':').map_or("", |(_, password)| password);
    if !password.is_empty() && !password.starts_with("${") {
        return Err(
            "it contains a password, which the file would show\n   help: write \
             ${REDIS_PASSWORD} there, and set that variable"
                .to_owned(),
        );
    }
    if password.is_empty() {
        store_from_url(text).map_err(|errors| first(&errors.to_string()))?;
    }
    Ok(())
}

fn check_upstream(text: &str) -> Result<(), String> {
    Config::gateway_text(&[text], None).map_err(|errors| first(&errors.to_string()))?;
    Ok(())
}

/// Returns the message of the first error, without its position, which is in no file.
fn first(errors: &str) -> String {
    let line = errors.lines().next().unwrap_or_default();
    let message = line.splitn(4, ':').last().unwrap_or(line);
    message.trim().to_owned()
}
