//! Document stores, which keep texts by name: a hash in Redis, keys in etcd, or a collection in
//! `MongoDB`.
//!
//! They are the same for policies and for plans.

use crate::language::names::refuse_too_many;
use crate::language::reader::ConfigReader;
use crate::language::secret_setting::secret;
use crate::language::table::FieldReader;
use crate::language::words::FLAG;
use crate::sections::plans::{http_url, mongodb_url, not_empty};
use crate::sections::store;
use crate::sections::tls::client_tls;
use crate::tables::sources::{DOCUMENTS, WRITABLE};
use tidegate_policy::documents::{
    DocumentLocation, DocumentStoreSettings, EtcdSource, MongoDocuments,
};
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::Secret;
use tidegate_policy::tls::ClientTls;

/// The longest key, prefix or path, in bytes.
const KEY_MAX: usize = 512;

/// The maximum number of etcd members.
const ENDPOINTS_MAX: usize = 16;

/// Reads a hash in Redis. `store` is the default Redis, and `usual` the default hash.
pub(crate) fn redis(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    store: &StoreSettings,
    usual: &str,
) -> Option<DocumentStoreSettings> {
    let target = target(reader, fields, store);
    let key = reader.setting(fields, "key", |text| sound(text, &format!("`{usual}`")));
    let place = target.map(|target| DocumentLocation::Redis {
        redis: Box::new(target),
        key: key.unwrap_or_else(|| usual.to_owned()),
    });
    shelf(reader, fields, place)
}

/// Reads a range of keys in etcd; `usual` is their default prefix.
pub(crate) fn etcd(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    usual: &str,
) -> Option<DocumentStoreSettings> {
    let endpoints = fields.get("endpoints").map_or_else(Vec::new, |value| {
        let items = reader.one_or_many(&value);
        refuse_too_many(reader, &value, items.len(), ENDPOINTS_MAX);
        let items = items.iter().take(ENDPOINTS_MAX);
        items.filter_map(|it| reader.parse(it, http_url)).collect()
    });
    let prefix = reader.setting(fields, "prefix", |text| sound(text, &format!("`{usual}`")));
    let user = reader.setting(fields, "user", |text| not_empty(text, "a name"));
    let password = secret(reader, fields, "password", "password_file");
    let tls = tls(reader, fields, &endpoints);
    let place = (!endpoints.is_empty()).then(|| {
        let trimmed = |it: &String| it.trim_end_matches('/').to_owned();
        DocumentLocation::Etcd(Box::new(EtcdSource {
            endpoints: endpoints.iter().map(trimmed).collect(),
            prefix: prefix.unwrap_or_else(|| usual.to_owned()),
            user,
            password,
            tls,
        }))
    });
    shelf(reader, fields, place)
}

/// Reads a collection in `MongoDB`, named by `field`; `usual` is its default.
pub(crate) fn mongodb(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    field: &str,
    usual: &str,
) -> Option<DocumentStoreSettings> {
    let (url, database) = mongodb_database(reader, fields);
    let collection = match fields.get(field) {
        Some(value) => reader.parse(&value, |text| {
            not_empty(text, &format!("a collection, for example `{usual}`"))
        }),
        None => Some(usual.to_owned()),
    };
    let place = url
        .zip(database)
        .zip(collection)
        .map(|((url, database), collection)| {
            DocumentLocation::MongoDb(Box::new(MongoDocuments {
                url,
                database,
                collection,
            }))
        });
    shelf(reader, fields, place)
}

/// Reads the URL and the database of `MongoDB`.
pub(crate) fn mongodb_database(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
) -> (Option<Secret>, Option<String>) {
    let url = secret(reader, fields, "url", "url_file");
    let url = url.and_then(|url| match mongodb_url(&url) {
        Ok(()) => Some(url),
        Err(fault) => {
            let value = fields.get("url").or_else(|| fields.get("url_file"))?;
            reader.error(value.key_spot(), fault);
            None
        }
    });
    let database = reader.setting(fields, "database", |text| not_empty(text, "a database"));
    (url, database)
}

/// Reports `others` among the `fields` of `MongoDB`: they exclude `documents`.
pub(crate) fn nothing_else<'a>(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    others: impl IntoIterator<Item = &'a str>,
) {
    for name in others {
        if let Some(value) = fields.get(name) {
            let fault = ConfigFault::new(format!("`{name}` and `{DOCUMENTS}` are both set"));
            reader.error(value.key_spot(), fault.help("write one of the two"));
        }
    }
}

/// Reports `writable` for foreign collections, which are never written.
pub(crate) fn nothing_written(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    if let Some(value) = fields.get(WRITABLE.name) {
        let fault = ConfigFault::new(format!(
            "`{}` is only for Tidegate documents",
            WRITABLE.name
        ));
        let fault = fault.help(format!(
            "other collections are read-only; add `{DOCUMENTS}`, or remove it"
        ));
        reader.error(value.key_spot(), fault);
    }
}

fn shelf(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    place: Option<DocumentLocation>,
) -> Option<DocumentStoreSettings> {
    let writable = reader.setting(fields, WRITABLE.name, |word| FLAG.parse(word));
    Some(DocumentStoreSettings {
        place: place?,
        writable: writable.unwrap_or(true),
    })
}

/// Reads the Redis of a source.
pub(super) fn target(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    store: &StoreSettings,
) -> Option<StoreSettings> {
    let Some(value) = fields.get("url").or_else(|| fields.get("url_file")) else {
        if store.target.redis().is_some() {
            return Some(store.clone());
        }
        let fault = ConfigFault::new("`url` is missing, and the store is not Redis");
        let fault = fault.help("for example `url: redis://127.0.0.1:6379`");
        reader.error(fields.map().key_spot(), fault);
        return None;
    };
    let url = secret(reader, fields, "url", "url_file")?;
    // The message does not quote the URL: it may contain a password.
    let target = store::from_url(url.expose().trim()).ok();
    let target = target.filter(|it| it.target.redis().is_some());
    if target.is_none() {
        let fault = ConfigFault::new("this is not a Redis URL");
        let fault = fault.help("as in `store.url`, for example `redis://127.0.0.1:6379`");
        reader.error(value.spot(), fault);
    }
    target
}

/// Reads the TLS settings for `urls`.
pub(crate) fn tls(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    urls: &[String],
) -> ClientTls {
    let Some(value) = fields.get("tls") else {
        return ClientTls::default();
    };
    if !urls.is_empty() && !urls.iter().any(|url| url.starts_with("https://")) {
        let fault = ConfigFault::new("`tls` has no effect: the URL does not use TLS");
        let help = "start the URL with `https://`, or remove `tls`";
        reader.error(value.key_spot(), fault.help(help));
    }
    client_tls(reader, &value)
}

/// Reads a key or a part of one: 1 to [`KEY_MAX`] bytes, without control characters.
pub(super) fn sound(text: &str, example: &str) -> Result<String, ConfigFault> {
    let is_sound = (1..=KEY_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    if is_sound {
        return Ok(text.to_owned());
    }
    let fault = ConfigFault::new(format!("{} cannot be a key", ConfigFault::quote(text)));
    Err(fault.help(format!("up to {KEY_MAX} bytes, for example {example}")))
}
