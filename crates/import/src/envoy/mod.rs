//! Imports the files of envoyproxy/ratelimit. Each has a domain with a tree of descriptors.
//!
//! | module | contents |
//! |---|---|
//! | `fields` | the fields of maps |
//! | `descriptor` | a descriptor and those below it, flattened into a list of limits |
//! | `rate` | `rate_limit`: the rate, its name and the limits that it replaces |
//! | `translate` | a domain as a policy |
//!
//! Its lookup is the same as Tidegate's. It goes entry by entry and never backtracks. The exact value
//! comes first, then patterns in the order of the file, then any value. Only the limit at the last
//! entry counts. A limit is therefore translated by the path that leads to it. A descriptor with
//! neither a limit nor descriptors below it becomes an unlimited limit. Otherwise its requests would
//! match a less specific descriptor.

mod descriptor;
mod fields;
mod rate;
mod translate;

use super::document::{ImportErrors, ImportedFile, line};
use super::names::{self, NameRequest};
use super::note::ImportNotes;
use super::yaml::ENVOY_BASE;
use super::{ImportedConfig, SourceFile};
use descriptor::{DescriptorLimit, DescriptorWalk, Siblings};
use fields::{EnvoyMap, ROOT};
use rate::EnvoyRate;
use tidegate_config::ConfigErrors;
use tidegate_config::reading::{ConfigValue, POLICIES_MAX};
use tidegate_policy::limit::ChargeTime;
use tidegate_policy::text::{ConfigFault, TextSpan, YamlNode};

/// The prefix of messages about the form of a file.
const TROUBLE: &str = "error loading config file: ";

/// The longest name of a domain, in characters.
const DOMAIN_MAX: usize = 256;

/// The options of the translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvoyOptions {
    /// True if several files may describe the same domain, as with `MERGE_DOMAIN_CONFIG`.
    pub merge_domains: bool,
    /// True if every limit counts independently of the others: `evaluate: each` for all domains.
    pub each: bool,
    /// The time at which limits charge a cost that does not fit. Default:
    /// [`ChargeTime::EvenIfRefused`], because envoyproxy/ratelimit counts every call.
    pub charge: ChargeTime,
    /// True if every limit that is not in shadow mode is a quota, as with `QUOTA_MODE`.
    pub quota: bool,
}

impl Default for EnvoyOptions {
    fn default() -> Self {
        Self {
            merge_domains: false,
            each: false,
            charge: ChargeTime::EvenIfRefused,
            quota: false,
        }
    }
}

/// A domain and its limits.
#[derive(Debug)]
struct Domain {
    name: String,
    /// The first file that describes it, and the line.
    place: (String, usize),
    siblings: Siblings,
    found: Vec<DescriptorLimit>,
}

/// Translates the files of envoyproxy/ratelimit, in this order. `from` names the whole import.
///
/// ```
/// use tidegate_config::Config;
/// use tidegate_import::{EnvoyOptions, SourceFile, envoy};
///
/// let file = SourceFile {
///     name: "edge.yaml".to_owned(),
///     text: "
/// domain: edge
/// descriptors:
///   - key: remote_address
///     rate_limit: { unit: minute, requests_per_unit: 10 }
/// "
///     .to_owned(),
/// };
/// let imported = envoy("config", &[file], EnvoyOptions::default())?;
/// let yaml = imported.to_yaml();
/// assert!(yaml.contains("match: { descriptor: [remote_address] }"));
/// assert!(yaml.contains("rate: 10/min"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns the errors of all files together.
pub fn envoy(
    from: &str,
    files: &[SourceFile],
    options: EnvoyOptions,
) -> Result<ImportedConfig, ConfigErrors> {
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    let mut domains: Vec<Domain> = Vec::new();
    for file in files {
        let nothing = no_domain();
        let (mut document, tree) = ImportedFile::open(file, TROUBLE, nothing, &mut notes);
        if let Some(tree) = tree {
            read(&mut document, &tree, &mut domains, options);
        }
        document.close(&mut wrong);
    }
    wrong.finish(from)?;
    for found in domains.iter_mut().flat_map(|domain| &mut domain.found) {
        let limit = found.limit.as_ref();
        let is_rate = limit.is_some_and(|limit| matches!(limit.rate, EnvoyRate::Of { .. }));
        found.quota |= options.quota && is_rate && !found.shadow;
    }
    check_count(from, &domains)?;
    let wanted = domains
        .iter()
        .map(|domain| NameRequest::given(&domain.name));
    let names = names::all(&wanted.collect::<Vec<_>>(), &["none"]);
    let mut policies = Vec::new();
    for (domain, name) in domains.into_iter().zip(names) {
        policies.push(translate::policy(domain, name, options, &mut notes));
    }
    Ok(ImportedConfig {
        from: format!("envoyproxy/ratelimit: {from}"),
        base: ENVOY_BASE.to_owned(),
        policies,
        notes: notes.into_notes(),
    })
}

fn no_domain() -> ConfigFault {
    ConfigFault::new("config file cannot have empty domain")
        .help("a file begins with `domain: NAME`, the name that Envoy's filter has")
}

/// Reads a file.
fn read(
    document: &mut ImportedFile<'_>,
    tree: &YamlNode,
    domains: &mut Vec<Domain>,
    options: EnvoyOptions,
) {
    let root = ConfigValue::root(tree);
    let Some(map) = EnvoyMap::read(document, &root, &ROOT) else {
        return;
    };
    let name = map.text(document, "domain");
    let index = match &name {
        Some((name, value)) => domain(document, name, value, domains, options),
        None => {
            // A value that is not text is already reported.
            if map.says_nothing("domain") {
                document.error(map.spot(), no_domain());
            }
            None
        }
    };
    let mut astray = Domain::new(String::new(), (String::new(), 1));
    let domain = index.and_then(|index| domains.get_mut(index));
    let domain = domain.unwrap_or(&mut astray);
    if let Some(value) = map.get("descriptors") {
        let mut walk = DescriptorWalk::new(document, &domain.name, &mut domain.found);
        walk.descriptors(&value, &mut domain.siblings);
        translate::check(document, &value, domain.found.len(), &domain.name);
    }
}

/// Returns the index of the domain that a file describes: a new one, or one that it continues.
fn domain(
    document: &mut ImportedFile<'_>,
    name: &str,
    value: &ConfigValue<'_>,
    domains: &mut Vec<Domain>,
    options: EnvoyOptions,
) -> Option<usize> {
    let is_printable = !name.chars().any(char::is_control) && name.trim() == name;
    if name.chars().count() > DOMAIN_MAX || !is_printable {
        let fault = ConfigFault::new(format!("{} cannot be a domain", ConfigFault::quote(name)));
        let help = format!("use up to {DOMAIN_MAX} printable characters");
        document.error(value.spot(), fault.help(help));
        return None;
    }
    if let Some(index) = domains.iter().position(|domain| domain.name == name) {
        if options.merge_domains {
            return Some(index);
        }
        let first = domains.get(index).map(|domain| domain.place.clone());
        let (file, line) = first.unwrap_or_default();
        let fault = ConfigFault::new(format!("duplicate domain '{name}' in config file"));
        let help = format!(
            "the first is in {file}, line {line}; `--merge-domains` combines files with the same \
             domain"
        );
        document.error(value.spot(), fault.help(help));
        return None;
    }
    let place = (document.file().to_owned(), line(value.node.place));
    domains.push(Domain::new(name.to_owned(), place));
    domains.len().checked_sub(1)
}

/// Checks that there is a domain, and that there are not too many.
fn check_count(from: &str, domains: &[Domain]) -> Result<(), ConfigErrors> {
    let fault = match domains.len() {
        0 => ConfigFault::new("no domain found").help("pass a folder with one file per domain"),
        count if count > POLICIES_MAX => ConfigFault::new(format!(
            "there are {count} domains; at most {POLICIES_MAX} are supported"
        )),
        _ => return Ok(()),
    };
    let nowhere = SourceFile {
        name: from.to_owned(),
        text: String::new(),
    };
    let place = TextSpan::at(1, 1, 1);
    let (mut notes, mut wrong) = (ImportNotes::default(), ImportErrors::default());
    let (mut document, _) = ImportedFile::open(&nowhere, "", fault.clone(), &mut notes);
    if domains.len() > POLICIES_MAX {
        document.error((place, String::new()), fault);
    }
    document.close(&mut wrong);
    wrong.finish(from)
}

impl Domain {
    fn new(name: String, place: (String, usize)) -> Self {
        Self {
            name,
            place,
            siblings: Siblings::default(),
            found: Vec::new(),
        }
    }
}
