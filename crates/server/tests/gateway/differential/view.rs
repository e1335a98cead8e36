//! What both ends of a proxy saw, as comparable lines.

use crate::kit::message::{Content, Framing, Head, text};
use crate::kit::{Reply, upstream};
use std::collections::BTreeMap;

/// Bodies up to this many bytes are shown as text.
const SHOWN: usize = 80;

/// The `Date` of an upstream that sends one. Any other `Date` is made by the proxy, and nginx omits
/// it in some responses (against RFC 9110, 6.6.1).
pub(super) const DATE: &str = "Mon, 01 Jan 2024 00:00:00 GMT";

/// Headers left out: their meaning is compared instead (the end of the body, the connection), or
/// the other proxy does not send them.
const LEFT_OUT: [&str; 6] = [
    "connection",
    "content-length",
    "forwarded",
    "keep-alive",
    "transfer-encoding",
    "via",
];

/// Returns what the upstream saw.
pub(super) fn requests(seen: &[upstream::SeenRequest]) -> Vec<String> {
    let each = seen.iter().zip(1..).flat_map(|(seen, nth)| {
        let mut lines = head(&seen.head);
        lines.extend(body(&seen.content));
        label(format!("upstream {nth}"), lines)
    });
    each.collect()
}

/// Returns the outcome of one request in a line.
pub(super) fn verdict(seen: &[upstream::SeenRequest], reply: &Reply) -> String {
    match seen.first() {
        Some(seen) => format!("passed as {}", seen.head.line),
        None => format!("refused with {}", reply.status()),
    }
}

/// Returns what the client saw.
pub(super) fn replies(replies: &[Reply]) -> Vec<String> {
    let each = replies.iter().zip(1..).flat_map(|(reply, nth)| {
        let mut lines: Vec<_> = reply
            .interim
            .iter()
            .map(|it| format!("before it {it}"))
            .collect();
        lines.extend(head(&reply.head));
        // A response to HEAD has no other trace of a body.
        if reply.content.framing == Framing::Nothing {
            lines.extend(
                reply
                    .head
                    .get("content-length")
                    .map(|it| format!("length {it}")),
            );
        }
        lines.extend(body(&reply.content));
        lines.push(if reply.closes() { "closes" } else { "goes on" }.to_owned());
        label(format!("client {nth}"), lines)
    });
    each.collect()
}

fn label(label: String, lines: Vec<String>) -> impl Iterator<Item = String> {
    lines
        .into_iter()
        .map(move |line| format!("{label}: {line}"))
}

fn head(head: &Head) -> Vec<String> {
    let mut fields = BTreeMap::<String, Vec<&str>>::new();
    for (name, value) in &head.fields {
        let name = name.to_ascii_lowercase();
        if !LEFT_OUT.contains(&name.as_str()) && (name != "date" || value == DATE) {
            fields.entry(name).or_default().push(value);
        }
    }
    let fields = fields.iter();
    let fields = fields.map(|(name, values)| format!("{name}: {}", values.join(" | ")));
    [head.line.clone()].into_iter().chain(fields).collect()
}

fn body(content: &Content) -> Vec<String> {
    let bytes = &content.bytes;
    let by = match content.framing {
        Framing::Nothing => return Vec::new(),
        Framing::Length(_) => "length",
        Framing::Chunks => "chunks",
        Framing::End => "the end",
    };
    let shown = match bytes.get(..SHOWN) {
        None => text(bytes),
        Some(_) => format!("#{:x}", sum(bytes)),
    };
    let mut lines = vec![format!("body by {by}, {} bytes: {shown}", bytes.len())];
    let trailers = content.trailers.iter();
    lines.extend(trailers.map(|(name, value)| format!("trailer {name}: {value}")));
    lines
}

/// FNV-1a, to distinguish large bodies.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
