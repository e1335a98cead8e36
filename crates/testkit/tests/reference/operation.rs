//! The operations of an API.

use crate::api::{Api, Operation};
use crate::schema::{cells, value};
use serde_json::Value;
use std::fmt::Write;

/// Returns all operations, each below a heading.
pub(crate) fn write_all(api: &Api) -> String {
    let operations = api.operations().into_iter();
    let texts = operations.map(|operation| write(api, operation));
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the errors that are the same in all operations.
pub(crate) fn write_errors(api: &Api) -> String {
    let mut text = String::from("| status | meaning |\n|---|---|\n");
    for (status, about) in &api.shared {
        writeln!(text, "{}", cells(&[status, about.trim_end_matches('.')])).unwrap();
    }
    text
}

fn write(api: &Api, operation: Operation<'_>) -> String {
    let Operation {
        path,
        method,
        value: fields,
    } = operation;
    let id = fields["operationId"].as_str().unwrap();
    let mut text = format!("### `{} {path}` ({id})\n\n", method.to_uppercase());
    let about = ["summary", "description"].map(|it| fields[it].as_str());
    let about: Vec<&str> = about.into_iter().flatten().collect();
    writeln!(text, "{}\n", about.join(" ")).unwrap();
    text.push_str(&parameters(api, fields));
    for (media, content) in fields["requestBody"]["content"]
        .as_object()
        .into_iter()
        .flatten()
    {
        let body = value(api, &content["schema"]);
        writeln!(text, "Request: {body} (`{media}`).\n").unwrap();
    }
    text.push_str(&responses(api, operation));
    text
}

fn parameters(api: &Api, operation: &Value) -> String {
    let mut rows = String::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        let name = format!("`{name}`");
        let is_required = parameter["required"] == true;
        let value = value(api, &parameter["schema"]);
        let row = [
            name.as_str(),
            parameter["in"].as_str().unwrap(),
            &value,
            if is_required { "yes" } else { "" },
            parameter["description"]
                .as_str()
                .unwrap_or_default()
                .trim_end_matches('.'),
        ];
        writeln!(rows, "{}", cells(&row)).unwrap();
    }
    if rows.is_empty() {
        return rows;
    }
    format!("| parameter | in | value | required | meaning |\n|---|---|---|---|---|\n{rows}\n")
}

/// Returns the responses: a table, and a line with the errors that are the same everywhere.
fn responses(api: &Api, operation: Operation<'_>) -> String {
    let mut text = String::from("| status | body | headers | meaning |\n|---|---|---|---|\n");
    let mut errors = Vec::new();
    for (status, response) in operation.responses() {
        if api.shared.get(status).map(String::as_str) == response["description"].as_str() {
            errors.push(status.as_str());
            continue;
        }
        let content = response["content"].as_object().into_iter().flatten();
        let bodies = content.map(|(_, content)| value(api, &content["schema"]));
        let bodies = bodies.collect::<Vec<_>>().join(" or ");
        let headers = response["headers"].as_object().into_iter().flatten();
        let headers = headers.map(|(name, _)| format!("`{name}`"));
        let headers = headers.collect::<Vec<_>>().join(", ");
        let about = response["description"].as_str().unwrap();
        let row = [status, &bodies, &headers, about.trim_end_matches('.')];
        writeln!(text, "{}", cells(&row)).unwrap();
    }
    if !errors.is_empty() {
        writeln!(text, "\nErrors: {}.", errors.join(", ")).unwrap();
    }
    text
}
