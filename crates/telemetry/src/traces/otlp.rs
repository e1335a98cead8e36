//! Spans in the JSON encoding of OTLP (`opentelemetry/proto/trace/v1/trace.proto`): ids in hexadecimal,
//! 64-bit numbers as text, enumerations as numbers.

use super::span::{AttributeValue, Attributes, RequestSpans, Span};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// The service that recorded the spans.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) service: String,
    /// The name that distinguishes instances.
    pub(super) instance: String,
}

/// Encodes the body of an `ExportTraceServiceRequest`.
pub(super) fn request(resource: &Resource, recorded: &[RequestSpans]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let spans = recorded.iter().flat_map(|it| {
        let trace = format!("{:032x}", it.trace);
        it.spans.iter().map(move |span| one(&trace, span))
    });
    let body = json!({
        "resourceSpans": [{
            "resource": { "attributes": [
                text("service.name", &resource.service),
                text("service.version", version),
                text("service.instance.id", &resource.instance),
            ] },
            "scopeSpans": [{
                "scope": { "name": "tidegate", "version": version },
                "spans": spans.collect::<Vec<Json>>(),
            }],
        }],
    });
    body.to_string().into_bytes()
}

fn one(trace: &str, span: &Span) -> Json {
    let began = u128::from(span.began_us) * 1_000;
    let ended = began + span.took.max(Duration::from_nanos(1)).as_nanos();
    let mut json = json!({
        "traceId": trace,
        "spanId": format!("{:016x}", span.id),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": began.to_string(),
        "endTimeUnixNano": ended.to_string(),
        "attributes": attributes(&span.attributes),
        // The sampled bit of the W3C's flags.
        "flags": 1,
        "status": if span.is_error { json!({ "code": 2 }) } else { json!({}) },
    });
    if let (Some(parent), Some(fields)) = (span.parent, json.as_object_mut()) {
        fields.insert("parentSpanId".to_owned(), format!("{parent:016x}").into());
    }
    json
}

fn attributes(attributes: &Attributes) -> Vec<Json> {
    let each = attributes.iter().map(|(name, value)| match value {
        AttributeValue::Word(word) => text(name, word),
        AttributeValue::Text(word) => text(name, word),
        AttributeValue::Number(number) => {
            json!({ "key": name, "value": { "intValue": number.to_string() } })
        }
    });
    each.collect()
}

fn text(name: &str, text: &str) -> Json {
    json!({ "key": name, "value": { "stringValue": text } })
}

/// Returns the number of spans that the collector rejected, from its response.
pub(super) fn rejected(answer: &[u8]) -> u64 {
    let answer: Json = serde_json::from_slice(answer).unwrap_or_default();
    match answer.pointer("/partialSuccess/rejectedSpans") {
        // This JSON writes 64-bit numbers as text; some collectors write a number.
        Some(Json::String(text)) => text.parse().unwrap_or(0),
        Some(number) => number.as_u64().unwrap_or(0),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::span::SpanKind;
    use super::*;

    #[test]
    fn spans_are_encoded_as_otlp() {
        let resource = Resource {
            service: "shop".to_owned(),
            instance: "i".to_owned(),
        };
        let span = Span {
            id: 0xb,
            parent: Some(0xa),
            name: "decide".to_owned(),
            kind: SpanKind::Internal,
            began_us: 1_700_000_000_000_001,
            took: Duration::from_nanos(2_500),
            attributes: vec![
                ("tidegate.limit", "per \"client\"".into()),
                ("tidegate.remaining", AttributeValue::Number(u64::MAX)),
            ],
            is_error: true,
        };
        let recorded = RequestSpans {
            trace: 0xc,
            spans: vec![span],
        };
        let json: Json = serde_json::from_slice(&request(&resource, &[recorded])).unwrap();
        let scope = &json["resourceSpans"][0]["scopeSpans"][0];
        assert_eq!(scope["scope"]["name"], "tidegate");
        assert_eq!(
            scope["spans"],
            json!([{
                "traceId": "0000000000000000000000000000000c",
                "spanId": "000000000000000b",
                "parentSpanId": "000000000000000a",
                "name": "decide",
                "kind": 1,
                "startTimeUnixNano": "1700000000000001000",
                "endTimeUnixNano": "1700000000000003500",
                "attributes": [
                    { "key": "tidegate.limit", "value": { "stringValue": "per \"client\"" } },
                    { "key": "tidegate.remaining", "value": { "intValue": "18446744073709551615" } },
                ],
                "flags": 1,
                "status": { "code": 2 },
            }])
        );
    }

    #[test]
    fn rejected_span_counts_are_parsed_in_any_notation() {
        for (answer, spans) in [
            ("", 0),
            ("{}", 0),
            (r#"{"partialSuccess": {}}"#, 0),
            (r#"{"partialSuccess": {"rejectedSpans": "7"}}"#, 7),
            (r#"{"partialSuccess": {"rejectedSpans": 7}}"#, 7),
            ("<html>", 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), spans, "{answer}");
        }
    }
}
