//! `store` as a whole: the URL and the settings next to it must agree.
//!
//! The scheme selects TLS and Sentinel, several addresses a Cluster, and `topology` sets it explicitly. A
//! setting that contradicts the URL is an error. One that has no effect, such as those of `redis` while
//! buckets are in memory, is a warning.

use super::options::{StoreOptions, warn_beside_memory};
use super::url::{self, Url};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::FieldReader;
use crate::language::words::TopologyWord;
use crate::syntax::NodeKind;
use tidegate_policy::store::{LayoutWord, RedisAddress, RedisMode, RedisSettings, StoreTarget};
use tidegate_policy::template::Template;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::Secret;
use tidegate_policy::tls::ClientTls;

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// The store that the file names.
enum StoreText<'a> {
    Memory,
    /// The URL of Redis, and the value that contains it.
    Redis(Url, ConfigValue<'a>),
    /// An invalid value, already reported.
    Broken,
}

/// Reads the store, and the default template for the names of keys. `store` has the URL, and `fields` the
/// settings of Redis.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    store: &FieldReader<'_>,
    fields: &FieldReader<'_>,
) -> (StoreTarget, Option<Template>) {
    let mut options = StoreOptions::read(reader, fields);
    match store_text(reader, store) {
        StoreText::Broken => (StoreTarget::Memory, None),
        StoreText::Memory => {
            warn_beside_memory(reader, store);
            (StoreTarget::Memory, None)
        }
        StoreText::Redis(url, value) => {
            let template = options.template.take();
            warn_about_template(reader, fields, options.layout);
            let settings = settings(reader, &RedisSection { fields, value }, url, options);
            let target = settings.map_or(StoreTarget::Memory, |settings| {
                StoreTarget::Redis(Box::new(settings))
            });
            (target, template)
        }
    }
}

fn store_text<'a>(reader: &mut ConfigReader<'_>, fields: &FieldReader<'a>) -> StoreText<'a> {
    let Some(value) = fields.get("url") else {
        return StoreText::Memory;
    };
    let items = match value.node.kind {
        NodeKind::List(_) => reader.list(&value),
        _ => vec![value.clone()],
    };
    let mut url = None;
    for item in &items {
        let Some(text) = reader.text(item) else {
            return StoreText::Broken;
        };
        if text.trim() == "memory" && items.len() == 1 {
            return StoreText::Memory;
        }
        if text.trim() == "memory" {
            let fault = ConfigFault::new("`memory` cannot be combined with servers")
                .help("remove it, or the others");
            reader.error(item.spot(), fault);
            return StoreText::Broken;
        }
        match url::add(url, &text) {
            Ok(read) => url = read,
            Err(fault) => {
                reader.error(item.spot(), fault);
                return StoreText::Broken;
            }
        }
    }
    match url {
        Some(url) => StoreText::Redis(url, value),
        None => {
            if !items.is_empty() {
                let fault = ConfigFault::new("the URL is missing")
                    .help("expected `memory` or a URL, for example `redis://127.0.0.1:6379`");
                reader.error(value.spot(), fault);
            }
            StoreText::Broken
        }
    }
}

fn warn_about_template(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    layout: LayoutWord,
) {
    if let (LayoutWord::Packed, Some(value)) = (layout, fields.get("template")) {
        let fault = ConfigFault::new("`template` has no effect: packed keys are named by `prefix`");
        reader.warn(
            value.key_spot(),
            fault.help("add `layout: open`, or remove it"),
        );
    }
}

/// The two places of store settings: the fields of `redis`, and the value with the URL.
struct RedisSection<'a, 'f> {
    fields: &'f FieldReader<'a>,
    value: ConfigValue<'a>,
}

impl RedisSection<'_, '_> {
    /// Reports an error at the field `name` if it is set, otherwise at the URL.
    fn refuse(&self, reader: &mut ConfigReader<'_>, name: &str, fault: ConfigFault) {
        let spot = match self.fields.get(name) {
            Some(field) => field.key_spot(),
            None => self.value.spot(),
        };
        reader.error(spot, fault);
    }

    /// Reports the field `name` if it is set, because it does not apply here.
    fn refuse_if_written(&self, reader: &mut ConfigReader<'_>, name: &str, why: &str, help: &str) {
        if let Some(field) = self.fields.get(name) {
            let fault = ConfigFault::new(format!("`{name}` {why}")).help(help);
            reader.error(field.key_spot(), fault);
        }
    }
}

fn settings(
    reader: &mut ConfigReader<'_>,
    both: &RedisSection<'_, '_>,
    mut url: Url,
    options: StoreOptions,
) -> Option<RedisSettings> {
    let word = mode_word(reader, both, &mut url, options.topology)?;
    let (user, password) = identity(reader, both, &url, &options);
    let tls = tls(reader, both, &url, options.tls.clone());
    let mode = mode(reader, both, word, &url, &options)?;
    let port = match mode {
        RedisMode::Sentinel { .. } => SENTINEL_PORT,
        RedisMode::Standalone | RedisMode::Cluster => PORT,
    };
    let mut addresses: Vec<RedisAddress> = Vec::new();
    for (host, written) in url.hosts {
        let port = written.unwrap_or(port);
        let address = RedisAddress { host, port };
        // An address with its default port and one without a port may be the same.
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Some(RedisSettings {
        mode,
        addresses,
        database: url.database.unwrap_or(0),
        user,
        password,
        tls,
        connections: options.connections,
        connect_timeout: options.connect_timeout,
        retries: options.retries,
        required_at_start: options.required_at_start,
        prefix: options.prefix,
        tag: options.tag,
        layout: options.layout,
        deny_cache: options.deny_cache,
    })
}

/// Returns the topology; never `Auto`.
fn mode_word(
    reader: &mut ConfigReader<'_>,
    both: &RedisSection<'_, '_>,
    url: &mut Url,
    written: TopologyWord,
) -> Option<TopologyWord> {
    match (written, url.scheme.sentinel) {
        (TopologyWord::Auto | TopologyWord::Sentinel, true) | (TopologyWord::Sentinel, false) => {
            Some(TopologyWord::Sentinel)
        }
        (TopologyWord::Standalone | TopologyWord::Cluster, true) => {
            let fault =
                ConfigFault::new("the URL is for sentinels, but `topology` is not `sentinel`");
            let help = "remove `topology`, or start the URL with `redis://`";
            both.refuse(reader, "topology", fault.help(help));
            None
        }
        (TopologyWord::Auto, false) if url.hosts.len() > 1 => Some(TopologyWord::Cluster),
        (TopologyWord::Cluster, false) => Some(TopologyWord::Cluster),
        (TopologyWord::Auto | TopologyWord::Standalone, false) => {
            warn_about_others(reader, both, url);
            Some(TopologyWord::Standalone)
        }
    }
}

fn warn_about_others(reader: &mut ConfigReader<'_>, both: &RedisSection<'_, '_>, url: &mut Url) {
    let ignored = url.hosts.len().saturating_sub(1);
    if ignored > 0 {
        let only = "`topology` is a single server: only the first address is used";
        let fault = ConfigFault::new(only).help("remove the others, or write `topology: cluster`");
        reader.warn(both.value.spot(), fault);
        url.hosts.truncate(1);
    }
}

/// Returns user and password, from the URL or from the fields.
fn identity(
    reader: &mut ConfigReader<'_>,
    both: &RedisSection<'_, '_>,
    url: &Url,
    options: &StoreOptions,
) -> (Option<String>, Option<Secret>) {
    for (name, is_twice) in [
        ("user", url.user.is_some() && options.user.is_some()),
        (
            "password",
            url.password.is_some() && both.fields.get("password").is_some(),
        ),
        (
            "password_file",
            url.password.is_some() && both.fields.get("password_file").is_some(),
        ),
    ] {
        if is_twice {
            let what = name.trim_end_matches("_file");
            let fault = ConfigFault::new(format!(
                "the {what} is set twice: in the URL and as `{name}`"
            ));
            both.refuse(reader, name, fault.help("write one of the two"));
        }
    }
    let user = url.user.clone().or_else(|| options.user.clone());
    let password = url.password.clone().or_else(|| options.password.clone());
    let says_password =
        both.fields.get("password").is_some() || both.fields.get("password_file").is_some();
    if user.is_some() && password.is_none() && !says_password {
        let fault = ConfigFault::new("the user has no password").help(
            "add `password_file` or `password`; in a URL, a password without a user is written `redis://:PASSWORD@HOST`",
        );
        both.refuse(reader, "user", fault);
    }
    (user, password)
}

fn tls(
    reader: &mut ConfigReader<'_>,
    both: &RedisSection<'_, '_>,
    url: &Url,
    written: Option<ClientTls>,
) -> Option<ClientTls> {
    if !url.scheme.tls {
        let help = "start the URL with `rediss://`, or remove `tls`";
        both.refuse_if_written(
            reader,
            "tls",
            "has no effect: the URL does not use TLS",
            help,
        );
        return None;
    }
    Some(written.unwrap_or_default())
}

fn mode(
    reader: &mut ConfigReader<'_>,
    both: &RedisSection<'_, '_>,
    word: TopologyWord,
    url: &Url,
    options: &StoreOptions,
) -> Option<RedisMode> {
    if word == TopologyWord::Sentinel {
        return sentinel(reader, both, url, options);
    }
    for name in [
        "master",
        "sentinel_user",
        "sentinel_password",
        "sentinel_password_file",
    ] {
        let help =
            "start the URL with `redis+sentinel://`, write `topology: sentinel`, or remove it";
        both.refuse_if_written(reader, name, "is only for sentinels", help);
    }
    if word == TopologyWord::Standalone {
        return Some(RedisMode::Standalone);
    }
    if url.database.is_some_and(|database| database > 0) {
        let fault = ConfigFault::new("a Cluster has no databases")
            .help("remove the number from the URL; use `prefix` to share a Cluster");
        reader.error(both.value.spot(), fault);
        return None;
    }
    Some(RedisMode::Cluster)
}

fn sentinel(
    reader: &mut ConfigReader<'_>,
    both: &RedisSection<'_, '_>,
    url: &Url,
    options: &StoreOptions,
) -> Option<RedisMode> {
    if options.sentinel_user.is_some()
        && both.fields.get("sentinel_password").is_none()
        && both.fields.get("sentinel_password_file").is_none()
    {
        let fault = ConfigFault::new("`sentinel_user` needs a password")
            .help("add `sentinel_password_file` or `sentinel_password`");
        both.refuse(reader, "sentinel_user", fault);
    }
    let master = match (&url.master, &options.master) {
        (Some(a), Some(b)) if a != b => {
            let fault = ConfigFault::new("the URL and `master` have different master names");
            both.refuse(reader, "master", fault.help("write it once"));
            return None;
        }
        (Some(master), _) | (None, Some(master)) => master.clone(),
        (None, None) => {
            if both.fields.get("master").is_none() {
                let fault = ConfigFault::new("the name of the master is missing")
                    .help("write it after the hosts, `redis+sentinel://a:26379,b:26379/mymaster`, or as `master: mymaster`");
                reader.error(both.value.spot(), fault);
            }
            return None;
        }
    };
    Some(RedisMode::Sentinel {
        master,
        user: options.sentinel_user.clone(),
        password: options.sentinel_password.clone(),
    })
}
