//! Writes drafts as readable YAML.
//!
//! People continue to edit the output, so it is written by hand: fields in the order of the documentation,
//! short maps on one line, a comment with the origin of each limit. Every importer writes with it, and tests
//! load each output again.

use super::base::milliseconds;
use super::draft::{
    AlgorithmDraft, ConditionDraft, DescriptorStep, KeyDraft, LimitDraft, PolicyDraft, RequestScope,
};
use super::note::ImportNote;
use super::text::{comment, escaped, line, quote};
use tidegate_policy::limit::ChargeTime;

/// The listeners of Envoy's limiters, and a store timeout below Envoy's, which is 20 ms by default.
pub const ENVOY_BASE: &str = "\
listen:
  http: 127.0.0.1:8080
  grpc: 127.0.0.1:8081
store:
  timeout: 10ms
";

/// Returns the whole configuration: its origin, the notes, the sections before the policies from
/// `base`, and the policies.
pub(super) fn write(
    from: &str,
    base: &str,
    policies: &[PolicyDraft],
    notes: &[ImportNote],
) -> String {
    let mut text = String::new();
    comment(&mut text, &format!("Imported from {from}"));
    for note in notes {
        comment(&mut text, &note.to_string());
    }
    text.push_str(base);
    write_policies(&mut text, policies);
    text
}

/// Returns policies as comments, below a line with the reason; empty if there are none.
pub(super) fn commented(why: &str, policies: &[PolicyDraft]) -> String {
    let mut policy = String::new();
    write_policies(&mut policy, policies);
    let mut text = String::new();
    if !policy.is_empty() {
        comment(&mut text, why);
        policy.lines().for_each(|it| comment(&mut text, it));
    }
    text
}

fn write_policies(text: &mut String, policies: &[PolicyDraft]) {
    if policies.is_empty() {
        return;
    }
    text.push_str("policies:\n");
    for policy in policies {
        line(text, 2, &format!("- name: {}", quote(&policy.name)));
        if policy.domain != policy.name {
            let domain = quote(&escaped(&policy.domain));
            line(text, 4, &format!("domain: {domain}"));
        }
        line(text, 4, &format!("evaluate: {}", policy.evaluate));
        if policy.charge == ChargeTime::EvenIfRefused {
            line(text, 4, "charge: even-if-refused");
        }
        line(text, 4, "limits:");
        for limit in &policy.limits {
            write_limit(text, limit);
        }
    }
}

fn write_limit(text: &mut String, limit: &LimitDraft) {
    for it in limit.comment.iter().flat_map(|it| it.lines()) {
        line(text, 6, &format!("# {}", it.replace(char::is_control, " ")));
    }
    line(text, 6, &format!("- name: {}", quote(&limit.name)));
    let mut field = |field: String| line(text, 8, &field);
    if let RequestScope::Nobody = limit.whom {
        field("mode: off".to_owned());
        return field("rate: 1/s".to_owned());
    }
    if !limit.enabled {
        field("mode: off".to_owned());
    }
    write_scope(&mut field, &limit.whom);
    if limit.rates.is_empty() {
        field("rate: unlimited".to_owned());
    } else {
        write_counting(&mut field, limit);
    }
    if limit.shadow && limit.enabled {
        field("mode: shadow".to_owned());
    }
    if limit.combines_any {
        field("combine: any".to_owned());
    }
    if !limit.replaces.is_empty() {
        let names: Vec<String> = limit.replaces.iter().map(|name| quote(name)).collect();
        field(format!("replaces: [{}]", names.join(", ")));
    }
    if let Some(waiting) = limit.waiting {
        field("on_refusal: wait".to_owned());
        field(format!("max_wait: {}", milliseconds(waiting.max_wait)));
        field(format!("max_waiting: {}", waiting.max_waiting));
    }
    if let Some(template) = &limit.template {
        field(format!("template: {}", quote(&escaped(template))));
    }
    if let Some(status) = limit.status {
        field(format!("respond: {{ status: {status} }}"));
    }
}

fn write_scope(field: &mut impl FnMut(String), whom: &RequestScope) {
    match whom {
        RequestScope::Nobody | RequestScope::Everybody => {}
        RequestScope::Path(steps) => {
            let steps: Vec<String> = steps.iter().map(step).collect();
            field(format!("match: {{ descriptor: [{}] }}", steps.join(", ")));
        }
        RequestScope::Holds(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| pair(key, value));
            let pairs: Vec<String> = pairs.collect();
            field(format!(
                "match: {{ descriptor: {{ {} }} }}",
                pairs.join(", ")
            ));
        }
        RequestScope::Any(conditions) => {
            field("match:".to_owned());
            for it in conditions {
                field(format!("  - {{ {} }}", condition(it)));
            }
        }
    }
}

/// Writes the key, the rate and the algorithm.
fn write_counting(field: &mut impl FnMut(String), limit: &LimitDraft) {
    match &limit.key {
        KeyDraft::Global => field("key: global".to_owned()),
        KeyDraft::Descriptor => field("key: descriptor".to_owned()),
        KeyDraft::Parts { parts, or_skip } => {
            let parts: Vec<String> = parts.iter().map(|part| quote(&escaped(part))).collect();
            match parts.as_slice() {
                [part] => field(format!("key: {part}")),
                parts => field(format!("key: [{}]", parts.join(", "))),
            }
            if *or_skip {
                field("missing: skip".to_owned());
            }
        }
    }
    match limit.rates.as_slice() {
        [rate] if rate.label.is_none() => field(format!("rate: {}", rate.text)),
        rates => {
            let bands = rates.iter().map(|rate| match &rate.label {
                Some(label) => format!("{{ rate: {}, label: {} }}", rate.text, quote(label)),
                None => rate.text.clone(),
            });
            let bands: Vec<String> = bands.collect();
            field(format!("bands: [{}]", bands.join(", ")));
        }
    }
    match limit.counting {
        AlgorithmDraft::Windows(align) => {
            field("algorithm: fixed-window".to_owned());
            field(format!("align: {align}"));
        }
        AlgorithmDraft::Bucketed => field("algorithm: bucketed-window".to_owned()),
        AlgorithmDraft::Tokens => field("algorithm: token-bucket".to_owned()),
    }
}

fn condition(condition: &ConditionDraft) -> String {
    let path = condition.path.as_ref();
    let path = path.map(|path| format!("path: {}", quote(&escaped(path))));
    let header = condition.header.as_ref();
    let header = header.map(|(name, value)| format!("headers: {{ {} }}", pair(name, value)));
    let attribute = condition.attribute.as_ref();
    let attribute =
        attribute.map(|(name, value)| format!("attributes: {{ {} }}", pair(name, value)));
    let lists = [
        ("method", &condition.methods),
        ("host", &condition.hosts),
        ("client", &condition.clients),
    ];
    let lists = lists.into_iter().filter(|(_, values)| !values.is_empty());
    let lists = lists.map(|(field, values)| {
        let values: Vec<String> = values.iter().map(|it| quote(&escaped(it))).collect();
        match values.as_slice() {
            [value] => format!("{field}: {value}"),
            values => format!("{field}: [{}]", values.join(", ")),
        }
    });
    let parts = path.into_iter().chain(lists).chain(header).chain(attribute);
    parts.collect::<Vec<_>>().join(", ")
}

fn step(step: &DescriptorStep) -> String {
    match &step.value {
        Some(value) => pair(&step.key, value),
        // Write a key that looks like a pair as a map, so that it is not mistaken for one.
        None if step.key.contains('=') => pair(&step.key, ""),
        None => quote(&escaped(&step.key)),
    }
}

/// Formats a pair. Values may refer to variables, so they are escaped. Keys may not.
fn pair(key: &str, value: &str) -> String {
    format!("{}: {}", quote(key), quote(&escaped(value)))
}
