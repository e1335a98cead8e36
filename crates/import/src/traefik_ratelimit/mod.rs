//! Imports the `RateLimit` middlewares of Traefik, and the routers that use them.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | middlewares and routers, in YAML, JSON, labels of Docker and manifests of Kubernetes |
//! | `middleware` | a `RateLimit` middleware |
//! | `router` | the limits of a router, and the routers that it takes requests from |
//! | `rule` | the rule of a router as conditions |
//! | `translate` | the configuration |
//!
//! Traefik has a token bucket of `burst` tokens for each source, and lets a request wait for half the time
//! in which a token refills. Each router that uses a middleware has its own buckets, and so does each limit
//! here.

mod middleware;
mod router;
mod rule;
mod settings;
mod translate;

use super::document::{ImportErrors, ImportedFile};
use super::note::ImportNotes;
use super::{ImportedConfig, SourceFile};
use settings::TraefikItems;
use tidegate_config::ConfigErrors;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::ConfigFault;

/// The most documents of a file.
const DOCUMENTS_MAX: usize = 1_000;

/// Translates the `RateLimit` middlewares of a file, and the routers that use them: dynamic configuration in
/// YAML or JSON, a file with labels of Docker, or manifests of Kubernetes.
///
/// ```
/// use tidegate_import::{SourceFile, traefik_ratelimit};
///
/// let file = SourceFile {
///     name: "dynamic.yaml".to_owned(),
///     text: "
/// http:
///   routers:
///     shop: { rule: 'Host(`shop.example`)', middlewares: [slow], service: shop }
///   middlewares:
///     slow: { rateLimit: { average: 100, burst: 50 } }
/// "
///     .to_owned(),
/// };
/// let yaml = traefik_ratelimit(&file)?.to_yaml();
/// assert!(yaml.contains("rate: 100/s burst 50"));
/// assert!(yaml.contains("host: shop.example"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns all errors found in the file.
pub fn traefik_ratelimit(file: &SourceFile) -> Result<ImportedConfig, ConfigErrors> {
    let mut notes = ImportNotes::default();
    let mut wrong = ImportErrors::default();
    if is_toml(&file.text) {
        let fault = ConfigFault::new("TOML is not supported");
        let help = "write the same configuration as YAML or JSON";
        ImportedFile::add_error(file, 1, fault.help(help), &mut wrong);
    }
    let mut items = TraefikItems::default();
    let mut limits = Vec::new();
    let documents = if is_toml(&file.text) {
        Vec::new()
    } else {
        documents(&file.text)
    };
    for (at, text) in documents.into_iter().enumerate() {
        let part = SourceFile {
            name: file.name.clone(),
            text,
        };
        let (mut document, tree) = ImportedFile::open(&part, "", nothing(), &mut notes);
        if let Some(tree) = &tree {
            let before = items.middlewares.len();
            let found = settings::read(&mut document, tree, &mut items);
            if !found && at == 0 && !text_has_more(&file.text) {
                let root = ConfigValue::root(tree);
                document.error(root.spot(), nothing());
            }
            for item in items.middlewares.iter().skip(before) {
                limits.extend(middleware::read(&mut document, item));
            }
        }
        document.close(&mut wrong);
    }
    let found = translate::all(&items, &limits, file, &mut notes);
    let found = found
        .map_err(|fault| ImportedFile::add_error(file, 1, fault, &mut wrong))
        .ok();
    wrong.finish(&file.name)?;
    let (base, policy) = found.unzip();
    ImportedConfig {
        from: format!("RateLimit middlewares of Traefik: {}", file.name),
        base: base.unwrap_or_default(),
        policies: policy.into_iter().collect(),
        notes: notes.into_notes(),
    }
    .checked_whole(&file.name, &[(translate::PASSWORD, "secret")])
}

/// Returns true if a file is TOML: its first line that is no comment is a table.
fn is_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| line.starts_with("[http") || line.starts_with("[[http"))
}

fn text_has_more(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == "---")
}

/// Returns the documents of a file, each with as many empty lines before it as it has in the file.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for (number, line) in text.lines().enumerate() {
        let is_separator = line.trim_end() == "---";
        if is_separator && documents.len() < DOCUMENTS_MAX {
            documents.push("\n".repeat(number));
        }
        if let Some(last) = documents.last_mut() {
            last.push_str(if is_separator { "" } else { line });
            last.push('\n');
        }
    }
    let has_content = |text: &String| {
        text.lines().any(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        })
    };
    if documents.iter().any(has_content) {
        documents.retain(has_content);
    } else {
        documents.truncate(1);
    }
    documents
}

fn nothing() -> ConfigFault {
    ConfigFault::new("no middlewares of Traefik found").help(
        "expected `http.middlewares`, labels that begin with `traefik.http.`, or `kind: Middleware`; for the plugin with a keeper, use `tidegate import traefik-plugin`",
    )
}
