//! `sources`: the sources of policies in addition to the file.
//!
//! | module | contents |
//! |---|---|
//! | this one | the list of sources |
//! | `origin` | the endpoint of a source |
//! | `shelf` | sources that are document stores |
//! | `rules` | sources with rules of `FluxGate` |
//! | `xds` | xDS servers |

mod origin;
mod rules;
pub(crate) mod shelf;
mod xds;

use super::store;
use crate::environment::Environment;
use crate::environment::overrides;
use crate::language::names::refuse_too_many;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar;
use crate::language::table::FieldReader;
use crate::language::words::FLAG;
use crate::source::PolicySource;
use crate::syntax::YamlNode;
use crate::tables::sources::SOURCE;
use std::collections::BTreeSet;
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::ConfigFault;

/// The maximum number of sources.
const SOURCES_MAX: usize = 16;

/// The name of the file in messages. No source may have it.
const FILE: &str = "file";

/// Reads `sources`. `store` is the Redis of sources that set no URL.
pub(crate) fn read_all(
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
    let crate::syntax::NodeKind::Map(entries) = &tree.kind else {
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
    let written = reader.setting(&fields, "name", scalar::name);
    let (refresh, timeout) = origin::timing(reader, &fields);
    let origin = origin::read(reader, &fields, store)?;
    let source = PolicySource {
        name: String::new(),
        origin: origin.origin,
        refresh: refresh.unwrap_or(origin.refresh),
        timeout: timeout.unwrap_or(origin.timeout),
        required: is_required.unwrap_or(true),
    };
    let name = written.unwrap_or_else(|| source.kind().to_owned());
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
        FILE => ConfigFault::new(format!("{quoted} is reserved for the config file")),
        _ => ConfigFault::new(format!("duplicate name: two sources are named {quoted}")),
    };
    let spot = fields
        .get("name")
        .map_or_else(|| value.spot(), |it| it.spot());
    reader.error(spot, fault.help("give it another `name`"));
}
