//! Describes the config sources in addition to the file.

use super::words;
use crate::source::PolicySource;

/// Describes all sources in a paragraph; `None` if there are none.
pub(super) fn explain(sources: &[PolicySource]) -> Option<String> {
    if sources.is_empty() {
        return None;
    }
    let first = "Policies, guards and routes come from elsewhere too, after those of the file, in this order:";
    let lines = sources.iter().map(|source| {
        let kind = match source.kind() {
            "keeper" => "a keeper",
            "http" => "a URL",
            "redis" => "Redis",
            "etcd" => "etcd",
            "mongodb" => "MongoDB",
            kind => kind,
        };
        let refresh = words::time(source.refresh);
        let writable = if source.is_writable() {
            ", and can be written to"
        } else {
            ""
        };
        let without = if source.required {
            ""
        } else {
            "; without it the rest is served"
        };
        let name = &source.name;
        format!("`{name}`, {kind}: asked every {refresh}{writable}{without}.")
    });
    let lines: Vec<String> = lines.collect();
    Some(format!("{first}\n  {}", lines.join("\n  ")))
}
