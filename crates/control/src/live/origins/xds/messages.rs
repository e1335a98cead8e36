//! The messages of aggregated discovery: requests, written, and responses, read.
//!
//! Only the fields that a client of one type needs are here. Fields that are missing are skipped, as
//! protobuf specifies.

use bytes::Bytes;
use tidegate_config::source::XdsServer;
use tidegate_frontends::wire::protobuf::read::{ProtobufError, WireFields, WireValue};
use tidegate_frontends::wire::protobuf::write;

/// The method of the stream.
pub(super) const METHOD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// The type of the resources.
pub(super) const TYPE_URL: &str =
    "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// The maximum number of resources in a response: more than there can be domains.
const RESOURCES_MAX: usize = 10_000;

/// The code in the error of a rejected version, "invalid argument".
const INVALID_ARGUMENT: u64 = 3;

/// The maximum length of the error of a rejected version, in bytes.
const DETAIL_MAX: usize = 4 << 10;

/// The maximum length of a version or a nonce in bytes: both are sent back, and the version is shown.
const TOKEN_MAX: usize = 1 << 10;

const TOO_LONG: ProtobufError = ProtobufError::new("a version or a nonce has more than 1024 bytes");
const TOO_MANY: ProtobufError = ProtobufError::new("a response may have at most 10000 resources");

/// A request of the stream: the first one, or the answer to a response.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DiscoveryRequest<'a> {
    /// The node, in the first request only.
    pub(super) node: Option<&'a XdsServer>,
    /// The last version that was accepted on this stream.
    pub(super) version: &'a str,
    /// The nonce of the response that is answered.
    pub(super) nonce: &'a str,
    /// The reason why its version is rejected.
    pub(super) error: Option<&'a str>,
}

/// A response: the complete configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DiscoveryResponse {
    pub(super) version: String,
    pub(super) nonce: String,
    pub(super) type_url: String,
    pub(super) resources: Vec<AnyResource>,
}

/// A resource, not read yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AnyResource {
    pub(super) type_url: String,
    pub(super) value: Bytes,
}

impl DiscoveryRequest<'_> {
    /// Returns the encoded message.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        write::bytes(&mut out, 1, self.version.as_bytes());
        if let Some(node) = self.node {
            write::message(&mut out, 2, |out| write_node(out, node));
        }
        write::bytes(&mut out, 4, TYPE_URL.as_bytes());
        write::bytes(&mut out, 5, self.nonce.as_bytes());
        if let Some(error) = self.error {
            write::message(&mut out, 6, |out| {
                write::number(out, 1, INVALID_ARGUMENT);
                write::bytes(out, 2, cut(error).as_bytes());
            });
        }
        out
    }
}

fn write_node(out: &mut write::MessageBuffer, node: &XdsServer) {
    write::bytes(out, 1, node.node_id.as_bytes());
    write::bytes(out, 2, node.node_cluster.as_bytes());
    if !node.node_metadata.is_empty() {
        write::message(out, 3, |out| {
            for (name, text) in &node.node_metadata {
                write::message(out, 1, |out| {
                    write::bytes(out, 1, name.as_bytes());
                    // A text among the kinds of values.
                    write::message(out, 2, |out| write::element(out, 3, text.as_bytes()));
                });
            }
        });
    }
    write::bytes(out, 6, b"tidegate");
    write::bytes(out, 7, env!("CARGO_PKG_VERSION").as_bytes());
}

/// Shortens a text at the border of a character.
fn cut(text: &str) -> &str {
    let end = (0..=DETAIL_MAX.min(text.len())).rev();
    let mut end = end.filter(|end| text.is_char_boundary(*end));
    text.get(..end.next().unwrap_or(0)).unwrap_or_default()
}

impl DiscoveryResponse {
    /// Reads a message.
    pub(super) fn read(message: &Bytes) -> Result<Self, ProtobufError> {
        let mut response = Self::default();
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                1 | 5 if value.text()?.len() > TOKEN_MAX => return Err(TOO_LONG),
                1 => value.text()?.clone_into(&mut response.version),
                2 if response.resources.len() == RESOURCES_MAX => return Err(TOO_MANY),
                2 => response.resources.push(AnyResource::read(message, value)?),
                4 => value.text()?.clone_into(&mut response.type_url),
                5 => value.text()?.clone_into(&mut response.nonce),
                _ => {}
            }
        }
        // Servers send the same resources in another order the next time.
        response.resources.sort_unstable();
        Ok(response)
    }
}

impl AnyResource {
    fn read(message: &Bytes, value: WireValue<'_>) -> Result<Self, ProtobufError> {
        let mut resource = Self::default();
        let mut fields = WireFields::of(value.bytes()?);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                1 => value.text()?.clone_into(&mut resource.type_url),
                // Shared with the message, not copied.
                2 => resource.value = message.slice_ref(value.bytes()?),
                _ => {}
            }
        }
        Ok(resource)
    }
}
