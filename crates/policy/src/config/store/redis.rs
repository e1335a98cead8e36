//! `store` as a whole: the URL and the settings next to it must agree.

use super::options::{ModeWord, StoreOptions, warn_beside_memory};
use super::target::{LayoutWord, RedisAddress, RedisMode, RedisSettings, RedisTls, StoreTarget};
use super::url::{self, Url};
use crate::config::fault::ConfigFault;
use crate::config::reader::{ConfigReader, ConfigValue};
use crate::config::secret::Secret;
use crate::config::table::FieldReader;
use crate::template::Template;

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

/// Reads the store, and the default template for the names of keys.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
) -> (StoreTarget, Option<Template>) {
    let mut options = StoreOptions::read(reader, fields);
    match said(reader, fields) {
        StoreText::Broken => (StoreTarget::Memory, None),
        StoreText::Memory => {
            warn_beside_memory(reader, fields);
            (StoreTarget::Memory, None)
        }
        StoreText::Redis(url, value) => {
            let template = options.template.take();
            warn_about_template(reader, fields, options.layout);
            let settings = settings(reader, &Both { fields, value }, url, options);
            let target = settings.map_or(StoreTarget::Memory, |settings| {
                StoreTarget::Redis(Box::new(settings))
            });
            (target, template)
        }
    }
}

fn said<'a>(reader: &mut ConfigReader<'_>, fields: &FieldReader<'a>) -> StoreText<'a> {
    let (one, several) = (fields.get("url"), fields.get("urls"));
    if let (Some(_), Some(several)) = (&one, &several) {
        let fault =
            ConfigFault::new("`url` and `urls` are both there").help("write one of the two");
        reader.error(several.key_spot(), fault);
        return StoreText::Broken;
    }
    let Some(value) = one.or(several) else {
        return StoreText::Memory;
    };
    let items = match value.key {
        Some(key) if key.text == "url" => vec![value.clone()],
        _ => reader.list(&value),
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
            let fault = ConfigFault::new("`memory` is no server").help("remove it, or the others");
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
                let fault = ConfigFault::new("there is no URL here")
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

/// The two places of store settings: the fields, and the value with the URL.
struct Both<'a, 'f> {
    fields: &'f FieldReader<'a>,
    value: ConfigValue<'a>,
}

impl Both<'_, '_> {
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
    both: &Both<'_, '_>,
    mut url: Url,
    options: StoreOptions,
) -> Option<RedisSettings> {
    let word = mode_word(reader, both, &mut url, options.mode)?;
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
    both: &Both<'_, '_>,
    url: &mut Url,
    written: ModeWord,
) -> Option<ModeWord> {
    match (written, url.scheme.sentinel) {
        (ModeWord::Auto | ModeWord::Sentinel, true) | (ModeWord::Sentinel, false) => {
            Some(ModeWord::Sentinel)
        }
        (ModeWord::Standalone | ModeWord::Cluster, true) => {
            let fault = ConfigFault::new("the URL names sentinels, and `mode` says otherwise");
            let help = "remove `mode`, or begin the URL with `redis://`";
            both.refuse(reader, "mode", fault.help(help));
            None
        }
        (ModeWord::Auto, false) if url.hosts.len() > 1 => Some(ModeWord::Cluster),
        (ModeWord::Cluster, false) => Some(ModeWord::Cluster),
        (ModeWord::Auto | ModeWord::Standalone, false) => {
            warn_about_others(reader, both, url);
            Some(ModeWord::Standalone)
        }
    }
}

fn warn_about_others(reader: &mut ConfigReader<'_>, both: &Both<'_, '_>, url: &mut Url) {
    let ignored = url.hosts.len().saturating_sub(1);
    if ignored > 0 {
        let only =
            "only the first of the addresses is used: `mode` says that the server stands alone";
        let fault = ConfigFault::new(only)
            .help("remove the others, or write `mode: cluster` if they are nodes of one");
        reader.warn(both.value.spot(), fault);
        url.hosts.truncate(1);
    }
}

/// Returns user and password, from the URL or from the fields.
fn identity(
    reader: &mut ConfigReader<'_>,
    both: &Both<'_, '_>,
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
                "the {what} is there twice: in the URL and as `{name}`"
            ));
            both.refuse(reader, name, fault.help("write one of the two"));
        }
    }
    let user = url.user.clone().or_else(|| options.user.clone());
    let password = url.password.clone().or_else(|| options.password.clone());
    let says_password =
        both.fields.get("password").is_some() || both.fields.get("password_file").is_some();
    if user.is_some() && password.is_none() && !says_password {
        let fault = ConfigFault::new("there is a user and no password").help(
            "add `password_file` or `password`; in a URL, a password without a user is written `redis://:PASSWORD@HOST`",
        );
        both.refuse(reader, "user", fault);
    }
    (user, password)
}

fn tls(
    reader: &mut ConfigReader<'_>,
    both: &Both<'_, '_>,
    url: &Url,
    written: Option<RedisTls>,
) -> Option<RedisTls> {
    if !url.scheme.tls {
        let help = "begin the URL with `rediss://`, or remove `tls`";
        both.refuse_if_written(
            reader,
            "tls",
            "has no effect: the URL says to speak without TLS",
            help,
        );
        return None;
    }
    Some(written.unwrap_or_default())
}

fn mode(
    reader: &mut ConfigReader<'_>,
    both: &Both<'_, '_>,
    word: ModeWord,
    url: &Url,
    options: &StoreOptions,
) -> Option<RedisMode> {
    if word == ModeWord::Sentinel {
        return sentinel(reader, both, url, options);
    }
    for name in [
        "master",
        "sentinel_user",
        "sentinel_password",
        "sentinel_password_file",
    ] {
        let help = "begin the URL with `redis+sentinel://`, write `mode: sentinel`, or remove it";
        both.refuse_if_written(reader, name, "is for sentinels, and there are none", help);
    }
    if word == ModeWord::Standalone {
        return Some(RedisMode::Standalone);
    }
    if url.database.is_some_and(|database| database > 0) {
        let fault = ConfigFault::new("a Cluster has no databases").help(
            "remove the number from the URL; `prefix` keeps several users of one Cluster apart",
        );
        reader.error(both.value.spot(), fault);
        return None;
    }
    Some(RedisMode::Cluster)
}

fn sentinel(
    reader: &mut ConfigReader<'_>,
    both: &Both<'_, '_>,
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
            let fault = ConfigFault::new("the URL and `master` name different masters");
            both.refuse(reader, "master", fault.help("write it once"));
            return None;
        }
        (Some(master), _) | (None, Some(master)) => master.clone(),
        (None, None) => {
            if both.fields.get("master").is_none() {
                let fault = ConfigFault::new("sentinels need to be told the name of the master")
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
