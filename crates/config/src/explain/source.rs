//! Describes the config sources in addition to the file.

use super::words;
use crate::source::PolicySource;

/// Describes all sources in a paragraph; `None` if there are none.
pub(super) fn explain(sources: &[PolicySource]) -> Option<String> {
    if sources.is_empty() {
        return None;
    }
    let first = "More policies, guards and routes come from these sources, after those of the \
        file, in this order:";
    let lines = sources.iter().map(|source| {
        let kind = match source.kind() {
            "keeper" => "a keeper",
            "http" => "a URL",
            "redis" => "Redis",
            "etcd" => "etcd",
            "mongodb" => "MongoDB",
            "xds" => "an xDS server",
            kind => kind,
        };
        let refresh = words::time(source.refresh);
        let writable = if source.is_writable() {
            ", writable"
        } else {
            ""
        };
        let without = if source.required {
            ""
        } else {
            "; if it is unavailable at startup, the rest is served"
        };
        let name = &source.name;
        let read = match source.kind() {
            "xds" => format!("changes arrive at once; retried at most {refresh} after a failure"),
            _ => format!("read every {refresh}"),
        };
        format!("`{name}`, {kind}: {read}{writable}{without}.")
    });
    let lines: Vec<String> = lines.collect();
    Some(format!("{first}\n  {}", lines.join("\n  ")))
}
