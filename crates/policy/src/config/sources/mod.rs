//! `sources`: the sources of policies in addition to the file.
//!
//! | module | contents |
//! |---|---|
//! | this one | the list of sources |
//! | `origin` | the endpoint of a source |
//! | `shelf` | sources that are document stores |
//! | `rules` | sources with rules of `FluxGate` |
//! | `table` | the fields |

mod origin;
mod rules;
pub(super) mod shelf;
mod table;

pub(super) use table::{
    ENDPOINTS, PASSWORD, PASSWORD_FILE, REDIS_URL, REDIS_URL_FILE, SOURCE, TLS, TOKEN, TOKEN_FILE,
    USER, WRITABLE,
};

use super::environment::Environment;
use super::fault::ConfigFault;
use super::overrides;
use super::policy::refuse_too_many;
use super::reader::{ConfigReader, ConfigValue};
use super::scalar;
use super::store::{self, StoreSettings};
use super::syntax::YamlNode;
use super::table::FieldReader;
use super::words::FLAG;
use crate::source::PolicySource;
use std::collections::BTreeSet;

/// The maximum number of sources.
const SOURCES_MAX: usize = 16;

/// The name of the file in messages. No source may have it.
const FILE: &str = "file";

/// Reads `sources`. `store` is the Redis of sources that set no URL.
pub(super) fn read_all(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    store: &StoreSettings,
) -> Vec<PolicySource> {
    let items = reader.list(value);
    refuse_too_many(reader, value, items.len(), SOURCES_MAX);
    let mut names = BTreeSet::from([FILE.to_owned()]);
    let items = items.iter().take(SOURCES_MAX);
    items
        .filter_map(|item| source(reader, item, store, &mut names))
        .collect()
}

/// Reads only `sources`, from a configuration that is not complete yet.
pub(crate) fn read_from(
    reader: &mut ConfigReader<'_>,
    mut tree: YamlNode,
    environment: &dyn Environment,
) -> Vec<PolicySource> {
    overrides::apply(&mut tree, environment);
    let root = ConfigValue::root(&tree);
    let super::syntax::NodeKind::Map(entries) = &tree.kind else {
        // The wrong kind is reported when the whole configuration is read.
        return Vec::new();
    };
    let section = |name: &str| {
        let entry = entries.iter().find(|entry| entry.key.text == name)?;
        Some(root.child(&entry.key, &entry.value))
    };
    let Some(sources) = section("sources") else {
        return Vec::new();
    };
    let (store, _) = store::read(reader, section("store").as_ref());
    read_all(reader, &sources, &store)
}

fn source(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    store: &StoreSettings,
    names: &mut BTreeSet<String>,
) -> Option<PolicySource> {
    let fields = reader.fields(value, &SOURCE)?;
    let is_required = reader.setting(&fields, "required", |word| FLAG.parse(word));
    let told = reader.setting(&fields, "name", scalar::name);
    let origin = origin::read(reader, &fields, store)?;
    let source = PolicySource {
        name: String::new(),
        origin: origin.origin,
        refresh: origin.refresh,
        timeout: origin.timeout,
        required: is_required.unwrap_or(true),
    };
    let name = told.unwrap_or_else(|| source.kind().to_owned());
    if !names.insert(name.clone()) {
        refuse_name(reader, value, &fields, &name);
        return None;
    }
    Some(PolicySource { name, ..source })
}

fn refuse_name(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    fields: &FieldReader<'_>,
    name: &str,
) {
    let quoted = ConfigFault::quote(name);
    let fault = match name {
        FILE => ConfigFault::new(format!("{quoted} is what the file itself is called")),
        _ => ConfigFault::new(format!("there are two sources with the name {quoted}")),
    };
    let spot = fields
        .get("name")
        .map_or_else(|| value.spot(), |it| it.spot());
    reader.error(spot, fault.help("give it another `name`"));
}
