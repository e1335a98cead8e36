//! Imports the limits of nginx: `limit_req_zone` and `limit_req`, with the servers and locations that they
//! apply to.
//!
//! | module | contents |
//! |---|---|
//! | `syntax`, `include` | directives, and the files that they are in |
//! | `http` | servers and locations, and the limits that each inherits |
//! | `servers` | the addresses and names of servers |
//! | `location` | the paths of a location |
//! | `key`, `source` | the key of a zone, and the requests that `map` and `geo` exempt |
//! | `zone` | the rate and the key of a zone |
//! | `translate`, `limits`, `sections` | the configuration |
//! | `report` | errors and notes |
//!
//! nginx counts the excess of a key: a request adds one, and the rate reduces it. A request is refused if the
//! excess would be over `burst`, and delayed if it is over `delay`. A token bucket counts the same number from
//! the other end. Its capacity is one more, because the first request adds nothing in nginx: `burst=20 nodelay`
//! is `burst 21`. With `delay=N` the capacity is N + 1, and up to `burst` - N requests wait, as in nginx.

mod http;
mod include;
mod key;
mod limits;
mod location;
mod report;
mod sections;
mod servers;
mod source;
mod syntax;
mod translate;
mod zone;

use super::{ImportedConfig, SourceFile};
use report::NginxReport;
use tidegate_config::ConfigErrors;

/// Translates the limits of an nginx configuration. `include` reads the files that a pattern of an `include`
/// directive stands for, or returns why it cannot.
///
/// ```
/// use tidegate_import::{SourceFile, nginx};
///
/// let file = SourceFile {
///     name: "nginx.conf".to_owned(),
///     text: "http {
///         limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s;
///         server { limit_req zone=one burst=20 nodelay; }
///     }".to_owned(),
/// };
/// let yaml = nginx(&file, &mut |_| Ok(Vec::new()))?.to_yaml();
/// assert!(yaml.contains("rate: 10/s burst 21"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
///
/// # Errors
///
/// Returns the errors of all files together.
pub fn nginx(
    file: &SourceFile,
    include: &mut dyn FnMut(&str) -> Result<Vec<SourceFile>, String>,
) -> Result<ImportedConfig, ConfigErrors> {
    let mut report = NginxReport::default();
    let directives = include::read(file, include, &mut report);
    let http = http::read(&directives, &mut report);
    let found = translate::all(&http, &mut report);
    report.wrong.finish(&file.name)?;
    let (base, policy) = found;
    ImportedConfig {
        from: format!("nginx: {}", file.name),
        base,
        policies: vec![policy],
        notes: report.notes.into_notes(),
    }
    .checked_whole(&file.name, &[])
}
